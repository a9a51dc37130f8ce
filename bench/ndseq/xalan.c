// A converter in the shape of xalan: tasks take documents, look up names in a shared table in which whoever comes first
// enters them, and write their own output.
#include "../noninterference/kernel.h"
#include <selvedge.h>
#include <string.h>

#define DOCUMENTS 4
#define NAMES 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *words[NAMES] = {"html", "body", "p"};
static int known[NAMES], hash[NAMES];
static int looked_up;
static long output[DOCUMENTS];

static int compute(const char *word) {
    int h = 0;
    for (const char *c = word; *c; c++)
        h = 31 * h + *c;
    return h;
}

static int lookup(int name) {
    looked_up = looked_up + 1;
    if (SELVEDGE_STAR(__atomic_load_n(&known[name], __ATOMIC_SEQ_CST) != 0))
        return hash[name];
    pthread_mutex_lock(&lock);
    if (!known[name]) {
        hash[name] = compute(words[name]);
        __atomic_store_n(&known[name], 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
    return hash[name];
}

static void *convert(void *arg) {
    int document = (int)(long)arg;
    long sum = document;
    for (int i = 0; i < NAMES; i++)
        sum = sum * 7 + lookup((document + i) % NAMES);
    output[document] = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[DOCUMENTS];
    for (long i = 0; i < DOCUMENTS; i++)
        pthread_create(&threads[i], NULL, convert, (void *)i);
    for (int i = 0; i < DOCUMENTS; i++)
        pthread_join(threads[i], NULL);
    printf("xalan");
    for (int i = 0; i < DOCUMENTS; i++)
        printf(" %ld", output[i]);
    printf("\n");
    return 0;
}
