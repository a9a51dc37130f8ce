#include <new>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
// The destructor of a base class sets the virtual table while another thread calls through it.
static sem_t go;
struct Base {
    virtual ~Base() { sem_post(&go); } // race(vptr)
    virtual void run() { seen = 1; }
    int seen = 0;
};
struct Derived : Base {
    ~Derived() override { done(); } // race(vptr)
    void run() override { seen = 2; }
    void done() {}
};
__attribute__((noinline)) static void call(Base *b) {
    b->run(); // race(vptr)
}
int main() {
    sem_init(&go, 0, 0);
    alignas(16) static unsigned char place[sizeof(Derived)];
    Derived *d = new (place) Derived;
    std::thread t([d] {
#ifndef FIXED
        call(d);
#endif
        sem_wait(&go);
    });
    d->~Derived(); // race(vptr)
    t.join();
}
