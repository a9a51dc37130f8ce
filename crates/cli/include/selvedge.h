/*
 * What a program can tell Selvedge about itself.
 *
 * Everything here compiles to nothing unless the program is built with `selvedge cc`, `selvedge c++`
 * or with SELVEDGE defined; only pointers and string constants are passed, nothing is allocated.
 *
 *   SELVEDGE_HAPPENS_BEFORE(p)   what this thread did until here ...
 *   SELVEDGE_HAPPENS_AFTER(p)    ... happens before what a thread does after this, with the same p.
 *                                For synchronization that is made by hand.
 *   SELVEDGE_IGNORE_BEGIN()      until the matching end, this thread's accesses are not looked at.
 *   SELVEDGE_IGNORE_END()        They nest.
 *   SELVEDGE_ATOMIC_BEGIN(name)  the code until the matching end is meant to behave as if nothing
 *   SELVEDGE_ATOMIC_END()        else ran meanwhile.
 *   SELVEDGE_DETERMINISTIC_BEGIN(name)   the result of the code until the matching end, and of the
 *   SELVEDGE_DETERMINISTIC_END()         threads it starts, is meant not to depend on the schedule.
 *
 * Names are string constants. Regions nest, and end in the function in which they begin.
 */
#ifndef SELVEDGE_H
#define SELVEDGE_H

#ifdef SELVEDGE

#ifdef __cplusplus
extern "C" {
#endif
void selvedge_happens_before(const volatile void *object);
void selvedge_happens_after(const volatile void *object);
void selvedge_ignore_begin(void);
void selvedge_ignore_end(void);
void selvedge_region_enter(const char *name, int kind);
void selvedge_region_exit(void);
#ifdef __cplusplus
}
#endif

#define SELVEDGE_HAPPENS_BEFORE(object) selvedge_happens_before(object)
#define SELVEDGE_HAPPENS_AFTER(object) selvedge_happens_after(object)
#define SELVEDGE_IGNORE_BEGIN() selvedge_ignore_begin()
#define SELVEDGE_IGNORE_END() selvedge_ignore_end()
#define SELVEDGE_ATOMIC_BEGIN(name) selvedge_region_enter(name, 0)
#define SELVEDGE_ATOMIC_END() selvedge_region_exit()
#define SELVEDGE_DETERMINISTIC_BEGIN(name) selvedge_region_enter(name, 1)
#define SELVEDGE_DETERMINISTIC_END() selvedge_region_exit()

#else

#define SELVEDGE_HAPPENS_BEFORE(object) ((void)0)
#define SELVEDGE_HAPPENS_AFTER(object) ((void)0)
#define SELVEDGE_IGNORE_BEGIN() ((void)0)
#define SELVEDGE_IGNORE_END() ((void)0)
#define SELVEDGE_ATOMIC_BEGIN(name) ((void)0)
#define SELVEDGE_ATOMIC_END() ((void)0)
#define SELVEDGE_DETERMINISTIC_BEGIN(name) ((void)0)
#define SELVEDGE_DETERMINISTIC_END() ((void)0)

#endif

#endif
