// All ways to place n queens: backtracking with arrays of bools shared by the calls.
#include "atlas.h"

static int64_t place(int64_t n, int64_t row, bools columns, bools up, bools down) {
  if (row == n) { return 1; }
  int64_t ways = 0;
  int64_t c = 0;
  while (c < n) {
    if (!AT(columns, c) && !AT(up, row + c) && !AT(down, row - c + n)) {
      AT(columns, c) = true;
      AT(up, row + c) = true;
      AT(down, row - c + n) = true;
      ways += place(n, row + 1, columns, up, down);
      AT(columns, c) = false;
      AT(up, row + c) = false;
      AT(down, row - c + n) = false;
    }
    c += 1;
  }
  return ways;
}
int main(void) {
  int64_t rounds = read_int();
  int64_t n = read_int();
  BOOLS(columns, false, n);
  BOOLS(up, false, 2 * n);
  BOOLS(down, false, 2 * n + 1);
  int64_t ways = 0;
  while (rounds > 0) {
    ways += place(n, 0, columns, up, down);
    rounds -= 1;
  }
  PRINT(n, ways);
  return 0;
}
