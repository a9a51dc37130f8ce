// options: -std=c++20
#include <stop_token>
#include <thread>
static int result, told;
int main() {
    {
        std::jthread worker([](std::stop_token stop) {
            std::stop_callback callback(stop, [] { told++; });
            while (!stop.stop_requested()) std::this_thread::yield();
            result += 1; // race(result)
        });
#ifndef FIXED
        result = 5; // race(result)
        worker.request_stop();
        result = 6; // race(result)
#else
        result = 5;
        worker.request_stop();
#endif
    }
    return result == 0 || told != 1;
}
