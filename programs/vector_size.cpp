// Shape: high-level race. A vector whose every method is locked is asked for its size and then for its
// last element.
// Idea: java.util.Vector used as if synchronized methods made it safe (Artho, Havelund and Biere, 2003).
// Shows: the assertion, if another thread removes the last element in between.
// Fixed: question and removal are one method.
#include "selvedge.h"
#include "shape.h"
#include <mutex>
#include <thread>
#include <vector>

class Stack {
  public:
    void push(int value) {
        std::lock_guard<std::mutex> guard(lock);
        values.push_back(value);
    }

    size_t size() {
        std::lock_guard<std::mutex> guard(lock);
        return values.size();
    }

    int pop() {
        std::lock_guard<std::mutex> guard(lock);
        assert(!values.empty());
        int value = values.back();
        values.pop_back();
        return value;
    }

    bool try_pop() {
        std::lock_guard<std::mutex> guard(lock);
        if (values.empty()) return false;
        values.pop_back();
        return true;
    }

  private:
    std::mutex lock;
    std::vector<int> values;
};

static Stack stack;

static void drain(int before, int after) {
    note(before);
    SELVEDGE_ATOMIC_BEGIN("drain");
#ifdef FIXED
    stack.try_pop();
#else
    if (stack.size() > 0) stack.pop();
#endif
    SELVEDGE_REGION_END();
    note(after);
}

int main() {
    stack.push(1);
    std::thread first(drain, 0, 20);
    work(250);
    std::thread second(drain, 20, 0);
    first.join();
    second.join();
    return 0;
}
