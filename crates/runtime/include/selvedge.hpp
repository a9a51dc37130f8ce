/* What a C++ program can tell Selvedge about its deterministic and atomic blocks; see selvedge.h. In code that is not
 * instrumented everything here is empty.
 *
 *   selvedge::Deterministic block("name");          a block, until the end of the scope
 *   selvedge::assume(name, value[, predicate]);     value: an arithmetic type, std::string, std::vector of those
 *   selvedge::ensure(name, value[, predicate]);
 *   selvedge::Atomic block("name");                 an atomic block, until the end of the scope
 *   selvedge::observe(name, value[, predicate]);
 *
 * Predicates are those of selvedge.h: SELVEDGE_WITHIN(1e-10) and so on.
 */
#ifndef SELVEDGE_HPP
#define SELVEDGE_HPP

#include <cstring>
#include <string>
#include <vector>

#include "selvedge.h"

namespace selvedge {

using predicate = ::selvedge_predicate;

/* A block that claims to be deterministic, until it is destroyed. The name must live as long as the program. */
class Deterministic {
  public:
#ifdef SELVEDGE_ACTIVE
    __attribute__((always_inline)) explicit Deterministic(const char *name) {
        SELVEDGE_CALL(selvedge_region_enter, (name, 1));
    }
    __attribute__((always_inline)) ~Deterministic() { SELVEDGE_CALL(selvedge_region_exit, ()); }
#else
    explicit Deterministic(const char *) {}
    ~Deterministic() {}
#endif
    Deterministic(const Deterministic &) = delete;
    Deterministic &operator=(const Deterministic &) = delete;
};

/* A block that claims to be atomic, until it is destroyed. The name must live as long as the program. */
class Atomic {
  public:
#ifdef SELVEDGE_ACTIVE
    __attribute__((always_inline)) explicit Atomic(const char *name) {
        SELVEDGE_CALL(selvedge_region_enter, (name, 0));
    }
    __attribute__((always_inline)) ~Atomic() { SELVEDGE_CALL(selvedge_region_exit, ()); }
#else
    explicit Atomic(const char *) {}
    ~Atomic() {}
#endif
    Atomic(const Atomic &) = delete;
    Atomic &operator=(const Atomic &) = delete;
};

namespace detail {

#ifdef SELVEDGE_ACTIVE
inline void hand_over(unsigned call, const char *name, unsigned type, const void *data, std::size_t count,
                      const predicate &same, const void *place) {
    if (selvedge_hand_over) {
        ::selvedge_value value = selvedge_value_of(call, name, type, data, count, same);
        value.place = place;
        selvedge_hand_over(&value);
    }
}

template <class T>
void give(unsigned call, const char *name, const T &value, const predicate &same, const void *place) {
    hand_over(call, name, ::selvedge_type_of<T>::number, &value, 1, same, place);
}

inline void give(unsigned call, const char *name, const std::string &value, const predicate &same,
                 const void *place) {
    hand_over(call, name, SELVEDGE_TEXT_TYPE, value.data(), value.size(), same, place);
}

template <class T, class A>
void give(unsigned call, const char *name, const std::vector<T, A> &value, const predicate &same,
          const void *place) {
    hand_over(call | 16, name, ::selvedge_type_of<T>::number, value.data(), value.size(), same, place);
}

template <class A>
void give(unsigned call, const char *name, const std::vector<bool, A> &value, const predicate &same,
          const void *place) {
    std::vector<unsigned char> bytes(value.begin(), value.end());
    hand_over(call | 16, name, ::selvedge_type_of<bool>::number, bytes.data(), bytes.size(), same, place);
}

/* Texts follow each other, each behind its length. */
template <class A>
void give(unsigned call, const char *name, const std::vector<std::string, A> &value, const predicate &same,
          const void *place) {
    std::vector<unsigned char> bytes;
    for (const std::string &text : value) {
        const unsigned long long length = text.size();
        unsigned char head[sizeof length];
        std::memcpy(head, &length, sizeof length);
        bytes.insert(bytes.end(), head, head + sizeof length);
        bytes.insert(bytes.end(), text.begin(), text.end());
    }
    hand_over(call | 16, name, 17, bytes.data(), bytes.size(), same, place);
}
#else
template <class T> void give(unsigned, const char *, const T &, const predicate &, const void *) {}
#endif

} /* namespace detail */

#ifdef SELVEDGE_ACTIVE
#define SELVEDGE_PLACE __builtin_return_address(0)
#define SELVEDGE_OUT_OF_LINE __attribute__((noinline))
#else
#define SELVEDGE_PLACE nullptr
#define SELVEDGE_OUT_OF_LINE inline
#endif

/* What two executions must have in common to be compared. */
template <class T>
SELVEDGE_OUT_OF_LINE void assume(const char *name, const T &value, const predicate &same = SELVEDGE_EXACT) {
    detail::give(1, name, value, same, SELVEDGE_PLACE);
}

/* What must then be the same. */
template <class T>
SELVEDGE_OUT_OF_LINE void ensure(const char *name, const T &value, const predicate &same = SELVEDGE_EXACT) {
    detail::give(2, name, value, same, SELVEDGE_PLACE);
}

/* What must be as in some execution in which each atomic block runs alone. */
template <class T>
SELVEDGE_OUT_OF_LINE void observe(const char *name, const T &value, const predicate &same = SELVEDGE_EXACT) {
    detail::give(4, name, value, same, SELVEDGE_PLACE);
}

#undef SELVEDGE_PLACE
#undef SELVEDGE_OUT_OF_LINE

} /* namespace selvedge */

#endif
