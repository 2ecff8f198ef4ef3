// Fannkuch: permutations, reversals of the start of a small array.
#include "atlas.h"


int main(void) {
  int64_t rounds = read_int();
  int64_t n = read_int();
  INTS(perm, 0, n);
  INTS(perm1, 0, n);
  INTS(count, 0, n);
  int64_t i = 0;
  int64_t flips_max = 0;
  int64_t checksum = 0;
  while (rounds > 0) {
    i = 0;
    while (i < n) { AT(perm1, i) = i; i += 1; }
    flips_max = 0;
    int64_t r = n;
    int64_t nperm = 0;
    while (true) {
      while (r != 1) { AT(count, r - 1) = r; r -= 1; }
      i = 0;
      while (i < n) { AT(perm, i) = AT(perm1, i); i += 1; }
      int64_t flips = 0;
      int64_t k = AT(perm, 0);
      while (k != 0) {
        int64_t lo = 0;
        int64_t hi = k;
        while (lo < hi) {
          int64_t t = AT(perm, lo);
          AT(perm, lo) = AT(perm, hi);
          AT(perm, hi) = t;
          lo += 1;
          hi -= 1;
        }
        flips += 1;
        k = AT(perm, 0);
      }
      if (flips > flips_max) { flips_max = flips; }
      if (nperm % 2 == 0) { checksum += flips; } else { checksum -= flips; }
      int64_t done = false;
      while (true) {
        if (r == n) { done = true; break; }
        int64_t first = AT(perm1, 0);
        i = 0;
        while (i < r) { AT(perm1, i) = AT(perm1, i + 1); i += 1; }
        AT(perm1, r) = first;
        AT(count, r) -= 1;
        if (AT(count, r) > 0) { break; }
        r += 1;
      }
      if (done) { break; }
      nperm += 1;
    }
    rounds -= 1;
  }
  PRINT(checksum, flips_max);
  return 0;
}
