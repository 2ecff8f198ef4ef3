// Bit tricks: three ways to count bits, reversal of bits, the lowest bit, a parity.
#include "atlas.h"

static int64_t kernighan(int64_t x) {
  int64_t n = 0;
  while (x != 0) { x &= x - 1; n += 1; }
  return n;
}
static int64_t parallel(int64_t x) {
  x = x - (x >> 1 & 0x5555555555555555);
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = x + (x >> 4) & 0x0F0F0F0F0F0F0F0F;
  return x * 0x0101010101010101 >> 56 & 255;
}
static int64_t reverse(int64_t x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  x = (x >> 4 & 0x0F0F0F0F0F0F0F0F) | (x & 0x0F0F0F0F0F0F0F0F) << 4;
  x = (x >> 8 & 0x00FF00FF00FF00FF) | (x & 0x00FF00FF00FF00FF) << 8;
  x = (x >> 16 & 0x0000FFFF0000FFFF) | (x & 0x0000FFFF0000FFFF) << 16;
  return (x >> 32 & 0xFFFFFFFF) | x << 32;
}
static bool parity(int64_t x) {
  x ^= x >> 32;
  x ^= x >> 16;
  x ^= x >> 8;
  x ^= x >> 4;
  return (0x6996 >> (x & 15) & 1) == 1;
}
int main(void) {
  int64_t n = read_int();
  int64_t x = read_int();
  int64_t ones = 0;
  int64_t slow = 0;
  int64_t odd = 0;
  int64_t hash = 0;
  int64_t i = 0;
  while (i < n) {
    x = x * 6364136223846793005 + 1442695040888963407;
    ones += parallel(x);
    if ((i & 3) == 0) { slow += kernighan(x); }
    if (parity(x)) { odd += 1; }
    hash = (hash ^ reverse(x)) * 31 + (x & -x);
    i += 1;
  }
  PRINT(ones, slow, odd, hash);
  return 0;
}
