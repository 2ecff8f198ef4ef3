//! Tests of the way into SSA form and out of it.

use super::construct::{self, Copies, Options, Pruning};
use super::{destruct, sequence, split_edges};
use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::frontiers;
use crate::execution::{Limits, Outcome};
use crate::ir::interpret;
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::ir::random::{Shape, generate};
use crate::ir::verify::verify;
use crate::ir::*;
use crate::support::span::Source;

fn read(text: &str) -> Program {
    parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

fn valid(program: &Program) {
    verify(program).unwrap_or_else(|error| panic!("{error}\n{}", print(program)));
}

fn each(program: &mut Program, step: impl Fn(&mut Function)) {
    program.functions.values_mut().for_each(step);
}

fn outcome(program: &Program) -> Outcome {
    let limits = Limits { steps: 5_000, depth: 200, ..Limits::default() };
    let run = interpret::run(program, b"1 2 3", limits).unwrap_or_else(|error| panic!("{error}\n{}", print(program)));
    run.outcome
}

fn output(program: &Program) -> String {
    String::from_utf8(outcome(program).output).expect("text")
}

fn all_options() -> Vec<Options> {
    let prunings = [Pruning::Minimal, Pruning::SemiPruned, Pruning::Pruned];
    let with = |copies| prunings.map(|pruning| Options { pruning, copies });
    [with(Copies::Fold), with(Copies::Keep)].concat()
}

/// Takes a program out of SSA form; after each step it is valid and does the same.
fn leave_ssa(program: &mut Program) {
    let before = outcome(program);
    for step in [split_edges::run, destruct::run, sequence::run] {
        each(program, step);
        valid(program);
        let after = outcome(program);
        assert!(before.agrees(&after), "{before:?} became {after:?} in\n{}", print(program));
    }
}

#[test]
fn random_programs_keep_their_meaning_out_of_ssa_and_back() {
    for seed in 0..120 {
        for shape in [Shape::tiny(), Shape::webs(), Shape { traps: true, ..Shape::default() }] {
            let mut program = generate(seed, &shape);
            valid(&program);
            let before = outcome(&program);
            leave_ssa(&mut program);
            each(&mut program, |function| function.form = Form::Variables);
            for options in all_options() {
                let mut again = program.clone();
                each(&mut again, |function| construct::run(function, &options));
                valid(&again);
                let after = outcome(&again);
                assert!(before.agrees(&after), "{options:?}: {before:?} became {after:?} in\n{}", print(&again));
                let function = &again.functions[again.entry];
                if options.pruning == Pruning::Pruned {
                    again.functions.values().for_each(no_dead_phis);
                }
                if options.copies == Copies::Fold {
                    let is_copy = |inst: &Inst| matches!(function.insts[*inst].op, Op::Copy(_));
                    assert!(!function.layout.iter().any(|block| function.blocks[*block].insts.iter().any(is_copy)));
                }
                leave_ssa(&mut again);
            }
        }
    }
}

/// Every φ is read by an instruction or a terminator, directly or by way of other φs.
fn no_dead_phis(function: &Function) {
    let mut alive = vec![false; function.values.len()];
    let mut changed = true;
    for block in &function.layout {
        let data = &function.blocks[*block];
        let mut read =
            |operand: Operand| operand.value().into_iter().for_each(|value| alive[value.as_u32() as usize] = true);
        data.insts.iter().for_each(|inst| function.insts[*inst].op.for_each_operand(&mut read));
        data.term.operand().into_iter().for_each(&mut read);
    }
    while std::mem::take(&mut changed) {
        for block in &function.layout {
            for edge in function.blocks[*block].term.edges() {
                for (phi, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                    if let Operand::Value(value) = arg
                        && alive[phi.as_u32() as usize]
                        && !std::mem::replace(&mut alive[value.as_u32() as usize], true)
                    {
                        changed = true;
                    }
                }
            }
        }
    }
    for phi in function.layout.iter().flat_map(|block| &function.blocks[*block].params) {
        assert!(alive[phi.as_u32() as usize], "{phi} of {} is dead", function.name);
    }
}

/// The swap of ARCHITECTURE.md, as it comes from the source.
const SWAP: &str = "\
form variables
fn main() {
b0: ; entry
  %0 = copy 1 ; x
  %1 = copy 2 ; y
  %2 = copy 0 ; i
  jump b1
b1: ; while.cond preds=b0,b2
  %3 = bool %2 < 3
  branch %3 ? b2 : b3
b2: ; while.body preds=b1
  %4 = copy %0 ; t
  %0 = copy %1 ; x
  %1 = copy %4 ; y
  %5 = int %2 + 1
  %2 = copy %5 ; i
  jump b1
b3: ; while.end preds=b1
  print %0
  print %1
  return
}
";

#[test]
fn the_swap_goes_in_and_out() {
    let mut program = read(SWAP);
    valid(&program);
    each(&mut program, |function| construct::run(function, &Options::default()));
    let ssa = "\
fn main() {
b0: ; entry
  jump b1
b1: ; while.cond preds=b0,b2
  %6 = phi x [1 from b0, %7 from b2]
  %7 = phi y [2 from b0, %6 from b2]
  %8 = phi i [0 from b0, %5 from b2]
  %3 = bool %8 < 3
  branch %3 ? b2 : b3
b2: ; while.body preds=b1
  %5 = int %8 + 1 ; i
  jump b1
b3: ; while.end preds=b1
  print %6
  print %7
  return
}
";
    assert_eq!(print(&program).to_string(), ssa);
    each(&mut program, split_edges::run);
    each(&mut program, destruct::run);
    let text = print(&program).to_string();
    assert!(text.contains("  parallel %6 = 1, %7 = 2, %8 = 0 ; x, y, i\n"), "{text}");
    assert!(text.contains("  parallel %6 = %7, %7 = %6, %8 = %5 ; x, y, i\n"), "{text}");
    each(&mut program, sequence::run);
    let text = print(&program).to_string();
    let body = "  %8 = copy %5 ; i\n  %9 = copy %6\n  %6 = copy %7 ; x\n  %7 = copy %9 ; y\n  jump b1\n";
    assert!(text.contains(body), "{text}");
    assert_eq!(output(&program), "2\n1\n");

    let function = &program.functions[program.entry];
    let (b2, edge) = (Block::from_u32(2), 0);
    let origins: Vec<CopyOrigin> =
        function.blocks[b2].insts.iter().filter_map(|inst| function.copy_origins.get(inst).copied()).collect();
    let value = Value::from_u32;
    let expected = [
        CopyOrigin::Phi { phi: value(8), pred: b2, edge },
        CopyOrigin::Rescue { victim: value(6), pred: b2, edge },
        CopyOrigin::Phi { phi: value(6), pred: b2, edge },
        CopyOrigin::Phi { phi: value(7), pred: b2, edge },
    ];
    assert_eq!(origins, expected);
}

#[test]
fn pruning_makes_fewer_phis() {
    // Both arms write x and t. x is read behind the join, t only in the arms; z is written in both arms and read nowhere.
    let text = "\
form variables
fn main() {
b0:
  %0 = copy 0 ; x
  %1 = eof
  branch %1 ? b1 : b2
b1:
  %0 = copy 1 ; x
  %2 = copy 5 ; t
  %4 = copy %0 ; z
  print %2
  jump b3
b2:
  %2 = copy 6 ; t
  %4 = copy %2 ; z
  print %2
  jump b3
b3:
  print %0
  %5 = copy %4 ; w
  return
}";
    let names = |pruning| {
        let mut program = read(text);
        each(&mut program, |function| construct::run(function, &Options { pruning, copies: Copies::Fold }));
        valid(&program);
        let function = &program.functions[program.entry];
        let phis = function.layout.iter().flat_map(|block| &function.blocks[*block].params);
        phis.map(|phi| function.variable_of(*phi).map_or("", |variable| variable.name.as_str()).to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Pruning::Minimal), ["x", "t", "z"]);
    assert_eq!(names(Pruning::SemiPruned), ["x", "z"]);
    assert_eq!(names(Pruning::Pruned), ["x"]);
}

#[test]
fn unreachable_blocks_go_and_infinite_loops_stay() {
    // IR12, over variables: blocks that nothing reaches write and jump to what is reached.
    let text = "\
form variables
fn main() {
b0:
  %0 = copy 1
  jump b1
b1:
  print %0
  %0 = int %0 + 1
  jump b1
b2:
  %0 = copy 9
  jump b1
b3:
  jump b4
b4:
  %0 = copy 8
  branch true ? b4 : b1
}";
    let mut program = read(text);
    each(&mut program, |function| construct::run(function, &Options::default()));
    valid(&program);
    let function = &program.functions[program.entry];
    assert_eq!(function.layout.len(), 2);
    assert_eq!(function.blocks[Block::from_u32(1)].params.len(), 1);
    assert!(output(&program).starts_with("1\n2\n3\n"));
}

#[test]
fn both_edges_of_a_branch_to_one_block() {
    let text = "\
form variables
fn f(%0 a: int) -> int {
b0:
  %1 = copy %0
  %2 = bool %0 < 0
  branch %2 ? b1 : b1
b1:
  %1 = int %1 + 1
  %0 = int %0 + 1
  %3 = bool %0 < 5
  branch %3 ? b1 : b2
b2:
  return %1
}
fn main() {
b0:
  %0 = call f(2)
  print %0
  return
}";
    for options in all_options() {
        let mut program = read(text);
        each(&mut program, |function| construct::run(function, &options));
        valid(&program);
        assert_eq!(output(&program), "5\n");
        leave_ssa(&mut program);
    }
}

#[test]
fn ir09_an_entry_that_is_jumped_to_gets_one_in_front() {
    let text = "\
form variables
fn f(%0 a: int, %1 b: int) -> int {
b0:
  %2 = bool %1 == 0
  branch %2 ? b2 : b1
b1:
  %3 = int %0 % %1
  %0 = copy %1
  %1 = copy %3
  jump b0
b2:
  return %0
}
fn main() {
b0:
  %0 = call f(48, 18)
  print %0
  return
}";
    let mut program = read(text);
    assert!(verify(&program).is_err());
    each(&mut program, |function| construct::run(function, &Options::default()));
    valid(&program);
    let function = &program.functions[FuncId::from_u32(0)];
    assert_eq!(function.entry(), Block::from_u32(3));
    assert_eq!(function.blocks[Block::from_u32(0)].params.len(), 2);
    assert_eq!(output(&program), "6\n");
    leave_ssa(&mut program);
}

#[test]
fn ir01_a_self_loop_that_rotates_its_phis() {
    let text = "\
fn main() {
b0:
  jump b1
b1:
  %0 = phi [1 from b0, %1 from b1]
  %1 = phi [2 from b0, %0 from b1]
  %2 = phi [3 from b0, %3 from b1]
  %3 = int %2 - 1
  %4 = bool %3 > 0
  branch %4 ? b1 : b2
b2:
  %5 = int %0 * 10
  %6 = int %5 + %1
  print %6
  return
}";
    let mut program = read(text);
    valid(&program);
    assert_eq!(output(&program), "12\n");
    leave_ssa(&mut program);
    assert_eq!(output(&program), "12\n");
    let function = &program.functions[program.entry];
    assert_eq!(function.layout.len(), 4);
}

#[test]
fn ir06_the_lost_copy() {
    // Both edges out of b1 are critical; r must be x, not the next x.
    let text = "\
fn main() {
b0:
  %0 = eof
  branch %0 ? b2 : b1
b1:
  %1 = phi [10 from b0, %2 from b1]
  %2 = int %1 + 1
  %3 = bool %2 < 13
  branch %3 ? b1 : b2
b2:
  %4 = phi [0 from b0, %1 from b1]
  print %4
  return
}";
    let mut program = read(text);
    valid(&program);
    assert_eq!(output(&program), "12\n");
    each(&mut program, split_edges::run);
    let function = &program.functions[program.entry];
    let splits = function.layout.iter().filter(|block| function.blocks[**block].role == Role::Split).count();
    // Both edges out of b0 and both out of b1 are critical.
    assert_eq!(splits, 4);
    let mut program = read(text);
    leave_ssa(&mut program);
    assert_eq!(output(&program), "12\n");
}

#[test]
fn ir04_constants_are_written_after_what_they_replace_is_read() {
    let text = "\
fn main() {
b0:
  %0 = read
  %1 = read
  %2 = read
  jump b1
b1:
  %3 = phi [%0 from b0, %4 from b1]
  %4 = phi [%1 from b0, 10 from b1]
  %5 = phi [%2 from b0, %4 from b1]
  print %3, %4, %5
  %6 = bool %3 == 10
  branch %6 ? b2 : b1
b2:
  return
}";
    let mut program = read(text);
    assert_eq!(output(&program), "1 2 3\n2 10 2\n10 10 10\n");
    leave_ssa(&mut program);
    assert_eq!(output(&program), "1 2 3\n2 10 2\n10 10 10\n");
}

#[test]
fn ir08_copies_stand_behind_the_read_of_the_condition() {
    // The φ takes over what the condition was; the one edge with arguments is not critical, so its copies stand in b1.
    let text = "\
fn main() {
b0:
  %0 = eof
  jump b1
b1:
  %1 = phi c: bool [%0 from b0, %3 from b2]
  branch %1 ? b3 : b2
b2:
  %2 = phi d: bool [%1 from b1]
  %3 = bool ! %2
  jump b1
b3:
  print %1
  return
}";
    let mut program = read(text);
    valid(&program);
    assert_eq!(output(&program), "true\n");
    leave_ssa(&mut program);
    assert_eq!(output(&program), "true\n");
}

#[test]
fn ir28_copies_of_one_value_are_different_variables() {
    let text = "\
form variables
fn main() {
b0:
  %0 = copy 0 ; c
  %1 = copy %0 ; a
  %2 = copy %0 ; b
  jump b1
b1:
  %1 = int %1 + 1 ; a
  %3 = bool %1 < 4
  branch %3 ? b1 : b2
b2:
  print %1, %2
  return
}";
    for options in all_options() {
        let mut program = read(text);
        each(&mut program, |function| construct::run(function, &options));
        valid(&program);
        assert_eq!(output(&program), "4 0\n");
        leave_ssa(&mut program);
    }
}

#[test]
fn ir12_unreachable_blocks_have_no_dominator_and_give_no_operand_out_of_ssa() {
    // b2 is not reached and jumps to b1; b3 and b4 are not reached and both jump to b5, which is not either.
    let text = "\
fn main() {
b0:
  jump b1
b1:
  %0 = phi [1 from b0, 7 from b2]
  print %0
  return
b2:
  jump b1
b3:
  jump b5
b4:
  jump b5
b5:
  %1 = phi [1 from b3, 2 from b4, %1 from b5]
  jump b5
}";
    let mut program = read(text);
    valid(&program);
    let function = &program.functions[program.entry];
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);
    let frontiers = frontiers::compute(&cfg, &dominators);
    for block in [2, 3, 4, 5].map(Block::from_u32) {
        assert_eq!(dominators.idom(block), None);
        assert!(!dominators.dominates(block, block) && !dominators.dominates(function.entry(), block));
        assert!(frontiers[block].is_empty());
    }
    assert!(frontiers.values().all(|set| set.is_empty()));
    leave_ssa(&mut program);
    assert_eq!(output(&program), "1\n");
    assert_eq!(program.functions[program.entry].layout.len(), 2);
    assert!(!print(&program).to_string().contains("copy 7"));
}
