// A Brainfuck interpreter: the program comes as codes of characters; brackets are matched first.
#include "atlas.h"


int main(void) {
  int64_t n = read_int();
  INTS(code, 0, n);
  int64_t i = 0;
  while (i < n) { AT(code, i) = read_int(); i += 1; }
  INTS(jump, 0, n);
  INTS(open, 0, n);
  int64_t depth = 0;
  i = 0;
  while (i < n) {
    if (AT(code, i) == '[') {
      AT(open, depth) = i;
      depth += 1;
    } else if (AT(code, i) == ']') {
      depth -= 1;
      AT(jump, i) = AT(open, depth);
      AT(jump, AT(open, depth)) = i;
    }
    i += 1;
  }
  INTS(tape, 0, 30000);
  int64_t at = 0;
  int64_t pc = 0;
  int64_t steps = 0;
  int64_t out = 0;
  while (pc < n) {
    int64_t c = AT(code, pc);
    if (c == '>') { at += 1; }
    else if (c == '<') { at -= 1; }
    else if (c == '+') { AT(tape, at) = AT(tape, at) + 1 & 255; }
    else if (c == '-') { AT(tape, at) = AT(tape, at) - 1 & 255; }
    else if (c == '.') { out = out * 31 + AT(tape, at); PRINT(AT(tape, at)); }
    else if (c == '[') { if (AT(tape, at) == 0) { pc = AT(jump, pc); } }
    else if (c == ']') { if (AT(tape, at) != 0) { pc = AT(jump, pc); } }
    pc += 1;
    steps += 1;
  }
  PRINT(steps, out);
  return 0;
}
