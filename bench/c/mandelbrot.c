// The Mandelbrot set in fixed point (28 bits of fraction): multiplications and shifts, a loop with two ways out.
#include "atlas.h"


int main(void) {
  int64_t width = read_int();
  int64_t height = read_int();
  int64_t limit = read_int();
  int64_t one = 1 << 28;
  int64_t inside = 0;
  int64_t steps = 0;
  int64_t hash = 0;
  int64_t py = 0;
  while (py < height) {
    int64_t ci = quotient(2 * one * py, height) - one;
    int64_t px = 0;
    while (px < width) {
      int64_t cr = quotient(3 * one * px, width) - 2 * one;
      int64_t zr = 0;
      int64_t zi = 0;
      int64_t n = 0;
      while (n < limit) {
        int64_t r2 = zr * zr >> 28;
        int64_t i2 = zi * zi >> 28;
        if (r2 + i2 > 4 * one) { break; }
        zi = (zr * zi >> 27) + ci;
        zr = r2 - i2 + cr;
        n += 1;
      }
      if (n == limit) { inside += 1; }
      steps += n;
      hash = (hash ^ n) * 1099511628211;
      px += 1;
    }
    py += 1;
  }
  PRINT(inside, steps, hash);
  return 0;
}
