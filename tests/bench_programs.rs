//! The programs that are measured give the right output, at each level.

mod harness;

use harness::check_all;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn all_at_level_2() {
    check_all("bench/programs", &["-O2"], LIMIT, |_| true);
}

#[test]
fn all_at_level_1() {
    check_all("bench/programs", &["-O1"], LIMIT, |_| true);
}

/// Slower code, so only one program for each kind of work.
#[test]
fn some_at_level_0_and_in_memory() {
    let some =
        ["ackermann", "brainfuck", "editdistance", "fannkuch", "life", "mandelbrot", "nqueens", "rotate", "spill"];
    check_all("bench/programs", &["-O0"], LIMIT, |name| some.contains(&name));
    check_all("bench/programs", &["-O2", "-C", "spill-all"], LIMIT, |name| {
        ["ackermann", "life", "spill"].contains(&name)
    });
}
