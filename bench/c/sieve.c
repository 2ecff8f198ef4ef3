// The sieve of Eratosthenes: stores with a stride into a large array of bools.
#include "atlas.h"


int main(void) {
  int64_t rounds = read_int();
  int64_t n = read_int();
  int64_t count = 0;
  int64_t sum = 0;
  while (rounds > 0) {
    BOOLS(composite, false, n + 1);
    count = 0;
    int64_t p = 2;
    while (p <= n) {
      if (!AT(composite, p)) {
        count += 1;
        sum += p;
        int64_t m = p * p;
        while (m <= n) {
          AT(composite, m) = true;
          m += p;
        }
      }
      p += 1;
    }
    rounds -= 1;
  }
  PRINT(count, sum);
  return 0;
}
