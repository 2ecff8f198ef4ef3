//! Tests of the validator: it accepts the way out of SSA form that the compiler takes, and refuses what was broken on
//! purpose. A mutant that it accepts must be right: it shows the same when it is run.

use super::*;
use crate::execution::{Limits, Outcome};
use crate::ir::interpret;
use crate::ir::parse::parse;
use crate::ir::random::{Shape, generate};
use crate::ir::{Edge, FuncId, Program, Role, Type};
use crate::ssa::{boissinot, destruct, isolate, sequence, split_edges};
use crate::support::random::Random;
use crate::support::span::{Source, Span};

fn outcome(program: &Program) -> Result<Outcome, Internal> {
    let limits = Limits { steps: 20_000, depth: 200, ..Limits::default() };
    interpret::run(program, b"1 2 3", limits).map(|run| run.outcome)
}

fn read(text: &str) -> Program {
    parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

fn each(program: &Program, step: impl Fn(&mut Function)) -> Program {
    let mut program = program.clone();
    program.functions.values_mut().for_each(step);
    program
}

fn all(ssa: &Program, destroyed: &Program) -> Result<(), Internal> {
    ssa.functions.iter().try_for_each(|(id, function)| validate(function, &destroyed.functions[id]))
}

#[test]
fn accepts_the_way_that_the_compiler_takes() {
    for seed in 0..200 {
        for shape in [Shape::tiny(), Shape::webs(), Shape::default(), Shape::pressure()] {
            let ssa = each(&generate(seed, &shape), |function| {
                split_edges::run(function);
            });
            let parallel = each(&ssa, destruct::run);
            all(&ssa, &parallel).unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
            let sequenced = each(&parallel, sequence::run);
            all(&ssa, &sequenced).unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
            all(&parallel, &sequenced).unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
        }
    }
}

/// The blocks of a function where copies stand, with the range of the first run of copies.
fn runs_of_copies(function: &Function) -> Vec<(Block, usize, usize)> {
    let mut runs = Vec::new();
    for block in &function.layout {
        let insts = &function.blocks[*block].insts;
        let copy = |index: usize| is_copy(&function.insts[insts[index]].op);
        if let Some(start) = (0..insts.len()).find(|index| copy(*index)) {
            let end = (start..insts.len()).find(|index| !copy(*index)).unwrap_or(insts.len());
            runs.push((*block, start, end));
        }
    }
    runs
}

/// Breaks one thing in sequenced code, if it can. Values from number `versions` on are temporaries.
fn mutate(function: &mut Function, versions: usize, random: &mut Random) -> Option<&'static str> {
    let runs = runs_of_copies(function);
    if runs.is_empty() {
        return None;
    }
    // Copies that rescue what a cycle overwrites are rare, and the most telling.
    let is_rescue = |block: Block, at: usize| {
        let result = function.insts[function.blocks[block].insts[at]].result.expand();
        result.is_some_and(|result| result.index() >= versions)
    };
    let mut places: Vec<(Block, usize, usize, usize)> =
        runs.iter().flat_map(|&(block, start, end)| (start..end).map(move |at| (block, start, end, at))).collect();
    let kind = random.below(5);
    if kind == 4 || random.chance(30) && places.iter().any(|place| is_rescue(place.0, place.3)) {
        places.retain(|place| is_rescue(place.0, place.3));
    }
    if places.is_empty() {
        return None;
    }
    let (block, start, end, at) = random.pick(&places);
    let inst = function.blocks[block].insts[at];
    match kind {
        0 => {
            // What a dropped copy leaves is unknown; runs want it to be something.
            let result = function.insts[inst].result.expand()?;
            let junk = match function.values[result].ty {
                Type::Scalar(scalar) => Operand::from_constant(scalar, 0x5EED),
                Type::Array(_) => return None,
            };
            function.insts[inst].op = Op::Copy(junk);
            Some("a dropped copy")
        }
        1 => {
            (at + 1 < end).then_some(())?;
            function.blocks[block].insts.swap(at, at + 1);
            Some("copies exchanged")
        }
        2 => {
            // The source of another copy of the run.
            let other = function.blocks[block].insts[random.between(start, end - 1)];
            let source = function.insts[other].op.clone();
            let same = function.insts[inst].op == source;
            function.insts[inst].op = source;
            (!same).then_some("another source")
        }
        3 => {
            // A copy that overwrites a value which may be needed.
            let values: Vec<Value> =
                function.values.keys().filter(|value| function.values[*value].ty == Type::INT).collect();
            let value = random.pick(&values);
            let copy = function.make_inst(Op::Copy(Operand::Int(0x5EED)), Some(value), Span::NONE);
            function.blocks[block].insts.insert(at, copy);
            Some("a value overwritten")
        }
        _ => {
            // The rescue of a cycle left out, and its temporary with it: the naive order.
            let Op::Copy(Operand::Value(saved)) = function.insts[inst].op else { return None };
            let temp = function.insts[inst].result.expand()?;
            (temp.index() >= versions).then_some(())?;
            function.blocks[block].insts.remove(at);
            for other in function.blocks[block].insts.clone() {
                function.insts[other].op.for_each_operand_mut(|operand| {
                    if *operand == Operand::Value(temp) {
                        *operand = Operand::Value(saved);
                    }
                });
            }
            Some("a naive order")
        }
    }
}

#[test]
fn refuses_mutants_that_are_wrong() {
    let mut random = Random::new(11);
    // For each kind of mutant: how many were refused, how many were harmless.
    let mut counts: std::collections::BTreeMap<&str, (u32, u32)> = std::collections::BTreeMap::new();
    for seed in 0..240 {
        for shape in [Shape::webs(), Shape::default()] {
            let (ssa, parallel) = match seed % 4 {
                0 | 1 => {
                    let ssa = each(&generate(seed, &shape), split_edges::run);
                    let parallel = each(&ssa, destruct::run);
                    (ssa, parallel)
                }
                2 => {
                    let ssa = each(&generate(seed, &shape), split_edges::run_twins);
                    let parallel = each(&ssa, isolate::run);
                    (ssa, parallel)
                }
                _ => {
                    let ssa = each(&generate(seed, &shape), split_edges::run_twins);
                    let parallel = each(&ssa, |function| {
                        boissinot::run(function);
                    });
                    (ssa, parallel)
                }
            };
            let right = each(&parallel, sequence::run);
            // The second half of the way can be judged by itself too.
            let start = if seed % 4 == 1 { &parallel } else { &ssa };
            let expected = outcome(&ssa).expect("random programs run");
            for _ in 0..8 {
                let mut wrong = right.clone();
                let id = FuncId::new(random.below(ssa.functions.len()));
                let versions = ssa.functions[id].values.len();
                let Some(how) = mutate(&mut wrong.functions[id], versions, &mut random) else { continue };
                let count = counts.entry(how).or_default();
                if validate(&start.functions[id], &wrong.functions[id]).is_err() {
                    count.0 += 1;
                    continue;
                }
                count.1 += 1;
                let shown = match outcome(&wrong) {
                    Ok(shown) => shown,
                    // A φ that nothing reads may be copied from a temporary that holds nothing yet.
                    Err(error)
                        if (how == "another source" || how == "a naive order")
                            && error.message.contains("holds nothing") =>
                    {
                        continue;
                    }
                    Err(error) => panic!("seed {seed}: accepted {how}: {error}"),
                };
                assert!(shown.agrees(&expected), "seed {seed}, {shape:?}: accepted {how}");
            }
        }
    }
    // A copy to a φ that nothing reads may well go; but of each kind, many are refused.
    assert!(counts.len() == 5 && counts.values().all(|(refused, _)| *refused >= 10), "{counts:?}");
}

/// Two values that swap in each round, in both halves of the way out.
const SWAP: &str = "form split-ssa
fn main() {
b0:
  jump b1
b1:
  %3 = phi x [1 from b0, %4 from b2]
  %4 = phi y [2 from b0, %3 from b2]
  %5 = phi i [0 from b0, %7 from b2]
  %6 = bool %5 < 3
  branch %6 ? b2 : b3
b2:
  %7 = int %5 + 1
  jump b1
b3:
  print %3
  print %4
  return
}
";

/// The same out of SSA form, with the copies of the back edge as they are given.
fn swap_with(copies: &str) -> Program {
    read(&format!(
        "form sequenced
fn main() {{
b0:
  %3 = copy 1
  %4 = copy 2
  %5 = copy 0
  jump b1
b1:
  %6 = bool %5 < 3
  branch %6 ? b2 : b3
b2:
  %7 = int %5 + 1
{copies}  jump b1
b3:
  print %3
  print %4
  return
}}
"
    ))
}

#[test]
fn the_swap_problem() {
    let ssa = read(SWAP);
    let judge = |copies: &[&str]| {
        let lines: String = copies.iter().map(|copy| format!("  {copy}\n")).collect();
        validate(&ssa.functions[ssa.entry], &swap_with(&lines).functions[FuncId::new(0)])
    };
    assert_eq!(judge(&["%8 = copy %3", "%3 = copy %4", "%4 = copy %8", "%5 = copy %7"]), Ok(()));
    assert_eq!(judge(&["%8 = copy %4", "%4 = copy %3", "%5 = copy %7", "%3 = copy %8"]), Ok(()));
    // More temporaries than needed do no harm.
    assert_eq!(judge(&["%8 = copy %3", "%9 = copy %4", "%5 = copy %7", "%3 = copy %9", "%4 = copy %8"]), Ok(()));
    for wrong in [
        // The naive order, both ways.
        ["%3 = copy %4", "%4 = copy %3", "%5 = copy %7"].as_slice(),
        &["%4 = copy %3", "%3 = copy %4", "%5 = copy %7"],
        // The source is rescued, not the destination that is overwritten first.
        &["%8 = copy %4", "%3 = copy %4", "%4 = copy %3", "%5 = copy %7"],
        &["%8 = copy %4", "%3 = copy %8", "%4 = copy %3", "%5 = copy %7"],
        // A dropped copy.
        &["%8 = copy %3", "%3 = copy %4", "%5 = copy %7"],
        &["%8 = copy %3", "%3 = copy %4", "%4 = copy %8"],
        &[],
        // The rescue comes too late.
        &["%3 = copy %4", "%8 = copy %3", "%4 = copy %8", "%5 = copy %7"],
    ] {
        let error = judge(wrong).expect_err("this must be refused");
        assert!(error.message.contains("does not hold it here"), "{error}");
    }
}

#[test]
fn the_lost_copy_problem() {
    // `%3` is read behind the loop, where the next round's value has overwritten it if the critical edge is not split.
    let ssa = read(
        "form ssa
fn main() {
b0:
  jump b1
b1:
  %3 = phi x [1 from b0, %4 from b1]
  %4 = int %3 + 1
  %5 = bool %4 < 9
  branch %5 ? b1 : b2
b2:
  print %3
  return
}
",
    );
    let unsplit = |after: &str| {
        read(&format!(
            "form sequenced
fn main() {{
b0:
  %3 = copy 1
  jump b1
b1:
  %4 = int %3 + 1
  %5 = bool %4 < 9
  %3 = copy %4
  branch %5 ? b1 : b2
b2:
  print {after}
  return
}}
"
        ))
    };
    let judge = |destroyed: &Program| validate(&ssa.functions[ssa.entry], &destroyed.functions[destroyed.entry]);
    let error = judge(&unsplit("%3")).expect_err("the copy is lost");
    assert_eq!(error.entity, "b2");
    assert!(error.message.contains("where SSA reads %3"), "{error}");
    // The same code is right where nothing behind the loop reads the φ.
    let mut other = ssa.clone();
    let main = other.entry;
    let inst = other.functions[main].blocks[Block::new(2)].insts[0];
    other.functions[main].insts[inst].op = Op::Print(Vec::new());
    let mut unread = unsplit("%3");
    let inst = unread.functions[main].blocks[Block::new(2)].insts[0];
    unread.functions[main].insts[inst].op = Op::Print(Vec::new());
    assert_eq!(validate(&other.functions[main], &unread.functions[main]), Ok(()));
}

#[test]
fn an_operand_exchanged_or_a_constant_changed() {
    let ssa = read(SWAP);
    let right = "  %8 = copy %3\n  %3 = copy %4\n  %4 = copy %8\n  %5 = copy %7\n";
    let judge = |edit: &dyn Fn(&mut Function)| {
        let mut destroyed = swap_with(right);
        edit(&mut destroyed.functions[FuncId::new(0)]);
        validate(&ssa.functions[ssa.entry], &destroyed.functions[FuncId::new(0)])
    };
    assert_eq!(judge(&|_| {}), Ok(()));
    let wrong_edge = |function: &mut Function| {
        function.blocks[Block::new(2)].term = Terminator::Jump(Edge::to(Block::new(3)));
    };
    assert!(judge(&wrong_edge).is_err());
    let wrong_constant = |function: &mut Function| {
        let inst = function.blocks[Block::new(0)].insts[0];
        function.insts[inst].op = Op::Copy(Operand::Int(2));
    };
    assert!(judge(&wrong_constant).is_err());
    let missing = |function: &mut Function| {
        function.blocks[Block::new(3)].insts.pop();
    };
    assert!(judge(&missing).is_err());
    let more = |function: &mut Function| {
        let inst = function.make_inst(Op::Print(Vec::new()), None, Span::NONE);
        function.blocks[Block::new(3)].insts.push(inst);
    };
    assert!(judge(&more).is_err());
}

/// Many loops in a row, each with a swap: time grows with their number, not with its square.
#[test]
fn a_long_chain_of_swaps() {
    let count = 20_000;
    let mut function = Function::new("main", Form::SplitSsa);
    let mut block = function.make_block(Role::Entry);
    function.layout.push(block);
    let mut args = vec![Operand::Int(1), Operand::Int(2)];
    for _ in 0..count {
        let (header, body) = (function.make_block(Role::WhileCond), function.make_block(Role::WhileBody));
        function.layout.extend([header, body]);
        let params = [function.make_value(Type::INT, None), function.make_value(Type::INT, None)];
        function.blocks[header].params = params.to_vec();
        function.blocks[block].term = Terminator::Jump(Edge { target: header, args });
        let cond = function.make_value(Type::BOOL, None);
        let op = Op::Compare { op: crate::semantics::CompareOp::Lt, args: params.map(Operand::Value) };
        let inst = function.make_inst(op, Some(cond), Span::NONE);
        function.blocks[header].insts.push(inst);
        let back = vec![params[1].into(), params[0].into()];
        function.blocks[body].term = Terminator::Jump(Edge { target: header, args: back });
        let after = function.make_block(Role::WhileEnd);
        function.layout.push(after);
        let (then, els) = (Edge::to(body), Edge::to(after));
        function.blocks[header].term = Terminator::Branch { cond: cond.into(), then, els };
        args = params.map(Operand::Value).to_vec();
        block = after;
    }
    function.blocks[block].term = Terminator::Return(None);
    let mut destroyed = function.clone();
    destruct::run(&mut destroyed);
    sequence::run(&mut destroyed);
    let start = std::time::Instant::now();
    assert_eq!(validate(&function, &destroyed), Ok(()));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

/// Found by random programs, and reduced: `%33` takes on `%15`, which no exception of the state lists, while the listed pair
/// of `%10` holds the same. What `%33` holds must be tied to both.
#[test]
fn equal_pairs_of_which_one_is_not_listed() {
    let ssa = read(
        "\
form split-ssa
fn main() {
b0:
  jump b2
b2:
  %28 = phi i20 [0 from b0, %9 from b18]
  %9 = int %28 + 1
  %5 = bool %9 <= 0
  branch %5 ? b18 : b13
b18:
  jump b2
b13:
  %35 = phi i20 [%9 from b2]
  %15 = bool %35 > 0
  jump b5
b5:
  %29 = phi i25 [0 from b13, %14 from b20]
  %31 = phi x18: bool [false from b13, %10 from b20]
  %14 = int %29 + 1
  jump b9
b9:
  %32 = phi i35 [0 from b5, %18 from b19]
  %18 = int %32 + 1
  %7 = bool %18 > 0
  branch %7 ? b4 : b19
b19:
  jump b9
b4:
  %10 = phi x18: bool [%15 from b9]
  %6 = bool %14 <= 0
  branch %6 ? b20 : b11
b20:
  jump b5
b11:
  %33 = phi x19: bool [%15 from b4]
  %34 = phi x18: bool [%10 from b4]
  print %33, %34
  return
}
",
    );
    let parallel = each(&ssa, destruct::run);
    all(&ssa, &parallel).unwrap_or_else(|error| panic!("{error}"));
    let sequenced = each(&parallel, sequence::run);
    all(&ssa, &sequenced).unwrap_or_else(|error| panic!("{error}"));
}

/// Found by random programs, and reduced: on entering `b5`, `%38` and `%41` are the same number, whichever way one comes: both pairs
/// hold the same from `b2`, and both the version `%41` and the name `%38` hold 0 from `b5`. Coalescing by value relies on it.
#[test]
fn pairs_that_hold_the_same() {
    let ssa = read(
        "\
form split-ssa
fn main() {
b0:
  jump b2
b2:
  %37 = phi x139 [0 from b0, %22 from b9]
  %38 = phi x141 [1 from b0, %24 from b9]
  %39 = phi x140 [0 from b0, %23 from b9]
  %47 = phi i274 [0 from b0, %26 from b9]
  %9 = bool %37 <= 0
  branch %9 ? b5 : b9
b5:
  %40 = phi i301 [0 from b2, %20 from b5]
  %41 = phi x140 [%38 from b2, 0 from b5]
  %20 = int %40 + 1
  %10 = bool %20 <= 0
  branch %10 ? b5 : b6
b6:
  %11 = bool %41 <= 0
  %27 = select %11 ? 0 : %39
  jump b9
b9:
  %22 = phi x139 [%39 from b2, %27 from b6]
  %23 = phi x140 [%38 from b2, 0 from b6]
  %24 = phi x141 [%38 from b2, %41 from b6]
  %26 = int %47 + 1
  %8 = bool %26 <= 0
  branch %8 ? b2 : b10
b10:
  return
}
",
    );
    let text = "\
form parallel-copies
fn main() {
b0:
  parallel %37 = 0, %38 = 1, %39 = 0, %47 = 0
  jump b2
b2:
  %9 = bool %37 <= 0
  parallel %40 = 0, %37 = %39, %41 = %38
  branch %9 ? b5 : b9
b5:
  parallel %41 = %38
  %40 = int %40 + 1
  %10 = bool %40 <= 0
  parallel %38 = 0
  branch %10 ? b5 : b6
b6:
  %11 = bool %41 <= 0
  %37 = select %11 ? 0 : %39
  parallel %38 = 0
  jump b9
b9:
  parallel %39 = %38, %38 = %41
  %47 = int %47 + 1
  %8 = bool %47 <= 0
  branch %8 ? b2 : b10
b10:
  return
}
";
    all(&ssa, &read(text)).unwrap_or_else(|error| panic!("{error}"));
    // The argument of another φ is not good enough, though it often is the same.
    let wrong = text.replace("%38 = %41", "%38 = %37");
    assert!(all(&ssa, &read(&wrong)).is_err(), "{wrong}");
}
