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
int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
}
