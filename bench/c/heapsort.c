// Heapsort: jumps through an array, two comparisons of elements per step.
#include "atlas.h"

static void sift(ints v, int64_t root, int64_t end) {
  int64_t x = AT(v, root);
  while (true) {
    int64_t child = 2 * root + 1;
    if (child >= end) { break; }
    if (child + 1 < end && AT(v, child + 1) > AT(v, child)) { child += 1; }
    if (AT(v, child) <= x) { break; }
    AT(v, root) = AT(v, child);
    root = child;
  }
  AT(v, root) = x;
}
int main(void) {
  int64_t n = read_int();
  int64_t seed = read_int();
  INTS(v, 0, n);
  int64_t i = 0;
  while (i < n) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    AT(v, i) = seed >> 33;
    i += 1;
  }
  i = n / 2 - 1;
  while (i >= 0) {
    sift(v, i, n);
    i -= 1;
  }
  int64_t end = n - 1;
  while (end > 0) {
    int64_t t = AT(v, 0);
    AT(v, 0) = AT(v, end);
    AT(v, end) = t;
    sift(v, 0, end);
    end -= 1;
  }
  int64_t hash = 0;
  i = 1;
  while (i < n) {
    ASSERT(AT(v, i - 1) <= AT(v, i));
    hash = hash * 1000003 + AT(v, i);
    i += 1;
  }
  PRINT(AT(v, 0), AT(v, n - 1), hash);
  return 0;
}
