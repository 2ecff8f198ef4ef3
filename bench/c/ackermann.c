// Ackermann's function: deep recursion, a tail call among the calls.
#include "atlas.h"

static int64_t ack(int64_t m, int64_t n) {
  if (m == 0) { return n + 1; }
  if (n == 0) { return ack(m - 1, 1); }
  return ack(m - 1, ack(m, n - 1));
}
int main(void) {
  int64_t m = read_int();
  int64_t top = read_int();
  int64_t n = 0;
  while (n <= top) {
    PRINT(m, n, ack(m, n));
    n += 1;
  }
  return 0;
}
