//! Each pass over IR text, before and after, reasoned by hand.

use super::super::*;
use super::{check, check_program};

#[test]
fn sccp_folds_a_branch_and_the_phi_behind_it() {
    // IR17: the edge from b2 goes together with its operand, and b2 with it.
    check(
        |f, _, fuel| sccp::run(f, fuel),
        "b0:
           branch false ? b1 : b2
         b1:
           %1 = int 1 + 1
           jump b3
         b2:
           jump b3
         b3:
           %2 = phi [%1 from b1, 7 from b2]
           print %2
           return",
        "b0:
           jump b2
         b2:
           jump b3
         b3:
           %2 = phi [7 from b2]
           print 7
           return",
    );
}

#[test]
fn sccp_keeps_what_varies_and_what_traps() {
    // IR16: x is 0 at first and may be 1 later, so nothing of it is constant. The division by zero stays.
    check(
        |f, _, fuel| sccp::run(f, fuel),
        "b0:
           jump b1
         b1:
           %1 = phi [0 from b0, %4 from b3]
           %2 = eof
           branch %2 ? b2 : b3
         b2:
           %3 = int %1 + 1
           jump b3
         b3:
           %4 = phi [%1 from b1, %3 from b2]
           %5 = int 1 / 0 @3:4
           %6 = int -9223372036854775808 / -1 @3:5
           print %4, %6
           jump b1",
        "b0:
           jump b1
         b1:
           %1 = phi [0 from b0, %4 from b3]
           %2 = eof
           branch %2 ? b2 : b3
         b2:
           %3 = int %1 + 1
           jump b3
         b3:
           %4 = phi [%1 from b1, %3 from b2]
           %5 = int 1 / 0 @3:4
           print %4, -9223372036854775808
           jump b1",
    );
}

#[test]
fn sccp_goes_round_a_loop_optimistically() {
    // Only with the assumption that the edge from b2 does not run is %1 the constant that keeps it from running.
    check(
        |f, _, fuel| sccp::run(f, fuel),
        "b0:
           jump b1
         b1:
           %1 = phi [1 from b0, %3 from b3]
           %2 = bool %1 == 1
           branch %2 ? b3 : b2
         b2:
           jump b3
         b3:
           %3 = phi [%1 from b1, 2 from b2]
           %4 = eof
           branch %4 ? b4 : b1
         b4:
           print %3
           return",
        "b0:
           jump b1
         b1:
           %1 = phi [1 from b0, 1 from b3]
           jump b3
         b3:
           %3 = phi [1 from b1]
           %4 = eof
           branch %4 ? b4 : b1
         b4:
           print 1
           return",
    );
}

#[test]
fn copy_propagation_collapses_webs_of_redundant_phis() {
    // IR11: %2, %3 and %4 only ever hold %1; %5 is a chain of them; %6 is a real φ.
    check(
        |f, _, fuel| copy_propagation::run(f, fuel),
        "b0:
           %1 = read @1:1
           jump b1
         b1:
           %2 = phi [%1 from b0, %4 from b4]
           %6 = phi [0 from b0, %7 from b4]
           %8 = eof
           branch %8 ? b2 : b3
         b2:
           jump b4
         b3:
           %3 = copy %2
           jump b4
         b4:
           %4 = phi [%2 from b2, %3 from b3]
           %5 = copy %4
           %7 = int %6 + %5
           branch %8 ? b1 : b5
         b5:
           print %5, %7, %6
           return",
        "b0:
           %1 = read @1:1
           jump b1
         b1:
           %6 = phi [0 from b0, %7 from b4]
           %8 = eof
           branch %8 ? b2 : b3
         b2:
           jump b4
         b3:
           jump b4
         b4:
           %7 = int %6 + %1
           branch %8 ? b1 : b5
         b5:
           print %1, %7, %6
           return",
    );
}

#[test]
fn dce_removes_phis_that_only_feed_each_other_and_keeps_traps() {
    // IR20: %1 and %2 need each other and nothing else needs them.
    check(
        dce::run,
        "b0:
           %9 = read @1:1
           jump b1
         b1:
           %1 = phi [1 from b0, %3 from b3]
           %8 = phi [5 from b0, %8 from b3]
           %4 = bool %8 < %9
           branch %4 ? b2 : b3
         b2:
           %2 = int %1 + 1
           %5 = int 7 / %9 @2:3
           %6 = int 7 / 2
           jump b3
         b3:
           %3 = phi [%1 from b1, %2 from b2]
           jump b1",
        "b0:
           %9 = read @1:1
           jump b1
         b1:
           %8 = phi [5 from b0, %8 from b3]
           %4 = bool %8 < %9
           branch %4 ? b2 : b3
         b2:
           %5 = int 7 / %9 @2:3
           jump b3
         b3:
           jump b1",
    );
}

#[test]
fn simplify_cfg_removes_unreachable_blocks_with_their_operands() {
    // IR12: b2 and b3 go, and the φ's operand from b3.
    check(
        |f, _, fuel| simplify_cfg::run(f, fuel),
        "b0:
           %1 = eof
           branch %1 ? b1 : b4
         b1:
           print 1
           jump b4
         b2:
           jump b3
         b3:
           jump b4
         b4:
           %2 = phi [0 from b0, 1 from b1, 2 from b3]
           print %2
           return",
        "b0:
           %1 = eof
           branch %1 ? b1 : b4
         b1:
           print 1
           jump b4
         b4:
           %2 = phi [0 from b0, 1 from b1]
           print %2
           return",
    );
}

#[test]
fn simplify_cfg_threads_short_circuits() {
    // `if (a && b)`: what b0 knows already goes straight to b4, and the rest of b2 is merged into b1.
    check(
        |f, _, fuel| simplify_cfg::run(f, fuel),
        "b0:
           %1 = eof
           branch %1 ? b1 : b2
         b1:
           %2 = eof
           jump b2
         b2:
           %3 = phi both: bool [false from b0, %2 from b1]
           branch %3 ? b3 : b4
         b3:
           print 1
           return
         b4:
           print 2
           return",
        "b0:
           %1 = eof
           branch %1 ? b1 : b4
         b1:
           %2 = eof
           branch %2 ? b3 : b4
         b3:
           print 1
           return
         b4:
           print 2
           return",
    );
}

#[test]
fn simplify_cfg_keeps_loops_without_end() {
    check(
        |f, _, fuel| simplify_cfg::run(f, fuel),
        "b0:
           jump b1
         b1:
           jump b2
         b2:
           jump b1",
        "b0:
           jump b1
         b1:
           jump b1",
    );
}

#[test]
fn lvn_merges_within_blocks_only() {
    check(
        lvn::run,
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = int %1 + %2
           %4 = int %2 + %1
           %5 = bool %1 < %2
           %6 = bool %2 > %1
           %7 = int %1 / %2 @2:1
           %8 = int %1 / %2 @2:2
           print %3, %4, %5, %6, %7, %8
           jump b1
         b1:
           %9 = int %1 + %2
           print %9
           return",
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = int %1 + %2
           %5 = bool %1 < %2
           %7 = int %1 / %2 @2:1
           print %3, %3, %5, %5, %7, %7
           jump b1
         b1:
           %9 = int %1 + %2
           print %9
           return",
    );
}

#[test]
fn gvn_forwards_stores_and_merges_loads_unless_memory_may_change() {
    // %1 and %2 are arrays of this function: they are apart. After the store to %1 its load is known; %2's stays known.
    check(
        gvn::run,
        "b0:
           %1 = array int [0; 9] @1:1
           %2 = array int [0; 9] @1:2
           %3 = read @1:3
           bounds %3 < 9 @1:4
           %4 = load int %2[%3]
           bounds %3 < 9 @1:5
           store int %1[%3] = 7
           bounds %3 < 9 @1:6
           %5 = load int %1[%3]
           %6 = load int %2[%3]
           store int %2[0] = 8
           %7 = load int %2[%3]
           print %4, %5, %6, %7
           free %2
           free %1
           return",
        "b0:
           %1 = array int [0; 9] @1:1
           %2 = array int [0; 9] @1:2
           %3 = read @1:3
           bounds %3 < 9 @1:4
           %4 = load int %2[%3]
           store int %1[%3] = 7
           store int %2[0] = 8
           %7 = load int %2[%3]
           print %4, 7, %4, %7
           free %2
           free %1
           return",
    );
}

#[test]
fn gvn_loads_again_in_every_round_of_a_loop_that_stores() {
    // IR19: the load is not that of the round before.
    let text = "b0:
           %1 = array int [93; 9] @1:1
           %2 = load int %1[0]
           jump b1
         b1:
           %3 = load int %1[0]
           %4 = bool %3 != 93
           branch %4 ? b2 : b3
         b2:
           store int %1[0] = %2
           jump b1
         b3:
           free %1
           return";
    check(gvn::run, text, text);
}

#[test]
fn gvn_uses_what_branches_have_shown() {
    check(
        gvn::run,
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = bool %1 < %2
           branch %3 ? b1 : b2
         b1:
           %4 = bool %1 >= %2
           %5 = bool %2 == %1
           %6 = bool %1 == 5
           print %3, %4, %5
           branch %6 ? b3 : b2
         b2:
           %7 = phi flag: bool [%3 from b0, %6 from b1]
           print %7, %1
           return
         b3:
           print %1
           return",
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = bool %1 < %2
           branch %3 ? b1 : b2
         b1:
           %6 = bool %1 == 5
           print true, false, false
           branch %6 ? b3 : b2
         b2:
           %7 = phi flag: bool [false from b0, false from b1]
           print %7, %1
           return
         b3:
           print 5
           return",
    );
}

#[test]
fn simplify_applies_identities() {
    check(
        |f, _, fuel| simplify::run(f, fuel),
        "b0:
           %1 = read @1:1
           %2 = int %1 + 3
           %3 = int 2 + %2
           %4 = int 8 * %1
           %5 = int %1 - %1
           %6 = int %1 / %1 @1:2
           %7 = int %1 % 4
           %8 = bool %7 == 0
           %9 = bool ! %8
           print %3, %4, %5, %6, %8
           branch %9 ? b1 : b2
         b1:
           return
         b2:
           return",
        "b0:
           %1 = read @1:1
           %2 = int %1 + 3
           %3 = int %1 + 5
           %4 = int %1 << 3
           %6 = int %1 / %1 @1:2
           %7 = int %1 % 4
           %10 = int %1 & 3
           %8 = bool %10 == 0
           %9 = bool %10 != 0
           print %3, %4, 0, %6, %8
           branch %9 ? b1 : b2
         b1:
           return
         b2:
           return",
    );
}

#[test]
fn loops_are_rotated() {
    // The test is copied to b4, in front of the loop; b1 ends it. %1 lives on beyond the edge that gives it its next value.
    check(
        |f, _, fuel| loop_rotate::run(f, fuel) + copy_propagation::run(f, fuel),
        "b0:
           %0 = read @1:1
           jump b1
         b1:
           %1 = phi i [0 from b0, %3 from b2]
           %2 = bool %1 < %0
           branch %2 ? b2 : b3
         b2:
           %3 = int %1 + 1
           jump b1
         b3:
           print %1
           return",
        "b0:
           %0 = read @1:1
           jump b4
         b4:
           %5 = bool 0 < %0
           branch %5 ? b2 : b3
         b2:
           %6 = phi i [0 from b4, %3 from b1]
           %3 = int %6 + 1
           jump b1
         b1:
           %2 = bool %3 < %0
           branch %2 ? b2 : b3
         b3:
           %7 = phi i [0 from b4, %3 from b1]
           print %7
           return",
    );
}

#[test]
fn licm_hoists_what_is_sure_to_come_first() {
    // The check and the load run first in each round; the division behind the print must not move before it.
    check(
        licm::run,
        "b0:
           %1 = array int [1; 9] @1:1
           %2 = read @1:2
           jump b1
         b1:
           %3 = phi [0 from b0, %8 from b1]
           bounds %2 < 9 @2:1
           %4 = load int %1[%2]
           %5 = int %2 * 3
           print %4, %5
           %6 = int 7 / %2 @2:2
           %7 = int %6 + 1
           %8 = int %3 + %7
           %9 = bool %8 < 100
           branch %9 ? b1 : b2
         b2:
           free %1
           return",
        "b0:
           %1 = array int [1; 9] @1:1
           %2 = read @1:2
           bounds %2 < 9 @2:1
           %4 = load int %1[%2]
           %5 = int %2 * 3
           jump b1
         b1:
           %3 = phi [0 from b0, %8 from b1]
           print %4, %5
           %6 = int 7 / %2 @2:2
           %7 = int %6 + 1
           %8 = int %3 + %7
           %9 = bool %8 < 100
           branch %9 ? b1 : b2
         b2:
           free %1
           return",
    );
}

#[test]
fn licm_leaves_loads_that_the_loop_may_change_and_checks_behind_branches() {
    let text = "b0:
           %1 = array int [1; 9] @1:1
           %2 = read @1:2
           jump b1
         b1:
           %3 = load int %1[0]
           store int %1[1] = %2
           %4 = bool %3 < %2
           branch %4 ? b2 : b3
         b2:
           bounds %2 < 9 @2:1
           jump b1
         b3:
           free %1
           return";
    check(licm::run, text, text);
}

#[test]
fn if_convert_makes_a_minimum_a_select() {
    check(
        |f, _, fuel| if_convert::run(f, fuel),
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = bool %1 < %2
           branch %3 ? b2 : b1
         b1:
           jump b2
         b2:
           %4 = phi m [%1 from b0, %2 from b1]
           print %4
           return",
        "b0:
           %1 = read @1:1
           %2 = read @1:2
           %3 = bool %1 < %2
           %5 = select %3 ? %1 : %2
           jump b2
         b2:
           %4 = phi m [%5 from b0]
           print %4
           return",
    );
}

#[test]
fn if_convert_leaves_a_choice_of_addresses_by_loads() {
    let text = "b0:
           %1 = array int [0; 9] @1:1
           %2 = load int %1[3]
           %3 = load int %1[4]
           %4 = bool %2 < %3
           branch %4 ? b1 : b2
         b1:
           jump b2
         b2:
           %5 = phi child [3 from b0, 4 from b1]
           %6 = load int %1[%5]
           print %6
           free %1
           return";
    check(|f, _, fuel| if_convert::run(f, fuel), text, text);
}

#[test]
fn if_convert_does_not_run_what_may_trap() {
    let text = "b0:
           %1 = read @1:1
           %2 = bool %1 != 0
           branch %2 ? b1 : b2
         b1:
           %3 = int 7 / %1 @1:2
           jump b2
         b2:
           %4 = phi [0 from b0, %3 from b1]
           print %4
           return";
    check(|f, _, fuel| if_convert::run(f, fuel), text, text);
}

#[test]
fn bounds_checks_that_cannot_fail_go() {
    // 0 <= %3 < %1 and %3 - 1 < %1; but %3 - 1 may be -1, and %3 + 1 may be %1.
    check(
        bounds_elim::run,
        "b0:
           %1 = read @1:1
           %2 = array int [0; %1] @1:2
           jump b1
         b1:
           %3 = phi i [0 from b0, %6 from b2]
           %4 = bool %3 < %1
           branch %4 ? b2 : b3
         b2:
           bounds %3 < %1 @2:1
           store int %2[%3] = 1
           %5 = int %3 + -1
           bounds %5 < %1 @2:2
           store int %2[%5] = 1
           %6 = int %3 + 1
           bounds %6 < %1 @2:3
           store int %2[%6] = 1
           jump b1
         b3:
           free %2
           return",
        "b0:
           %1 = read @1:1
           %2 = array int [0; %1] @1:2
           jump b1
         b1:
           %3 = phi i [0 from b0, %6 from b2]
           %4 = bool %3 < %1
           branch %4 ? b2 : b3
         b2:
           store int %2[%3] = 1
           %5 = int %3 + -1
           bounds %5 < %1 @2:2
           store int %2[%5] = 1
           %6 = int %3 + 1
           bounds %6 < %1 @2:3
           store int %2[%6] = 1
           jump b1
         b3:
           free %2
           return",
    );
}

#[test]
fn bounds_checks_stay_where_the_index_may_wrap() {
    // Without `i < n` on the way to it, i + 1 may wrap, so i may be negative.
    let text = "b0:
           %1 = read @1:1
           %2 = array int [0; 9] @1:2
           jump b1
         b1:
           %3 = phi i [0 from b0, %5 from b1]
           bounds %3 < 9 @2:1
           %5 = int %3 + %1
           %6 = bool %5 < 9
           branch %6 ? b1 : b2
         b2:
           free %2
           return";
    check(bounds_elim::run, text, text);
}

#[test]
fn conditions_are_copied_to_their_branches() {
    check(
        |f, _, fuel| sink_conditions::run(f, fuel),
        "b0:
           %1 = read @1:1
           %2 = bool %1 < 3
           branch %2 ? b1 : b2
         b1:
           print 1
           branch %2 ? b2 : b3
         b2:
           return
         b3:
           return",
        "b0:
           %1 = read @1:1
           %2 = bool %1 < 3
           branch %2 ? b1 : b2
         b1:
           print 1
           %3 = bool %1 < 3
           branch %3 ? b2 : b3
         b2:
           return
         b3:
           return",
    );
}

#[test]
fn tail_calls_become_loops_with_an_accumulator() {
    check_program(
        tail_recursion::run,
        "fn main() {
         b0:
           %0 = call sum(9, 1)
           print %0
           return
         }
         fn sum(%0 n: int, %1 step: int) -> int {
         b0:
           %2 = bool %0 <= 0
           branch %2 ? b1 : b2
         b1:
           return 5
         b2:
           %3 = int %0 - %1
           %4 = call sum(%3, %1)
           %5 = int %4 + %0
           return %5
         }",
        "fn main() {
         b0:
           %0 = call sum(9, 1)
           print %0
           return
         }
         fn sum(%0 n: int, %1 step: int) -> int {
         b3:
           jump b0
         b0:
           %7 = phi n [%0 from b3, %3 from b2]
           %8 = phi step [%1 from b3, %8 from b2]
           %6 = phi [0 from b3, %9 from b2]
           %2 = bool %7 <= 0
           branch %2 ? b1 : b2
         b1:
           %10 = int 5 + %6
           return %10
         b2:
           %3 = int %7 - %8
           %9 = int %6 + %7
           jump b0
         }",
    );
}

#[test]
fn small_functions_are_inlined() {
    check_program(
        inline::run,
        "fn main() {
         b0:
           %0 = read @1:1
           %1 = call half(%0)
           print %1
           return
         }
         fn half(%0 n: int) -> int {
         b0:
           %1 = eof
           branch %1 ? b1 : b2
         b1:
           return 0
         b2:
           %2 = int 9 / %0 @5:6
           return %2
         }",
        "fn main() {
         b0:
           %0 = read @1:1
           jump b2
         b2:
           %2 = eof
           branch %2 ? b3 : b4
         b3:
           jump b1(0)
         b4:
           %3 = int 9 / %0 @5:6
           jump b1(%3)
         b1:
           %1 = phi [0 from b3, %3 from b4]
           print %1
           return
         }
         fn half(%0 n: int) -> int {
         b0:
           %1 = eof
           branch %1 ? b1 : b2
         b1:
           return 0
         b2:
           %2 = int 9 / %0 @5:6
           return %2
         }"
        .replace("b1(0)", "b1")
        .replace("b1(%3)", "b1")
        .as_str(),
    );
}
