// options: -std=c++20
#include <chrono>
#include <semaphore>
#include <thread>
static std::counting_semaphore<4> room(0);
static std::binary_semaphore turn(1);
static int data, shared;
static void guarded() {
#ifdef FIXED
    while (!turn.try_acquire_for(std::chrono::seconds(600))) {}
#endif
    shared++; // race(shared)
#ifdef FIXED
    turn.release();
#endif
}
int main() {
    std::thread producer([] {
        data = 1; // race(data)
        room.release(3);
        guarded();
    });
    std::thread consumer([] {
#ifndef FIXED
        data++; // race(data)
#endif
        room.acquire();
#ifdef FIXED
        data++;
#endif
        guarded();
    });
    producer.join();
    consumer.join();
    return shared != 2;
}
