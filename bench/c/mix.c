// Random number generators (xorshift, LCG, a splitmix finisher): shifts, exclusive or, wrapping multiplication.
#include "atlas.h"


int main(void) {
  int64_t n = read_int();
  int64_t x = read_int();
  int64_t lcg = read_int();
  int64_t counter = 0;
  int64_t sum = 0;
  int64_t bits = 0;
  while (n > 0) {
    x ^= x << 13;
    x ^= x >> 7 & 0x01FFFFFFFFFFFFFF;
    x ^= x << 17;
    lcg = lcg * 6364136223846793005 + 1442695040888963407;
    counter += 0x9E3779B97F4A7C15;
    int64_t z = counter;
    z = (z ^ (z >> 30 & 0x3FFFFFFFF)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27 & 0x1FFFFFFFFF)) * 0x94D049BB133111EB;
    z ^= z >> 31 & 0x1FFFFFFFF;
    sum += (x ^ lcg) + z;
    if (z < 0) { bits += 1; }
    n -= 1;
  }
  PRINT(x, lcg, counter, sum, bits);
  return 0;
}
