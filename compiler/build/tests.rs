//! Tests of the IR builder: what it makes of small programs, as IR text.

use crate::ir::print::print;
use crate::support::span::Source;
use crate::{check, syntax};

fn ir(text: &str) -> String {
    let source = Source::new("t.atl", text);
    let ast = syntax::parse(&source).ast.expect("it parses");
    let hir = check::run(&ast, &source).expect("it is right");
    print(&super::run(&hir)).to_string()
}

/// The instructions and terminators of the text, without names, roles and predecessors.
fn code(text: &str) -> Vec<String> {
    let lines = ir(text);
    let lines = lines.lines().filter(|line| !line.starts_with("form") && !line.is_empty());
    lines.map(|line| line.split(" ;").next().unwrap_or("").trim().to_string()).collect()
}

#[test]
fn variables_are_assigned_and_loops_test_first() {
    assert_eq!(
        ir("let x = 1; let y = 2; while (x < 3) { let t = x; x = y; y = t; } print(x, \"s\");"),
        "form variables
fn main() {
b0: ; entry
  %0 = copy 1 ; x
  %1 = copy 2 ; y
  jump b1
b1: ; while.cond preds=b0,b2
  %3 = bool %0 < 3
  branch %3 ? b2 : b3
b2: ; while.body preds=b1
  %2 = copy %0 ; t
  %0 = copy %1 ; x
  %1 = copy %2 ; y
  jump b1
b3: ; while.end preds=b1
  print %0, \"s\"
  return
}
"
    );
}

#[test]
fn conditions_become_branches() {
    assert_eq!(
        code("let a = true; let b = false; if (!a || b && eof()) { print(1); } else if !b { print(2); }"),
        [
            "fn main() {",
            "b0:",
            "%0 = copy true",
            "%1 = copy false",
            "branch %0 ? b1 : b3",
            "b1:",
            "branch %1 ? b2 : b4",
            "b2:",
            "%2 = eof",
            "branch %2 ? b3 : b4",
            "b3:",
            "print 1",
            "jump b6",
            "b4:",
            "branch %1 ? b6 : b5",
            "b5:",
            "print 2",
            "jump b6",
            "b6:",
            "return",
            "}",
        ]
    );
}

#[test]
fn a_variable_is_assigned_after_its_new_value_is_known() {
    // `b` is read on the right side, so the constant must not be stored to it first.
    assert_eq!(
        code("let b = true; b = eof() && b;"),
        [
            "fn main() {",
            "b0:",
            "%0 = copy true",
            "%1 = copy false",
            "%2 = eof",
            "branch %2 ? b1 : b2",
            "b1:",
            "%1 = copy %0",
            "jump b2",
            "b2:",
            "%0 = copy %1",
            "return",
            "}",
        ]
    );
}

#[test]
fn elements_are_checked_in_the_order_of_the_contract() {
    // Target index, value, check, store; and for `op=`: index, check, load, value, operation, store.
    assert_eq!(
        code("let a = [0; 4]; a[read()] = read(); a[1] /= read();")[3..],
        [
            "%1 = read @1:19",
            "%2 = read @1:29",
            "%3 = len %0",
            "bounds %1 < %3 @1:18",
            "store int %0[%1] = %2",
            "%4 = len %0",
            "bounds 1 < %4 @1:38",
            "%5 = load int %0[1]",
            "%6 = read @1:45",
            "%7 = int %5 / %6 @1:42",
            "store int %0[1] = %7",
            "free %0",
            "return",
            "}",
        ]
    );
}

#[test]
fn arrays_are_freed_on_every_way_out() {
    assert_eq!(
        code(
            "fn f(v: [int]) -> int { let a = [-1, 0]; while (true) { let b = [true; 2]; let c = [false; 1];
             if b[0] { continue; } if c[0] { break; } return a[0]; } return 2; }"
        )[6..],
        [
            "%1 = array int [0; 2] @1:33",
            "store int %1[0] = -1",
            "jump b1",
            "b1:",
            "jump b2",
            "b2:",
            "%2 = array bool [true; 2] @1:65",
            "%3 = array bool [false; 1] @1:84",
            "%4 = len %2",
            "bounds 0 < %4 @2:18",
            "%5 = load bool %2[0]",
            "branch %5 ? b3 : b4",
            "b3:",
            "free %3",
            "free %2",
            "jump b1",
            "b4:",
            "%6 = len %3",
            "bounds 0 < %6 @2:40",
            "%7 = load bool %3[0]",
            "branch %7 ? b5 : b6",
            "b5:",
            "free %3",
            "free %2",
            "jump b7",
            "b6:",
            "%8 = len %1",
            "bounds 0 < %8 @2:63",
            "%9 = load int %1[0]",
            "free %3",
            "free %2",
            "free %1",
            "return %9",
            "b7:",
            "free %1",
            "return 2",
            "}",
        ]
    );
}

#[test]
fn code_that_is_never_reached_stands_in_dead_blocks() {
    let text = ir("fn f() -> int { return 1; print(2); } while (true) { break; print(3); } return; print(4);");
    assert_eq!(text.matches("; dead").count(), 3, "{text}");
    assert!(text.contains("print 2\n  unreachable"), "{text}");
}

#[test]
fn calls_with_and_without_values() {
    assert_eq!(
        code("f(1, g()); g(); let x = g() + g(); fn f(a: int, b: int) { } fn g() -> int { return 1; }")[..8],
        [
            "fn main() {",
            "b0:",
            "%1 = call g()",
            "call f(1, %1)",
            "%2 = call g()",
            "%3 = call g()",
            "%4 = call g()",
            "%0 = int %3 + %4",
        ]
    );
}
