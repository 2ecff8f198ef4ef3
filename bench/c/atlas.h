// What the C twins of the bench programs share: the language's types, checks and input, as a C programmer would write
// them. Compiled with -fwrapv, so that arithmetic wraps as in Atlas.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { int64_t *at; int64_t len; } ints;
typedef struct { bool *at; int64_t len; } bools;

__attribute__((noreturn, cold, noinline)) static void stop(const char *message) {
    fflush(stdout);
    fprintf(stderr, "error: %s\n", message);
    exit(101);
}

// An element, checked: an unsigned comparison finds negative indices too.
#define AT(array, index)                                                          \
    (*({                                                                          \
        int64_t index_ = (index);                                                 \
        if (__builtin_expect((uint64_t)index_ >= (uint64_t)(array).len, 0))       \
            stop("index out of bounds");                                          \
        &(array).at[index_];                                                      \
    }))

static inline int64_t quotient(int64_t a, int64_t b) {
    if (__builtin_expect(b == 0, 0)) stop("division by zero");
    return b == -1 ? -a : a / b;
}

static inline int64_t remainder_of(int64_t a, int64_t b) {
    if (__builtin_expect(b == 0, 0)) stop("division by zero");
    return b == -1 ? 0 : a % b;
}

#define ASSERT(condition) \
    if (!(condition)) stop("assertion failed")

static inline ints new_ints(int64_t value, int64_t len) {
    if (len < 0) stop("negative array length");
    ints array = {value == 0 ? calloc(len + 1, 8) : malloc(8 * (len + 1)), len};
    if (!array.at) stop("out of memory");
    if (value != 0)
        for (int64_t i = 0; i < len; i++) array.at[i] = value;
    return array;
}

static inline bools new_bools(bool value, int64_t len) {
    if (len < 0) stop("negative array length");
    bools array = {value ? malloc(len + 1) : calloc(len + 1, 1), len};
    if (!array.at) stop("out of memory");
    if (value)
        for (int64_t i = 0; i < len; i++) array.at[i] = true;
    return array;
}

static inline void free_ints(ints *array) { free(array->at); }
static inline void free_bools(bools *array) { free(array->at); }

// Arrays are freed when their block is left.
#define INTS(name, value, len) ints name __attribute__((cleanup(free_ints))) = new_ints(value, len)
#define BOOLS(name, value, len) bools name __attribute__((cleanup(free_bools))) = new_bools(value, len)

static inline int64_t read_int(void) {
    long long value;
    if (scanf("%lld", &value) != 1) stop("no integer to read");
    return value;
}

static inline void print_line(const int64_t *values, int count) {
    for (int i = 0; i < count; i++) printf("%lld%c", (long long)values[i], i + 1 < count ? ' ' : '\n');
}

#define PRINT(...)                                       \
    do {                                                 \
        int64_t values_[] = {__VA_ARGS__};               \
        print_line(values_, sizeof values_ / sizeof *values_); \
    } while (0)
