#include "corpus.h"
#include <ucontext.h>
// Fibers: a switch orders the two, unless the program says that it does not.
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_set_fiber_name(void *fiber, const char *name);
#ifdef FIXED
enum { UNORDERED = 0 };
#else
enum { UNORDERED = 1 };
#endif
int unordered, ordered;
static ucontext_t main_context, context;
static void *main_fiber;
static char stack[1 << 16];
static void work(void) {
    __tsan_set_fiber_name(__tsan_get_current_fiber(), "worker");
    unordered = 1; // race(switch)
    __tsan_switch_to_fiber(main_fiber, UNORDERED);
    swapcontext(&context, &main_context);
    ordered = 1;
    __tsan_switch_to_fiber(main_fiber, 0);
    swapcontext(&context, &main_context);
}
int main(void) {
    main_fiber = __tsan_get_current_fiber();
    void *fiber = __tsan_create_fiber(0);
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof stack;
    makecontext(&context, work, 0);
    __tsan_switch_to_fiber(fiber, 0);
    swapcontext(&main_context, &context);
    unordered = 2; // race(switch)
    __tsan_switch_to_fiber(fiber, 0);
    swapcontext(&main_context, &context);
    ordered = 2;
    __tsan_destroy_fiber(fiber);
    return 0;
}
