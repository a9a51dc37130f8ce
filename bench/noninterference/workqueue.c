// SingleTrack's figure 2 (b): workers take tasks from a queue. Which worker gets which task depends on the
// schedule; each task, which uses a thread of its own, is deterministic. Only `run` is said to be.
#include "kernel.h"

#define TASKS SIZED(16, 200)
#define CELLS SIZED(400, 10000)
#define TIMES SIZED(2, 40)

struct task {
    int number;
    double cells[CELLS], result;
};

static struct task tasks[TASKS];
static struct {
    pthread_mutex_t lock;
    int next;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fill(struct task *t, int from, int to) {
    for (int n = 1; n <= TIMES; n++)
        for (int i = from; i < to; i++)
            t->cells[i] += (t->number + 1.0) / (i + n);
}

static void *fill_half(void *arg) {
    fill(arg, 0, CELLS / 2);
    return NULL;
}

__attribute__((noinline)) static void run(struct task *t) {
    pthread_t helper;
    if (pthread_create(&helper, NULL, fill_half, t) != 0)
        abort();
    fill(t, CELLS / 2, CELLS);
    pthread_join(helper, NULL);
    for (int i = 0; i < CELLS; i++)
        t->result += t->cells[i];
}

static void *work(void *arg) {
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        int mine = queue.next < TASKS ? queue.next++ : -1;
        pthread_mutex_unlock(&queue.lock);
        if (mine < 0)
            return NULL;
        run(&tasks[mine]);
    }
}

int main(void) {
    for (int i = 0; i < TASKS; i++)
        tasks[i].number = i;
    in_parallel(work, NULL);
    double got = 0, expected = 0;
    for (int i = 0; i < TASKS; i++) {
        struct task alone = {.number = i};
        fill(&alone, 0, CELLS);
        for (int j = 0; j < CELLS; j++)
            alone.result += alone.cells[j];
        got += tasks[i].result;
        expected += alone.result;
    }
    return finish("workqueue", got, expected);
}
