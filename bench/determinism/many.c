/* Executes a block 5,000 times, with a thousand inputs: for measuring what it costs to check an execution. */
#include <selvedge.h>

int main(void) {
    for (int i = 0; i < 5000; i++) {
        int n = i % 1000;
        double sum = n + i % 97 * 1e-14;
        SELVEDGE_DETERMINISTIC_BEGIN("many");
        SELVEDGE_ASSUME("n", n);
        SELVEDGE_ENSURE("steps", 3 * n);
        SELVEDGE_ENSURE_BY("sum", sum, SELVEDGE_WITHIN(1e-9));
        SELVEDGE_REGION_END();
    }
    return 0;
}
