// The edit distance and the longest common subsequence of two texts: dynamic programming over rows.
#include "atlas.h"

static int64_t min(int64_t a, int64_t b) { if (a < b) { return a; } return b; }
static int64_t max(int64_t a, int64_t b) { if (a > b) { return a; } return b; }
int main(void) {
  int64_t n = read_int();
  int64_t m = read_int();
  int64_t seed = read_int();
  INTS(a, 0, n);
  INTS(b, 0, m);
  int64_t i = 0;
  while (i < n) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    AT(a, i) = seed / 65536 % 4;
    i += 1;
  }
  int64_t j = 0;
  while (j < m) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    AT(b, j) = seed / 65536 % 4;
    j += 1;
  }
  INTS(row, 0, m + 1);
  INTS(lcs, 0, m + 1);
  j = 0;
  while (j <= m) { AT(row, j) = j; j += 1; }
  i = 1;
  while (i <= n) {
    int64_t diagonal = AT(row, 0);
    int64_t corner = 0;
    AT(row, 0) = i;
    j = 1;
    while (j <= m) {
      int64_t above = AT(row, j);
      int64_t over = AT(lcs, j);
      if (AT(a, i - 1) == AT(b, j - 1)) {
        AT(row, j) = diagonal;
        AT(lcs, j) = corner + 1;
      } else {
        AT(row, j) = 1 + min(min(above, AT(row, j - 1)), diagonal);
        AT(lcs, j) = max(over, AT(lcs, j - 1));
      }
      diagonal = above;
      corner = over;
      j += 1;
    }
    i += 1;
  }
  PRINT(AT(row, m), AT(lcs, m));
  return 0;
}
