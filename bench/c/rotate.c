// Values that change places in every round of a loop: a rotation of three by addition, a permutation of eight with two
#include "atlas.h"


int main(void) {
// cycles, a swap under a condition. In SSA form, phis in cycles.
  int64_t n = read_int();
  int64_t a = 0;
  int64_t b = 1;
  int64_t c = 1;
  int64_t p1 = 1;
  int64_t p2 = 2;
  int64_t p3 = 3;
  int64_t p4 = 4;
  int64_t p5 = 5;
  int64_t p6 = 6;
  int64_t p7 = 7;
  int64_t p8 = 8;
  int64_t x = read_int();
  int64_t y = read_int();
  int64_t last = 0;
  int64_t i = 0;
  while (i < n) {
    int64_t t = a + b + c;
    a = b;
    b = c;
    c = t;
    int64_t q1 = p1;
    p1 = p2;
    p2 = p3;
    p3 = p4;
    p4 = p5;
    p5 = q1;
    int64_t q6 = p6;
    p6 = p8;
    p8 = p7;
    p7 = q6;
    if ((t & 1) == 0) {
      int64_t s = x;
      x = y + p1;
      y = s;
    }
    last = x;
    x = x ^ i;
    i += 1;
  }
  PRINT(a, b, c);
  PRINT(p1, p2, p3, p4, p5, p6, p7, p8);
  PRINT(x, y, last);
  return 0;
}
