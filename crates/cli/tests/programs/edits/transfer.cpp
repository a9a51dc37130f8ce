// EDIT: above
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex from, to;
static std::atomic<unsigned> order;

// EDIT: function

static void note(unsigned who) {
    order = order * 4 + who;
}

static void pay() {
    for (int i = 0; i < 3; i++) {
        std::lock_guard<std::mutex> outer(from);
        note(1);
        std::lock_guard<std::mutex> inner(to);
        note(2);
    }
}

static void receive() {
    for (int i = 0; i < 3; i++) {
        {
            std::unique_lock<std::mutex> first(to);
            note(3);
        }
        std::unique_lock<std::mutex> second(from);
        note(1);
    }
}

int main() {
    std::thread one(pay), two(receive);
    one.join();
    two.join();
    std::printf("%x\n", order.load());
    return 0;
}
