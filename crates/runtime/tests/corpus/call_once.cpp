#include <mutex>
#include <stdexcept>
#include <thread>
static std::once_flag flag;
int value, tries;
static void make() {
    if (tries++ == 0) throw std::runtime_error("not yet");
    value = 5;
}
static void work() {
    for (;;) try {
            std::call_once(flag, make);
            break;
        } catch (std::runtime_error &) {
        }
#ifdef FIXED
    volatile int v = value;
    (void)v;
#else
    value++; // race(value)
#endif
}
int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
    return value < 5;
}
