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
static Config *made;
static Config &get() {
    if (!made) // race(made)
        made = new Config; // race(made)
    return *made; // race(made)
}
#endif
static volatile int sink;
static void work() {
    volatile int v = get().value;
    (void)v;
}
int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
}
