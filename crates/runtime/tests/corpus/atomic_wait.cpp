// options: -std=c++20
#include <atomic>
#include <thread>
static std::atomic<int> turn;
int data;
static void play(int me, int rounds) {
#ifndef FIXED
    data++; // race(data)
#endif
    for (int i = 0; i < rounds; i++) {
        int now = turn.load(std::memory_order_acquire);
        while (now % 2 != me) {
            turn.wait(now, std::memory_order_acquire);
            now = turn.load(std::memory_order_acquire);
        }
        data++; // race(data)
        turn.fetch_add(1, std::memory_order_release);
        turn.notify_one();
    }
}
int main() {
    std::thread a(play, 0, 100), b(play, 1, 100);
    a.join();
    b.join();
    return data < 200;
}
