// options: -std=c++20
#include <barrier>
#include <thread>
// std::barrier with a completion that runs alone between two phases.
static int parts[2], sum;
static std::barrier phase(2, []() noexcept { sum = parts[0] + parts[1]; });
static void work(int i) {
    for (int round = 0; round < 20; round++) {
        parts[i] = round;
        phase.arrive_and_wait();
#ifndef FIXED
        if (round == 19) {
            sum++; // race(sum)
        }
#else
        if (sum != 2 * round) __builtin_abort();
#endif
        phase.arrive_and_wait();
    }
}
int main() {
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
}
