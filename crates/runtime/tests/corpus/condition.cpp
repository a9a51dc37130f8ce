#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
static std::deque<int *> queue;
static std::mutex m;
static std::condition_variable c;
int main() {
    std::thread consumer([] {
        for (int i = 0; i < 50; i++) {
            std::unique_lock<std::mutex> lock(m);
            c.wait(lock, [] { return !queue.empty(); });
            int *p = queue.front();
            queue.pop_front();
            lock.unlock();
            *p += 1; // race(item)
            delete p; // race(item)
        }
    });
    for (int i = 0; i < 50; i++) {
        int *p = new int(i);
        {
            std::lock_guard<std::mutex> lock(m);
            queue.push_back(p);
        }
        c.notify_one();
#ifndef FIXED
        if (i == 49) *p = 3; // race(item)
#endif
    }
    consumer.join();
}
