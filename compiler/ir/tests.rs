//! Tests of the mirrors `print` and `parse`.

use super::parse::{DUPLICATE, INCOMPLETE, MALFORMED, UNKNOWN, parse};
use super::print::{print, print_with_source};
use super::types::*;
use crate::semantics::Scalar;
use crate::support::diagnostics::Code;
use crate::support::span::{Position, Source, Span};
use cranelift_entity::EntityRef;

/// The example of ARCHITECTURE.md.
const SWAP: &str = "\
fn main() {
b0: ; entry
  jump b1
b1: ; while.cond preds=b0,b2
  %3 = phi x [1 from b0, %4 from b2]
  %4 = phi y [2 from b0, %3 from b2]
  %5 = phi i [0 from b0, %7 from b2]
  %6 = bool %5 < 3
  branch %6 ? b2 : b3
b2: ; while.body preds=b1
  %7 = int %5 + 1
  jump b1
b3: ; while.end preds=b1
  print %3
  print %4
  return
}
";

/// Every instruction, type and terminator once.
const EVERYTHING: &str = "\
form variables
fn main() {
b0: ; entry
  %0 = copy 5 ; x
  %1 = int %0 + -3 ; y
  %2 = int %1 / %0 @3:9 ; x
  %2 = int %1 % 7 ; x
  %3 = bool %0 <= -9223372036854775808
  %4 = bool %3 ^ true
  %5 = bool false != %4
  %6 = int - -5
  %7 = int ~ %6
  %8 = bool ! %5
  %9 = int of %8
  %10 = select %8 ? %9 : 4
  %11 = array int [%2; %9] @4:9 ; a.1
  %12 = array bool [true; 3] @5:9
  %13 = len %11
  bounds %0 < %13 @6:2
  %14 = load int %11[%0]
  store bool %12[0] = %8
  %15 = call gcd(%14, 3)
  call main.1(%11)
  call main.1(%11)
  %16 = read @7:5 ; r
  %17 = eof
  print
  print %16, \"a;\\n\\\"\\\\é\\u{7}\", true, \"\"
  assert %17 @8:1
  free %12
  free %11
  return
}

fn gcd(%0 a: int, %1: int) -> int {
b2: ; if.then
  branch true ? b0 : b0
b0: ; block preds=b2
  return %0
}

fn main.1(%0 v: [int]) {
b0: ; entry
  unreachable
}
";

fn read(text: &str) -> Program {
    parse(&Source::new("t.ir", text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn mistakes(text: &str) -> Vec<(Code, String, String)> {
    let errors = parse(&Source::new("t.ir", text)).expect_err("the text is wrong");
    errors.into_iter().map(|e| (e.code, text[e.primary.span.range()].to_string(), e.message)).collect()
}

#[test]
fn text_survives_reading_and_printing() {
    for text in [SWAP, EVERYTHING] {
        assert_eq!(print(&read(text)).to_string(), text);
    }
}

#[test]
fn every_form_has_its_header_and_ssa_needs_none() {
    assert_eq!(read(SWAP).functions[FuncId::from_u32(0)].form, Form::Ssa);
    let twice = "fn main() {\nb0: ; entry\n  %0 = copy 1\n  %0 = copy 2\n  return\n}\n";
    assert_eq!(read(twice).functions[FuncId::from_u32(0)].form, Form::Variables);
    for form in Form::ALL {
        let text = format!("form {}\n{SWAP}", form.name());
        let program = read(&text);
        assert_eq!(program.functions[FuncId::from_u32(0)].form, form);
        assert_eq!(print(&program).to_string(), if form == Form::Ssa { SWAP } else { &text });
    }
    // Forms may differ between functions while a pass is under way.
    let mixed = SWAP.replace("main", "f") + "\nform sequenced\n" + twice;
    assert_eq!(print(&read(&mixed)).to_string(), format!("form ssa\n{mixed}"));
}

#[test]
fn two_edges_to_one_block_stay_apart() {
    let text = "\
fn main() {
b0: ; entry
  %0 = eof
  branch %0 ? b1 : b1
b1: ; block preds=b0
  %1 = phi flag: bool [true from b0, false from b0]
  %2 = phi [int] [%9 from b0, %8 from b0]
  %3 = phi bool [%0 from b0, %1 from b0]
  return
}
";
    let program = read(text);
    let function = &program.functions[program.entry];
    let first: Vec<Operand> = function.blocks[Block::new(0)].term.edges().map(|edge| edge.args[0]).collect();
    assert_eq!(first, [Operand::Bool(true), Operand::Bool(false)]);
    assert_eq!(function.values[Value::new(2)].ty, Type::Array(Scalar::Int));
    assert_eq!(print(&program).to_string(), text);
}

#[test]
fn types_pass_along_copies_in_any_order() {
    let text = "\
form sequenced
fn f(%0: bool, %1: [int]) -> bool {
b0:
  jump b2
b1:
  %2 = copy %3
  return %2
b2:
  %3 = copy %4
  %4 = copy %0
  %5 = copy %1
  %6 = select %0 ? %2 : %2
  jump b1
}
fn main() {
b0:
  %0 = call f(true, %1)
  return
}";
    let program = read(text);
    let f = &program.functions[FuncId::new(0)];
    let types: Vec<Type> = f.values.values().map(|value| value.ty).collect();
    let (b, a) = (Type::BOOL, Type::Array(Scalar::Int));
    assert_eq!(types, [b, a, b, b, b, a, b]);
    assert_eq!(program.functions[program.entry].values[Value::new(0)].ty, b);
}

#[test]
fn positions_are_those_of_the_text() {
    let program = read(EVERYTHING);
    let function = &program.functions[program.entry];
    let inst = function.insts.values().find(|inst| inst.op == Op::Read).expect("there is a read");
    assert_eq!(program.positions.position(inst.span), Some(Position { line: 7, column: 5 }));
}

#[test]
fn source_lines_stand_above_their_code_and_are_skipped() {
    let source = Source::new("a.atl", "let x = 1;\n  x = x / 2;\n");
    let mut program = read("fn main() {\nb0: ; entry\n  %0 = copy 1\n  %1 = int %0 + 2\n  return\n}");
    let function = &mut program.functions[FuncId::new(0)];
    function.insts[Inst::new(0)].span = Span::new(4, 5);
    function.insts[Inst::new(1)].span = Span::new(19, 20);
    let text = print_with_source(&program, Some(&source)).to_string();
    let expected = "\
fn main() {
b0: ; entry
  ; 1: let x = 1;
  %0 = copy 1
  ; 2: x = x / 2;
  %1 = int %0 + 2
  return
}
";
    assert_eq!(text, expected);
    assert_eq!(print(&read(&text)).to_string(), print(&program).to_string());
}

#[test]
fn mistakes_are_named_where_they_stand() {
    let body = |lines: &str| format!("fn main() {{\nb0:\n{lines}\n}}\n");
    let first = |text: &str| mistakes(text).remove(0);
    assert_eq!(first(""), (INCOMPLETE, String::new(), "the program has no function `main`".to_string()));
    assert_eq!(first(&body("%1 = copy %2 %3\nreturn")).1, "%3");
    assert_eq!(first(&body("%1 = cpy %2\nreturn")), (UNKNOWN, "cpy".into(), "there is no instruction `cpy`".into()));
    assert_eq!(first(&body("call f()\nreturn")), (UNKNOWN, "f".into(), "there is no function `f`".into()));
    assert_eq!(first(&body("jump b7")), (UNKNOWN, "b7".into(), "there is no block b7".into()));
    assert_eq!(first(&body("%1 = copy 1")).0, INCOMPLETE);
    assert_eq!(first(&body("return\nreturn")).0, MALFORMED);
    assert_eq!(first(&body("%1 = free %2\nreturn")).2, "this instruction gives no value");
    assert_eq!(first(&body("%1 = call main()\nreturn")).2, "this function gives no value");
    assert_eq!(first(&body("return\nb0:\nreturn")).0, DUPLICATE);
    assert_eq!(first("fn main() {\n}\n").2, "the function `main` has no blocks");
    assert_eq!(first(&body("%4294967294 = copy 1\nreturn")).1, "%4294967294");
    // IR14: an operand for one predecessor is missing, or is one too many.
    let missing = body("jump b1\nb1:\n%1 = phi [1 from b0]\njump b1");
    assert_eq!(first(&missing).2, "%1 has no operand from its predecessor b1");
    let extra = body("jump b1\nb1:\n%1 = phi [1 from b0, 2 from b0]\nreturn");
    assert_eq!(first(&extra).2, "%1 has more operands from b0 than b0 has edges to b1");
    assert_eq!(first(&body("jump b1\nb1:\n%1 = phi [1 from b1]\nreturn")).2, "b1 has no edge to b1");
    // Each line recovers: two mistakes, two diagnostics.
    assert_eq!(mistakes(&body("%1 = cpy 2\n$\nreturn")).len(), 2);
    assert!(mistakes(&body(&"$\n".repeat(1000))).len() <= 50);
}

#[test]
fn damaged_text_never_panics() {
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let pieces =
        ["%9", "b1", "b0", "[", "]", "phi", "\n", " ; x", "from", "@1:2", "\"", "\\u{", "9", "fn", "}", ":", "é"];
    for round in 0..4000 {
        let mut text = if round % 2 == 0 { SWAP.to_string() } else { EVERYTHING.to_string() };
        for _ in 0..1 + random(4) {
            let mut at = random(text.len());
            let mut end = (at + random(12)).min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(at..end, if random(3) == 0 { "" } else { pieces[random(pieces.len())] });
        }
        // What can still be read survives printing and reading again.
        if let Ok(program) = parse(&Source::new("t.ir", text)) {
            let once = print(&program).to_string();
            assert_eq!(print(&read(&once)).to_string(), once);
        }
    }
}

#[test]
fn the_listings_of_the_documentation_are_exact() {
    let text = include_str!("../../docs/ir.md");
    let listings: Vec<&str> =
        text.split("```ir\n").skip(1).map(|rest| rest.split("```").next().expect("split gives one part")).collect();
    assert_eq!(listings.len(), 5);
    for listing in listings {
        let program = read(listing);
        super::verify::verify(&program).unwrap_or_else(|error| panic!("{error}\n{listing}"));
        assert_eq!(print(&program).to_string(), listing);
    }
    // Each instruction and terminator of the tables stands in a program that can be read.
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let mut lines = 0;
    for row in rows.filter(|row| !Form::ALL.iter().any(|form| row.starts_with(&format!("| `{}`", form.name())))) {
        let cell = row[2..].split(" | ").next().expect("a row has cells").replace("\\|", "|");
        for line in cell.split('`').filter(|part| !part.trim().is_empty()) {
            let ends = ["jump", "branch", "return", "unreachable"].iter().any(|name| line.starts_with(name));
            let end = if ends { "" } else { "  return\n" };
            let blocks = "b1:\n  return\nb2:\n  return\nb3:\n  return\n";
            read(&format!(
                "fn f(%8: int, %9: int) -> int {{\nb0:\n  return 1\n}}\nfn main() {{\nb0:\n  {line}\n{end}{blocks}}}\n"
            ));
            lines += 1;
        }
    }
    assert_eq!(lines, 26);
}
