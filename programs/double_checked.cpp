// Shape: double-checked initialisation. The pointer is published before what it points to is complete.
// Idea: the double-checked locking pattern as declared broken by Bacon, Bloch and others (2000); Meyers
// and Alexandrescu (2004) for C++.
// Shows: the assertion, if a thread on the fast path meets an object without its contents.
// Fixed: publishes last, with release and acquire.
#include "shape.h"
#include <atomic>
#include <mutex>
#include <thread>

struct Table {
    int size;
    int *entries;
};

static std::mutex lock;
#ifdef FIXED
static std::atomic<Table *> table;
#else
Table *table;
#endif

static Table *instance() {
#ifdef FIXED
    Table *t = table.load(std::memory_order_acquire);
    if (!t) {
        std::lock_guard<std::mutex> guard(lock);
        t = table.load(std::memory_order_relaxed);
        if (!t) {
            t = new Table{4, new int[4]()};
            table.store(t, std::memory_order_release);
        }
    }
    return t;
#else
    if (!table) {
        std::lock_guard<std::mutex> guard(lock);
        if (!table) {
            Table *made = new Table();
            int *entries = new int[4]();
            table = made;
            made->entries = entries;
            made->size = 4;
        }
    }
    return table;
#endif
}

static void use() {
    Table *t = instance();
    assert(t->size == 4 && t->entries);
}

int main() {
    std::thread first(use);
    work(250);
    std::thread second(use);
    first.join();
    second.join();
    return 0;
}
