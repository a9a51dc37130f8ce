// Two static variables that whoever needs one first initialises. One thread may make the first and use the second, the
// other the second and the first.
#include <pthread.h>
#include <stdio.h>

static volatile int factor = 10;

static int make(int number) { return number * factor; }

static int first() {
    static int value = make(1);
    return value;
}

static int second() {
    static int value = make(2);
    return value;
}

static int result[2];

static void *work(void *argument) {
    long who = (long)argument;
    int sum = who ? second() : first();
    result[who] = sum + (who ? first() : second());
    return nullptr;
}

int main() {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], nullptr, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], nullptr);
    printf("%d %d\n", result[0], result[1]);
    return 0;
}
