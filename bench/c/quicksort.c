// Quicksort of pseudorandom numbers: data-dependent branches, recursion, swaps in an array.
#include "atlas.h"

static void sort(ints v, int64_t low, int64_t high) {
  while (low < high) {
    int64_t pivot = AT(v, (low + high) / 2);
    int64_t i = low;
    int64_t j = high;
    while (i <= j) {
      while (AT(v, i) < pivot) { i += 1; }
      while (AT(v, j) > pivot) { j -= 1; }
      if (i <= j) {
        int64_t t = AT(v, i);
        AT(v, i) = AT(v, j);
        AT(v, j) = t;
        i += 1;
        j -= 1;
      }
    }
    if (j - low < high - i) {
      sort(v, low, j);
      low = i;
    } else {
      sort(v, i, high);
      high = j;
    }
  }
}
int main(void) {
  int64_t n = read_int();
  int64_t seed = read_int();
  INTS(v, 0, n);
  int64_t i = 0;
  while (i < n) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    AT(v, i) = seed;
    i += 1;
  }
  sort(v, 0, n - 1);
  int64_t hash = 0;
  int64_t sorted = true;
  i = 0;
  while (i < n) {
    if (i > 0 && AT(v, i - 1) > AT(v, i)) { sorted = false; }
    hash = hash * 31 + AT(v, i);
    i += 1;
  }
  printf("%s ", sorted ? "true" : "false");
  PRINT(AT(v, 0), AT(v, n / 2), AT(v, n - 1), hash);
  return 0;
}
