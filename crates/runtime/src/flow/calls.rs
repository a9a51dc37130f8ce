//! What is known of functions that are not followed.
//!
//! The runtime sees which memory functions of the C library read and write. What is read flows into what is written
//! and into the result, and so do the arguments. Here stands for which functions that is all there is.

/// What a call that is not followed does beside the memory that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Synchronization and memory management: the runtime records it. The result depends on nothing of the program.
    Recorded,
    /// The result depends on arguments and on what is read, and that is all.
    Computes,
    /// It also calls the program back.
    CallsBack,
    /// It shows arguments and what it reads.
    Shows,
    /// Nothing: it may do anything.
    Nothing,
}

/// Functions whose memory accesses the runtime sees, and that depend on nothing else.
const COMPUTE: &[&str] = &[
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "memrchr",
    "strlen",
    "strnlen",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strchr",
    "strrchr",
    "strstr",
    "strcpy",
    "strncpy",
    "strcat",
    "strncat",
    "strdup",
    "strndup",
    "stpcpy",
    "strspn",
    "strcspn",
    "strpbrk",
    "strtok",
    "strtok_r",
    "strtol",
    "strtoul",
    "strtoll",
    "strtoull",
    "strtod",
    "atoi",
    "atol",
    "atof",
    "abs",
    "labs",
    "llabs",
    "sqrt",
    "sqrtf",
    "sin",
    "cos",
    "tan",
    "exp",
    "log",
    "log2",
    "log10",
    "pow",
    "floor",
    "ceil",
    "fabs",
    "fmod",
    "round",
    "lround",
    "fmin",
    "fmax",
    "sinf",
    "cosf",
    "expf",
    "logf",
    "powf",
    "atan",
    "atan2",
    "asin",
    "acos",
    "sinh",
    "cosh",
    "tanh",
    "cbrt",
    "hypot",
    "toupper",
    "tolower",
    "isalpha",
    "isdigit",
    "isalnum",
    "isspace",
    "isupper",
    "islower",
    "__ctype_b_loc",
    "__ctype_tolower_loc",
    "__ctype_toupper_loc",
    "__errno_location",
    "snprintf",
    "sprintf",
    "vsnprintf",
    "vsprintf",
    "sscanf",
    "__isoc99_sscanf",
    "getenv",
    "sysconf",
    "gettimeofday",
    "clock_gettime",
    "time",
    "clock",
    "strerror",
];

/// Functions that write to files and descriptors.
const SHOW: &[&str] = &[
    "printf",
    "fprintf",
    "vprintf",
    "vfprintf",
    "dprintf",
    "puts",
    "putchar",
    "putc",
    "fputc",
    "fputs",
    "fwrite",
    "write",
    "pwrite",
    "writev",
    "perror",
    "exit",
    "_exit",
    "abort",
    "__assert_fail",
    "fflush",
];

/// Functions that the runtime records as events, or that only manage memory and threads.
const RECORDED: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "sched_yield",
    "usleep",
    "sleep",
    "nanosleep",
    "atexit",
    "fclose",
    "setvbuf",
    "call_once",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort",
];

/// Prefixes of functions that the runtime records as events.
const RECORDED_PREFIXES: &[&str] = &["pthread_", "sem_", "mtx_", "cnd_", "thrd_", "selvedge_"];

/// Functions of these that tell what others do: whether a lock was free is no event.
const UNTOLD: &[&str] = &[
    "pthread_mutex_trylock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_trywrlock",
    "pthread_spin_trylock",
    "mtx_trylock",
    "sem_trywait",
    "sem_getvalue",
    "pthread_kill",
    "pthread_cancel",
    "pthread_mutex_timedlock",
    "pthread_cond_timedwait",
];

/// What is known of a function.
pub fn known(name: &str) -> Known {
    let is_in = |list: &[&str]| list.contains(&name);
    if is_in(UNTOLD) {
        Known::Nothing
    } else if is_in(RECORDED) || RECORDED_PREFIXES.iter().any(|p| name.starts_with(p)) {
        Known::Recorded
    } else if is_in(COMPUTE) {
        Known::Computes
    } else if matches!(name, "qsort" | "bsearch" | "qsort_r") {
        Known::CallsBack
    } else if is_in(SHOW) {
        Known::Shows
    } else {
        Known::Nothing
    }
}
