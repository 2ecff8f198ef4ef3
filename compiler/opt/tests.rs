//! Tests of the passes over IR text: before, after, by hand.

use super::fuel::Fuel;
use super::summaries::Summaries;
use super::*;
use crate::ir::{Op, Operand, interpret, parse, print, verify};
use crate::support::span::Source;

/// The program of this text.
fn program(text: &str) -> Program {
    match parse::parse(&Source::new("test.ir", text)) {
        Ok(program) => program,
        Err(diagnostics) => panic!("{diagnostics:?}\n{text}"),
    }
}

/// The text of a program, without comments and indentation.
fn text(program: &Program) -> String {
    let text = print::print(program).to_string();
    let lines = text.lines().map(|line| line.split(" ;").next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with("form")).collect::<Vec<_>>().join("\n")
}

/// Checks that a pass turns one program into another.
fn check_program(run: impl Fn(&mut Program, &mut Fuel) -> usize, before: &str, after: &str) {
    let mut got = program(&format!("form ssa\n{before}"));
    run(&mut got, &mut Fuel::UNLIMITED.clone());
    let want: Vec<&str> = after.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text(&got), want.join("\n"));
}

/// Checks that a pass turns one body into another.
fn check(run: impl Fn(&mut Function, &Summaries, &mut Fuel) -> usize, before: &str, after: &str) {
    let mut got = program(&format!("form ssa\nfn main() {{\n{before}\n}}"));
    let summaries = Summaries::compute(&got);
    for function in got.functions.values_mut() {
        run(function, &summaries, &mut Fuel::UNLIMITED.clone());
    }
    let want: Vec<&str> = after.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text(&got), format!("fn main() {{\n{}\n}}", want.join("\n")));
}

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

/// Every operation over another operation, with constants of all kinds, must give the same after simplification.
#[test]
fn simplify_agrees_with_the_semantics_on_all_pairs_of_operations() {
    use crate::semantics::{BinaryOp, CompareOp};
    let constants = [i64::MIN, -8, -1, 0, 1, 2, 3, 63, 64, i64::MAX];
    let operands = [i64::MIN, i64::MIN + 1, -9, -2, -1, 0, 1, 2, 7, 64, i64::MAX - 1, i64::MAX];
    let binary: Vec<String> = BinaryOp::ALL.iter().map(|op| format!("int L {} R", op.symbol())).collect();
    let compare: Vec<String> = CompareOp::ALL.iter().map(|op| format!("bool L {} R", op.symbol())).collect();
    let mut inner = vec!["int - %0".to_string(), "int ~ %0".to_string(), "int of %3".to_string()];
    for op in &binary {
        inner.push(op.replace('L', "%0").replace('R', "%1"));
        for constant in constants {
            inner.push(op.replace('L', "%0").replace('R', &constant.to_string()));
            inner.push(op.replace('L', &constant.to_string()).replace('R', "%0"));
        }
    }
    let mut outer = Vec::new();
    for op in binary.iter().chain(&compare) {
        for other in ["%0", "%1", "%2"] {
            outer.push(op.replace('L', "%2").replace('R', other));
            outer.push(op.replace('L', other).replace('R', "%2"));
        }
        for constant in constants {
            outer.push(op.replace('L', "%2").replace('R', &constant.to_string()));
            outer.push(op.replace('L', &constant.to_string()).replace('R', "%2"));
        }
    }
    // Division by what may be 0 ends a run, so each operation stands in a function of its own, run for all operands.
    let mut body = String::new();
    for inner in &inner {
        for (index, outer) in outer.iter().enumerate() {
            // A sample that covers each pair of operators many times over.
            if (index * 7 + inner.len() * 13) % 41 == 0 {
                body.push_str(&format!("{inner}\n{outer}\n"));
            }
        }
    }
    let pairs: Vec<&str> = body.lines().collect();
    for pair in pairs.chunks(2) {
        let ty = if pair[1].starts_with("bool") { "bool" } else { "int" };
        let text = format!(
            "form ssa\nfn main() {{\nb0:\nreturn\n}}\nfn f(%0 x: int, %1 y: int) -> {ty} {{\nb0:\n%3 = bool %0 < %1\n%2 = {}\n%4 = {}\nreturn %4\n}}",
            pair[0], pair[1]
        );
        let before = program(&text);
        let mut after = before.clone();
        for function in after.functions.values_mut() {
            simplify::run(function, &mut Fuel::UNLIMITED.clone());
        }
        for x in operands {
            for y in operands {
                assert_eq!(
                    evaluate(&before, x, y),
                    evaluate(&after, x, y),
                    "x = {x}, y = {y}\n{text}\n{}",
                    print::print(&after)
                );
            }
        }
    }
}

/// What the straight-line function `f` of a program returns; `None` if it traps.
fn evaluate(program: &Program, x: i64, y: i64) -> Option<i64> {
    let function = program.functions.values().find(|function| function.name == "f").expect("there is an f");
    let mut values = vec![0; function.values.len()];
    for (param, arg) in function.params.iter().zip([x, y]) {
        values[param.as_u32() as usize] = arg;
    }
    let read = |values: &[i64], operand: Operand| match operand {
        Operand::Value(value) => values[value.as_u32() as usize],
        constant => constant.constant().expect("it is no value"),
    };
    let data = &function.blocks[function.entry()];
    for inst in &data.insts {
        let inst = &function.insts[*inst];
        let result = match &inst.op {
            Op::Binary { op, args, .. } => op.eval(read(&values, args[0]), read(&values, args[1]))?,
            Op::Compare { op, args } => i64::from(op.eval(read(&values, args[0]), read(&values, args[1]))),
            Op::Unary { op, arg } => op.eval(read(&values, *arg)),
            other => panic!("not in a straight line: {other:?}"),
        };
        values[inst.result.expand().expect("it computes a value").as_u32() as usize] = result;
    }
    data.term.operand().map(|operand| read(&values, operand))
}

#[test]
fn every_prefix_of_the_changes_is_right() {
    use crate::execution::Limits;
    use crate::ir::random::{Shape, generate};
    use crate::support::random::Random;
    let limits = Limits { steps: 100_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    for seed in 1000..1150 {
        let shape = if seed % 2 == 0 { Shape::tiny() } else { Shape { traps: true, ..Shape::default() } };
        let original = generate(seed, &shape);
        let before = interpret::run(&original, b"", limits).expect("random programs are right").outcome;
        let mut all = Fuel::UNLIMITED.clone();
        run(&mut original.clone(), 2, &mut all);
        let mut random = Random::new(seed);
        for _ in 0..6 {
            let limit = random.below(all.spent() as usize + 1) as u64;
            let mut fuel = Fuel::new(limit);
            let mut got = original.clone();
            run(&mut got, 2, &mut fuel);
            assert_eq!(fuel.spent(), limit, "seed {seed}");
            verify::verify(&got).unwrap_or_else(|error| panic!("seed {seed}, {limit} changes: {error}"));
            let after = interpret::run(&got, b"", limits).expect("it verified").outcome;
            assert!(before.agrees(&after), "seed {seed}, {limit} changes: {before:?} {after:?}");
        }
    }
}

#[test]
fn recursion_gives_the_same_unfolded_and_as_loops() {
    use crate::execution::Limits;
    let text = "form ssa
        fn main() {
        b0:
          %0 = call fib(15)
          %1 = call factorial(25, 1)
          %2 = call ackermann(2, 5)
          %3 = call even(9)
          %4 = array int [3; 12] @1:1
          call fill(%4, 0)
          %5 = load int %4[11]
          %6 = call swap(%4, %4, 7)
          print %0, %1, %2, %3, %5, %6
          call fill(%4, 5)
          free %4
          call down(1000)
          %7 = call divide(10)
          print %7
          return
        }
        fn fib(%0 n: int) -> int {
        b0:
          %1 = bool %0 < 2
          branch %1 ? b1 : b2
        b1:
          return %0
        b2:
          %2 = int %0 - 1
          %3 = call fib(%2)
          %4 = int %0 - 2
          %5 = call fib(%4)
          %6 = int %3 + %5
          return %6
        }
        fn factorial(%0 n: int, %1 k: int) -> int {
        b0:
          %2 = bool %0 <= %1
          branch %2 ? b1 : b2
        b1:
          jump b3
        b2:
          %3 = int %0 - 1
          %4 = call factorial(%3, %1)
          %5 = int %0 * %4
          jump b3
        b3:
          %6 = phi [1 from b1, %5 from b2]
          return %6
        }
        fn ackermann(%0 m: int, %1 n: int) -> int {
        b0:
          %2 = bool %0 == 0
          branch %2 ? b1 : b2
        b1:
          %3 = int %1 + 1
          return %3
        b2:
          %4 = bool %1 == 0
          %5 = int %0 - 1
          branch %4 ? b3 : b4
        b3:
          %6 = call ackermann(%5, 1)
          return %6
        b4:
          %7 = int %1 - 1
          %8 = call ackermann(%0, %7)
          %9 = call ackermann(%5, %8)
          return %9
        }
        fn even(%0 n: int) -> bool {
        b0:
          %1 = bool %0 == 0
          branch %1 ? b1 : b2
        b1:
          return true
        b2:
          %2 = int %0 - 1
          %3 = call odd(%2)
          return %3
        }
        fn odd(%0 n: int) -> bool {
        b0:
          %1 = bool %0 == 0
          branch %1 ? b1 : b2
        b1:
          return false
        b2:
          %2 = int %0 - 1
          %3 = call even(%2)
          return %3
        }
        fn fill(%0 v: [int], %1 i: int) {
        b0:
          %2 = len %0
          %3 = bool %1 < %2
          branch %3 ? b1 : b2
        b1:
          bounds %1 < %2 @2:2
          store int %0[%1] = %1
          %4 = int %1 + 1
          call fill(%0, %4)
          return
        b2:
          return
        }
        fn swap(%0 v: [int], %1 w: [int], %2 i: int) -> int {
        b0:
          %3 = bool %2 <= 0
          branch %3 ? b1 : b2
        b1:
          bounds 0 < 12 @3:3
          %4 = load int %1[0]
          return %4
        b2:
          %5 = int %2 - 1
          %7 = load int %0[0]
          %8 = int %7 + %2
          store int %1[0] = %8
          %6 = call swap(%1, %0, %5)
          return %6
        }
        fn down(%0 n: int) {
        b0:
          %1 = bool %0 == 0
          branch %1 ? b1 : b2
        b1:
          return
        b2:
          %2 = int %0 - 1
          call down(%2)
          return
        }
        fn divide(%0 n: int) -> int {
        b0:
          print %0
          %1 = int 100 / %0 @4:4
          %2 = int %0 - 1
          %3 = call divide(%2)
          %4 = int %3 + %1
          return %4
        }";
    let limits = Limits::default();
    let original = program(text);
    let before = interpret::run(&original, b"", limits).expect("it is right").outcome;
    // fib(15) = 610, 25! wraps, ack(2, 5) = 13, 9 is odd, v[11] = 11, and 0 + 7 + 6 + … + 1 = 28; then 100 / 0.
    let want = format!("610 {} 13 false 11 28\n", (1..=25i64).fold(1i64, i64::wrapping_mul));
    assert!(String::from_utf8_lossy(&before.output).starts_with(&want), "{before:?}");
    for last in 0..=PASSES.len() {
        let mut got = original.clone();
        for pass in &PASSES[..last] {
            (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
        }
        verify::verify(&got).unwrap_or_else(|error| panic!("{error}\n{}", print::print(&got)));
        let after = interpret::run(&got, b"", limits).expect("it verified").outcome;
        assert_eq!(before, after, "{}", print::print(&got));
    }
}

#[test]
fn long_programs_take_time_in_proportion() {
    // A chain of additions, of blocks and of joins: quadratic steps would take minutes.
    let mut text = String::from("form ssa\nfn main() {\nb0:\n%0 = read @1:1\n%1 = eof\njump b1\n");
    let rounds = 5_000;
    let mut value = 1;
    let mut last = 0;
    for round in 0..rounds {
        let block = 1 + round * 3;
        text.push_str(&format!(
            "b{block}:\n%{} = int %{last} + 1\n%{} = int %{} ^ %0\nbranch %1 ? b{} : b{}\n",
            value + 1,
            value + 2,
            value + 1,
            block + 1,
            block + 2
        ));
        text.push_str(&format!(
            "b{}:\n%{} = int %{} / 3\nprint %{}\njump b{}\n",
            block + 1,
            value + 3,
            value + 2,
            value + 3,
            block + 2
        ));
        text.push_str(&format!(
            "b{}:\n%{} = phi [%{} from b{block}, %{} from b{}]\njump b{}\n",
            block + 2,
            value + 4,
            value + 2,
            value + 3,
            block + 1,
            block + 3
        ));
        value += 4;
        last = value;
    }
    text.push_str(&format!("b{}:\nprint %{last}\nreturn\n}}\n", 1 + rounds * 3));
    let mut got = program(&text);
    let start = std::time::Instant::now();
    for pass in PASSES {
        let before = std::time::Instant::now();
        (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
        eprintln!("{} {:?}", pass.name, before.elapsed());
    }
    verify::verify(&got).expect("it is right");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn passes_keep_what_programs_do() {
    use crate::execution::Limits;
    use crate::ir::random::{Shape, generate};
    use crate::support::random::Random;
    let count: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let start: u64 = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let limits = Limits { steps: 200_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    let mut totals = vec![0; PASSES.len()];
    for seed in start..start + count {
        let base = match seed % 4 {
            0 => Shape::default(),
            1 => Shape::webs(),
            2 => Shape::tiny(),
            _ => Shape::pressure(),
        };
        let shape = Shape { traps: seed / 4 % 2 == 0, ..base };
        let mut got = generate(seed, &shape);
        let run = |program: &Program| interpret::run(program, b"", limits).map(|run| run.outcome);
        let before = run(&got).expect("random programs are right");
        // The sequence as it is, or any passes in any order.
        let mut random = Random::new(seed);
        let sequence: Vec<usize> = match seed % 3 {
            0 => (0..PASSES.len()).collect(),
            _ => (0..12).map(|_| random.below(PASSES.len())).collect(),
        };
        for index in sequence {
            let pass = &PASSES[index];
            let old = got.clone();
            let changes = (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
            totals[index] += changes;
            if changes == 0 {
                assert_eq!(print::print(&old).to_string(), print::print(&got).to_string(), "{} lies", pass.name);
                continue;
            }
            let after = verify::verify(&got).and_then(|()| run(&got));
            match after {
                Ok(after) if before.agrees(&after) => {}
                other => panic!(
                    "seed {seed} pass {}\n{}\n---\n{}\n{before:?}\n{other:?}",
                    pass.name,
                    print::print(&old),
                    print::print(&got)
                ),
            }
        }
    }
    for (pass, total) in PASSES.iter().zip(totals) {
        eprintln!("{} {total}", pass.name);
    }
}
