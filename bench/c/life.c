// Conway's game of life on a torus: eight loads per cell, bools turned into ints.
#include "atlas.h"

static void step(bools now, bools next, int64_t w, int64_t h) {
  int64_t y = 0;
  while (y < h) {
    int64_t above = remainder_of(y + h - 1, h) * w;
    int64_t here = y * w;
    int64_t below = remainder_of(y + 1, h) * w;
    int64_t x = 0;
    while (x < w) {
      int64_t left = x - 1;
      if (left < 0) { left = w - 1; }
      int64_t right = x + 1;
      if (right == w) { right = 0; }
      int64_t n = (int64_t)(AT(now, above + left)) + (int64_t)(AT(now, above + x)) + (int64_t)(AT(now, above + right))
            + (int64_t)(AT(now, here + left)) + (int64_t)(AT(now, here + right))
            + (int64_t)(AT(now, below + left)) + (int64_t)(AT(now, below + x)) + (int64_t)(AT(now, below + right));
      AT(next, here + x) = n == 3 || n == 2 && AT(now, here + x);
      x += 1;
    }
    y += 1;
  }
}
int main(void) {
  int64_t w = read_int();
  int64_t h = read_int();
  int64_t rounds = read_int();
  int64_t seed = read_int();
  BOOLS(a, false, w * h);
  BOOLS(b, false, w * h);
  int64_t i = 0;
  while (i < w * h) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    AT(a, i) = seed / 65536 % 3 == 0;
    i += 1;
  }
  int64_t r = 0;
  while (r < rounds) {
    step(a, b, w, h);
    step(b, a, w, h);
    r += 1;
  }
  int64_t alive = 0;
  int64_t hash = 0;
  i = 0;
  while (i < w * h) {
    if (AT(a, i)) { alive += 1; hash = hash * 31 + i; }
    i += 1;
  }
  PRINT(alive, hash);
  return 0;
}
