#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Run-time errors end the program with status 101, after its output. */
static _Noreturn __attribute__((cold, noinline)) void fail(const char *message, int line, int column)
{
    if (fflush(stdout) == 0)
        fprintf(stderr, "error: %s\n --> %s:%d:%d\n", message, source_name, line, column);
    else
        fprintf(stderr, "error: cannot write to standard output\n");
    exit(101);
}
static _Noreturn __attribute__((cold, noinline)) void fail_index(int64_t index, int64_t length, int line, int column)
{
    char message[96];
    snprintf(message, sizeof message, "index %lld out of bounds for an array of length %lld", (long long)index,
             (long long)length);
    fail(message, line, column);
}

/* Arithmetic of 64 bits that wraps. */
static inline int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t neg(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
static inline int64_t shl(int64_t a, int64_t b) { return (int64_t)((uint64_t)a << (b & 63)); }
static inline int64_t shr(int64_t a, int64_t b) { return a >> (b & 63); }
static inline int64_t quotient(int64_t a, int64_t b, int line, int column)
{
    if (b == 0)
        fail("division by zero", line, column);
    return b == -1 ? neg(a) : a / b;
}
static inline int64_t remainder_of(int64_t a, int64_t b, int line, int column)
{
    if (b == 0)
        fail("division by zero", line, column);
    return b == -1 ? 0 : a % b;
}

/* An array is the address of its first element; its length stands in the eight bytes before. */
static inline int64_t length(const void *array) { return ((const int64_t *)array)[-1]; }
static void *new_array(int64_t count, int64_t size, bool zeroed, int line, int column)
{
    if (count < 0) {
        char message[64];
        snprintf(message, sizeof message, "negative array length %lld", (long long)count);
        fail(message, line, column);
    }
    int64_t *memory = NULL;
    if (count <= (INT64_MAX - 8) / size)
        memory = zeroed ? calloc(1, (size_t)(count * size + 8)) : malloc((size_t)(count * size + 8));
    if (!memory)
        fail("out of memory", line, column);
    *memory = count;
    return memory + 1;
}
static inline int64_t *array_int(int64_t count, int64_t value, int line, int column)
{
    int64_t *array = new_array(count, 8, value == 0, line, column);
    if (value != 0)
        for (int64_t i = 0; i < count; i++)
            array[i] = value;
    return array;
}
static inline bool *array_bool(int64_t count, bool value, int line, int column)
{
    bool *array = new_array(count, 1, !value, line, column);
    if (value)
        memset(array, 1, (size_t)count);
    return array;
}
static inline void free_array(void *array) { free((int64_t *)array - 1); }
static inline void bounds(int64_t index, int64_t count, int line, int column)
{
    if ((uint64_t)index >= (uint64_t)count)
        fail_index(index, count, line, column);
}

/* Output. */
static inline void put_int(int64_t value, char end) { printf("%lld%c", (long long)value, end); }
static inline void put_bool(bool value, char end) { printf("%s%c", value ? "true" : "false", end); }
static inline void put_text(const char *text, size_t bytes, char end)
{
    fwrite(text, 1, bytes, stdout);
    putchar(end);
}

/* Input: integers separated by white space. */
static int next_character(void)
{
    int c = getchar();
    while (c == ' ' || (c >= '\t' && c <= '\r'))
        c = getchar();
    return c;
}
static inline bool at_end(void)
{
    int c = next_character();
    if (c != EOF)
        ungetc(c, stdin);
    return c == EOF;
}
static int64_t read_int(int line, int column)
{
    int c = next_character();
    if (c == EOF)
        fail("no integer to read", line, column);
    bool negative = c == '-', good = false, fits = true;
    uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
    if (c == '-' || c == '+')
        c = getchar();
    for (; c >= '0' && c <= '9'; c = getchar()) {
        uint64_t digit = (uint64_t)(c - '0');
        good = true;
        fits = fits && value <= (limit - digit) / 10;
        value = value * 10 + digit;
    }
    if (c != EOF && c != ' ' && !(c >= '\t' && c <= '\r'))
        good = false;
    if (!good || !fits)
        fail("malformed integer in the input", line, column);
    return negative ? (int64_t)(0 - value) : (int64_t)value;
}

