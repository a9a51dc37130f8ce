#include <stdexcept>
#include <string>
#include <thread>
int x;
static void deep(int n) {
    std::string s(n, 'x');
    if (n == 0) throw std::runtime_error(s);
    deep(n - 1);
}
static void work() {
    for (int i = 0; i < 20; i++) {
        try {
            deep(i);
        } catch (std::exception &) {
        }
    }
#ifndef FIXED
    x++; // race(x)
#endif
}
int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
    return x > 2;
}
