#include <map>
#include <mutex>
#include <string>
#include <thread>
static std::map<std::string, int> table;
static std::mutex m;
int plain;
static void work(int n) {
    for (int i = 0; i < 200; i++) {
        std::lock_guard<std::mutex> guard(m);
        table["key" + std::to_string((i * n) % 17)] += i;
    }
#ifndef FIXED
    plain++; // race(plain)
#endif
}
int main() {
    std::thread a(work, 1), b(work, 2);
    a.join();
    b.join();
    return table.size() != 17 || plain > 2;
}
