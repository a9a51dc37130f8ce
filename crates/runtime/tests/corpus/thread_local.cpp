#include <thread>
int total;
struct Counter {
    int n = 0;
    ~Counter() {
        total += n; // race(total)
    }
};
static thread_local Counter counter;
static void work() {
    for (int i = 0; i < 10; i++) counter.n++;
}
int main() {
    std::thread a(work);
#ifdef FIXED
    a.join();
#endif
    std::thread b(work);
#ifndef FIXED
    a.join();
#endif
    b.join();
    return total > 20;
}
