#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
static std::vector<int> data(4);
static std::shared_mutex m;
static void read() {
    std::shared_lock<std::shared_mutex> lock(m);
    volatile int sum = data[0] + data[3];
    (void)sum;
}
static void write() {
#ifdef FIXED
    std::unique_lock<std::shared_mutex> lock(m);
#else
    std::shared_lock<std::shared_mutex> lock(m);
#endif
    int *p = data.data();
    p[3]++; // race(write)
}
int main() {
    std::thread a(write), b(write), c([] { for (int i = 0; i < 50; i++) { std::shared_lock<std::shared_mutex> l(m); } });
    a.join();
    b.join();
    c.join();
    read();
}
