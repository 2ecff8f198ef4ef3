// Integer matrices in flat arrays: three nested loops with index arithmetic.
#include "atlas.h"

static void multiply(int64_t n, ints a, ints b, ints c) {
  int64_t i = 0;
  while (i < n) {
    int64_t j = 0;
    while (j < n) {
      int64_t sum = 0;
      int64_t k = 0;
      while (k < n) {
        sum += AT(a, i * n + k) * AT(b, k * n + j);
        k += 1;
      }
      AT(c, i * n + j) = sum;
      j += 1;
    }
    i += 1;
  }
}
int main(void) {
  int64_t n = read_int();
  INTS(a, 0, n * n);
  INTS(b, 0, n * n);
  INTS(c, 0, n * n);
  int64_t i = 0;
  while (i < n * n) {
    AT(a, i) = i * 7 % 101 - 50;
    AT(b, i) = i * 13 % 89 - 44;
    i += 1;
  }
  multiply(n, a, b, c);
  multiply(n, c, a, b);
  int64_t trace = 0;
  int64_t mix = 0;
  i = 0;
  while (i < n) {
    trace += AT(b, i * n + i);
    i += 1;
  }
  i = 0;
  while (i < n * n) {
    mix = mix * 31 + AT(b, i);
    i += 1;
  }
  PRINT(trace, mix);
  return 0;
}
