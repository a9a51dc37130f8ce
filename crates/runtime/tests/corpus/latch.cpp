// options: -std=c++20
#include <latch>
#include <thread>
static std::latch done(2);
static int data[2];
int late;
static void fill(int i) {
    data[i] = i + 1;
#ifndef FIXED
    done.count_down();
    late = i; // race(late)
#else
    done.count_down();
#endif
}
int main() {
    std::thread a(fill, 0), b(fill, 1);
    done.wait();
    int sum = data[0] + data[1];
    late = 7; // race(late)
    a.join();
    b.join();
    return sum != 3;
}
