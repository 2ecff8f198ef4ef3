// Twenty-four values that live through the whole loop, each made from others: more than there are registers.
#include "atlas.h"


int main(void) {
  int64_t n = read_int();
  int64_t a0 = read_int(); int64_t a1 = read_int(); int64_t a2 = read_int(); int64_t a3 = read_int(); int64_t a4 = read_int(); int64_t a5 = read_int();
  int64_t b0 = 1; int64_t b1 = 2; int64_t b2 = 3; int64_t b3 = 4; int64_t b4 = 5; int64_t b5 = 6;
  int64_t c0 = a0 ^ 7; int64_t c1 = a1 ^ 7; int64_t c2 = a2 ^ 7; int64_t c3 = a3 ^ 7; int64_t c4 = a4 ^ 7; int64_t c5 = a5 ^ 7;
  int64_t d0 = 11; int64_t d1 = 13; int64_t d2 = 17; int64_t d3 = 19; int64_t d4 = 23; int64_t d5 = 29;
  int64_t i = 0;
  while (i < n) {
    a0 += b3 ^ c1; a1 -= b4 & c2; a2 ^= b5 + c3; a3 += b0 | c4; a4 -= b1 ^ c5; a5 ^= b2 - c0;
    b0 = b0 * 3 + d1; b1 = b1 * 5 + d2; b2 = b2 + a3; b3 = b3 ^ a4; b4 = b4 - a5; b5 = b5 + (a0 >> 3);
    c0 += a1 << 1; c1 ^= a2 >> 2; c2 += b1; c3 -= b2; c4 ^= b3; c5 += b4;
    if (c0 < c1) { d0 += i; } else { d1 -= i; }
    d2 ^= c2; d3 += c3 & 255; d4 -= c4 | 1; d5 = d5 * 7 + c5;
    i += 1;
  }
  PRINT(a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5);
  PRINT(c0, c1, c2, c3, c4, c5, d0, d1, d2, d3, d4, d5);
  return 0;
}
