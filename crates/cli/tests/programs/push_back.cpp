// Two threads push to a vector without a lock. What they share is touched in the library's code, which -O0 does not inline.
#include <pthread.h>
#include <vector>

static std::vector<int> numbers;

static void *pusher(void *nothing) {
    numbers.push_back(1);
    return nothing;
}

int main() {
    numbers.reserve(16);
    pthread_t threads[2];
    for (pthread_t &thread : threads)
        pthread_create(&thread, nullptr, pusher, nullptr);
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    return 0;
}
