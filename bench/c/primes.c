// Primes by trial division by the primes found so far: division by a loaded value, an early way out.
#include "atlas.h"


int main(void) {
  int64_t limit = read_int();
  INTS(primes, 0, limit / 4 + 10);
  AT(primes, 0) = 2;
  int64_t count = 1;
  int64_t sum = 2;
  int64_t n = 3;
  while (n < limit) {
    int64_t is_prime = true;
    int64_t k = 0;
    while (k < count && AT(primes, k) * AT(primes, k) <= n) {
      if (remainder_of(n, AT(primes, k)) == 0) { is_prime = false; break; }
      k += 1;
    }
    if (is_prime) {
      AT(primes, count) = n;
      count += 1;
      sum += n;
    }
    n += 2;
  }
  PRINT(count, sum, AT(primes, count - 1));
  return 0;
}
