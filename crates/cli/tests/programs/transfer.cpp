// Two locks in two orders, one transfer after the other: a deadlock that did not happen. What keeps the
// transfers apart is nothing that the program relies on, and the tool is told to ignore it.
#include <iostream>
#include <mutex>
#include <selvedge.h>
#include <thread>

struct Account {
    std::mutex lock;
    long balance = 100;
};

Account checking, savings;
volatile bool done;

void transfer(Account &from, Account &to, long amount) {
    std::lock_guard<std::mutex> first(from.lock);
    std::lock_guard<std::mutex> second(to.lock);
    from.balance -= amount;
    to.balance += amount;
}

int main() {
    std::thread there([] {
        transfer(checking, savings, 10);
        SELVEDGE_IGNORE_BEGIN();
        done = true;
        SELVEDGE_IGNORE_END();
    });
    std::thread back([] {
        SELVEDGE_IGNORE_BEGIN();
        while (!done)
            std::this_thread::yield();
        SELVEDGE_IGNORE_END();
#ifdef FIXED
        transfer(checking, savings, -5);
#else
        transfer(savings, checking, 5);
#endif
    });
    there.join();
    back.join();
    std::cout << checking.balance + savings.balance << "\n";
}
