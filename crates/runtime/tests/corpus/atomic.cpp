#include <atomic>
#include <thread>
struct Node { int value; Node *next; };
static std::atomic<Node *> head;
#ifdef FIXED
static const auto out = std::memory_order_release;
#else
static const auto out = std::memory_order_relaxed;
#endif
int main() {
    std::thread producer([] {
        for (int i = 0; i < 100; i++) { // race(node)
            Node *n = new Node; // race(node)
            n->value = i; // race(node)
            n->next = head.load(std::memory_order_relaxed); // race(node)
            while (!head.compare_exchange_weak(n->next, n, out, std::memory_order_relaxed)) {}
        }
    });
    std::thread consumer([] {
        long sum = 0;
        for (int got = 0; got < 100;) {
            Node *n = head.exchange(nullptr, std::memory_order_acquire);
            while (n) {
                sum += n->value; // race(node)
                got++;
                n = n->next; // race(node)
            }
        }
        volatile long keep = sum;
        (void)keep;
    });
    producer.join();
    consumer.join();
}
