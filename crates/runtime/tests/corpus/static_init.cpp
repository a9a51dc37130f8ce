#include <atomic>
#include <thread>
struct Config {
    int value;
    Config() : value(7) {} // race(value)
};
#ifdef FIXED
static Config &get() {
    static Config config;
    return config;
}
#else
Config *made;
static Config &get() {
    if (!made) // race(made)
        made = new Config; // race(made)
    return *made; // race(made)
}
#endif
volatile int sink;
static void work() {
    volatile int v = get().value; // race(value) race(made)
    (void)v;
}
// The second thread comes when the first has made it, which orders nothing; else each might make, and
// look at, one of its own.
static std::atomic<int> turn;
static void first() {
    work();
    turn.store(1, std::memory_order_relaxed);
}
static void second() {
    while (!turn.load(std::memory_order_relaxed)) std::this_thread::yield();
    work();
}
int main() {
    std::thread a(first), b(second);
    a.join();
    b.join();
}
