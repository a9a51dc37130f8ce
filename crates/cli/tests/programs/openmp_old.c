// A team as gcc before 4.9 began it: the thread that begins it calls the team's function by itself.
void GOMP_parallel_start(void (*)(void *), void *, unsigned);
void GOMP_parallel_end(void);
int count;
static void part(void *unused) {
    (void)unused;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
}
int main(void) {
    GOMP_parallel_start(part, 0, 2);
    part(0);
    GOMP_parallel_end();
    return count == 2 ? 0 : 1;
}
