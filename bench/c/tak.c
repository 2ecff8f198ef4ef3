// Takeuchi's function: deep recursion with three arguments, four calls in one expression.
#include "atlas.h"

static int64_t tak(int64_t x, int64_t y, int64_t z) {
  if (y >= x) { return z; }
  return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
}
int main(void) {
  int64_t rounds = read_int();
  int64_t x = read_int();
  int64_t y = read_int();
  int64_t z = read_int();
  int64_t sum = 0;
  while (rounds > 0) {
    sum += tak(x + rounds % 3, y, z + rounds % 2);
    rounds -= 1;
  }
  PRINT(sum);
  return 0;
}
