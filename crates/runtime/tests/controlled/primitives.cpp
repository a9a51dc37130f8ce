// Every primitive at once: timed and recursive locks, readers and writers, barrier, semaphore, once,
// statics, yields and sleeps. Ends with 0 under every schedule.
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::recursive_timed_mutex nested;
static std::shared_mutex table;
static std::timed_mutex timed;
static std::mutex plain;
static std::condition_variable_any turned;
static std::once_flag once;
static pthread_barrier_t barrier;
static sem_t tokens;
static std::atomic<int> inits{0}, seen{0};
static int total, turn;
static pthread_spinlock_t spin;

struct Config {
    int value;
    Config() : value(++inits) {}
};

static int config() {
    static Config c;
    return c.value;
}

static void work(int me) {
    std::call_once(once, [] { inits += 10; });
    {
        std::lock_guard outer(nested);
        std::lock_guard inner(nested);
        total += config();
    }
    pthread_barrier_wait(&barrier);
    {
        std::shared_lock read(table);
        seen += total;
    }
    {
        std::unique_lock write(table);
        total++;
    }
    pthread_spin_lock(&spin);
    total++;
    pthread_spin_unlock(&spin);
    sem_wait(&tokens);
    std::this_thread::yield();
    sem_post(&tokens);
    if (timed.try_lock_for(1s)) {
        std::this_thread::sleep_for(10ms);
        timed.unlock();
    }
    std::unique_lock held(plain);
    turned.wait(held, [&] { return turn == me; });
    turn++;
    turned.notify_all();
}

int main() {
    pthread_barrier_init(&barrier, nullptr, 3);
    pthread_spin_init(&spin, 0);
    sem_init(&tokens, 0, 1);
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(work, i);
    for (auto &t : threads)
        t.join();
    std::mutex m;
    std::condition_variable never;
    std::unique_lock held(m);
    bool timeout = never.wait_for(held, 5s) == std::cv_status::timeout;
    auto passed = std::chrono::steady_clock::now() - begin;
    std::printf("%d %d %d %d\n", total, inits.load(), turn, timeout && passed >= 5s);
    return total == 3 * 11 + 6 && inits == 11 && turn == 3 && timeout && passed >= 5s ? 0 : 1;
}
