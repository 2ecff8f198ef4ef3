// The longest Collatz chain below a limit: an unpredictable branch, shifts and multiplications in a tight loop.
#include "atlas.h"


int main(void) {
  int64_t limit = read_int();
  int64_t best = 0;
  int64_t best_length = 0;
  int64_t total = 0;
  int64_t start = 1;
  while (start < limit) {
    int64_t n = start;
    int64_t length = 1;
    while (n != 1) {
      if (n % 2 == 0) {
        n = n / 2;
      } else {
        n = 3 * n + 1;
      }
      length += 1;
    }
    total += length;
    if (length > best_length) {
      best = start;
      best_length = length;
    }
    start += 1;
  }
  PRINT(best, best_length, total);
  return 0;
}
