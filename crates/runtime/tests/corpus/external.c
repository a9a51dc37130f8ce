#include "corpus.h"
// External objects, and unaligned accesses that the program announces itself.
void *__tsan_external_register_tag(const char *name);
void __tsan_external_write(void *at, void *caller, void *tag);
void __tsan_external_read(void *at, void *caller, void *tag);
uint32_t __sanitizer_unaligned_load32(const void *at);
void __sanitizer_unaligned_store32(void *at, uint32_t value);
char object[8], bytes[16];
static void *tag;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void change(void) {
    __tsan_external_write(object, __builtin_return_address(0), tag); // race(object)
}
static void *writes(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    change();
    __sanitizer_unaligned_store32(bytes + 6, 7); // race(bytes)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
static void *reads(void *arg) {
#ifdef FIXED
    pthread_mutex_lock(&m);
#endif
    change();
    arg = (void *)(uintptr_t)__sanitizer_unaligned_load32(bytes + 8); // race(bytes)
#ifdef FIXED
    pthread_mutex_unlock(&m);
#endif
    return arg;
}
int main(void) {
    tag = __tsan_external_register_tag("object");
    both(writes, reads);
    return 0;
}
