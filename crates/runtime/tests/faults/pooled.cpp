// Allocates in every way, in two threads, and asks for the size of blocks in every way.
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <string>
#include <thread>
#include <vector>
static void work() {
    for (int i = 1; i < 200; i++) {
        std::vector<std::string> list(i, std::string(i, 'x'));
        char *text = static_cast<char *>(malloc(i));
        text = static_cast<char *>(realloc(text, 3 * i));
        if (malloc_usable_size(text) < size_t(3 * i)) abort();
        free(text);
        delete new (std::nothrow) long[4];
        struct alignas(64) Wide { char bytes[64]; };
        Wide *wide = new Wide;
        if (reinterpret_cast<size_t>(wide) % 64) abort();
        delete wide;
    }
}
int main() {
    std::thread a(work), b(work);
    a.join();
    b.join();
    if (malloc_usable_size(nullptr) != 0) return 1;
    volatile size_t much = size_t(-1) / 4;
    try {
        delete new std::string(much, 'x');
    } catch (const std::exception &) {
        puts("refused");
    }
    try {
        delete static_cast<char *>(operator new(much));
    } catch (const std::bad_alloc &) {
        puts("no memory");
        return 0;
    }
    return 2;
}
