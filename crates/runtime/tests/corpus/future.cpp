#include <future>
#include <thread>
int data;
int main() {
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread t([&] {
#ifdef FIXED
        data = 1;
        promise.set_value(1);
#else
        promise.set_value(1);
        data = 1; // race(data)
#endif
    });
    future.get();
    volatile int seen = data; // race(data)
    (void)seen;
    t.join();
    auto task = std::async(std::launch::async, [] { return data + 1; });
    return task.get() != 2;
}
