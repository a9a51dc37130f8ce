// Two threads add two elements each, under a lock for each element. As a list the result may be as in no serial execution;
// as a multiset, and by its sum, it is as in every one. LIST, MULTISET or SUM says how it is compared.
#include <selvedge.hpp>

#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::vector<int> elements;

static void add(int first) {
    selvedge::Atomic block("add");
    for (int value : {first, first + 1}) {
        std::lock_guard<std::mutex> guard(lock);
        elements.push_back(value);
    }
}

static int same_sum(const void *a, size_t a_size, const void *b, size_t b_size) {
    const int *first = static_cast<const int *>(a), *second = static_cast<const int *>(b);
    int difference = 0;
    for (size_t i = 0; i < a_size / sizeof(int); i++)
        difference += first[i];
    for (size_t i = 0; i < b_size / sizeof(int); i++)
        difference -= second[i];
    return difference == 0;
}

int main() {
    elements.reserve(4);
    std::thread one(add, 1), two(add, 10);
    one.join();
    two.join();
    (void)same_sum;
#if defined(LIST)
    selvedge::observe("elements", elements);
#elif defined(MULTISET)
    selvedge::observe("elements", elements, SELVEDGE_MULTISET);
#else
    SELVEDGE_OBSERVE_ARRAY_BY("elements", elements.data(), elements.size(), SELVEDGE_SAME(same_sum));
#endif
}
