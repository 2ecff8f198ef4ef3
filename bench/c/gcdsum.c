// The sum of gcd(a, b) over a square: division in a short loop, a small function called often.
#include "atlas.h"

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t t = remainder_of(a, b);
    a = b;
    b = t;
  }
  return a;
}
int main(void) {
  int64_t n = read_int();
  int64_t sum = 0;
  int64_t coprime = 0;
  int64_t a = 1;
  while (a <= n) {
    int64_t b = 1;
    while (b <= a) {
      int64_t g = gcd(a, b);
      sum += g;
      if (g == 1) { coprime += 1; }
      b += 1;
    }
    a += 1;
  }
  PRINT(sum, coprime);
  return 0;
}
