// The naive Fibonacci recursion: call overhead.
#include "atlas.h"

static int64_t fib(int64_t n) {
  if (n < 2) { return n; }
  return fib(n - 1) + fib(n - 2);
}
int main(void) {
  PRINT(fib(read_int()));
  return 0;
}
