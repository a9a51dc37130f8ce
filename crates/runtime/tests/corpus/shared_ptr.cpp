#include <memory>
#include <thread>
struct Big { int value[10]; };
int main() {
    auto p = std::make_shared<Big>();
    p->value[0] = 1;
#ifdef FIXED
    auto first = [p] { volatile int v = p->value[0]; (void)v; };
    auto second = first;
#else
    auto first = [p] {
        p->value[3]++; // race(value)
    };
    auto second = [p] {
        p->value[3]++; // race(value)
    };
#endif
    std::thread a(std::move(first)), b(std::move(second));
    p.reset();
    a.join();
    b.join();
}
