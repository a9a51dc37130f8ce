// An allocator of a library's own, which knows its blocks by a mark and does not survive others.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
namespace {
struct Head {
    size_t mark, size;
};
constexpr size_t Mark = 0x706f6f6c;
alignas(64) char memory[64 << 20];
std::atomic<size_t> used;
Head *head(void *block) {
    Head *h = static_cast<Head *>(block) - 1;
    if (h->mark != Mark) abort();
    return h;
}
}
extern "C" {
void *malloc(size_t size) {
    size_t at = used.fetch_add((size + sizeof(Head) + 15) & ~size_t(15));
    if (at + size + sizeof(Head) > sizeof memory) return nullptr;
    Head *h = reinterpret_cast<Head *>(memory + at);
    *h = {Mark, size};
    return h + 1;
}
void free(void *block) {
    if (block) head(block);
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *fresh = malloc(size);
    if (block && fresh) memcpy(fresh, block, head(block)->size < size ? head(block)->size : size);
    return fresh;
}
size_t malloc_usable_size(void *block) { return block ? head(block)->size : 0; }
}
void *operator new(size_t size) {
    if (void *block = malloc(size)) return block;
    throw std::bad_alloc();
}
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }
