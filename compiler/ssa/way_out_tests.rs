//! Tests of the ways out of SSA form: each one keeps the meaning of programs, as the interpreter and the validator see it,
//! on random programs and on the shapes that went wrong elsewhere.

use super::construct::{self, Copies, Options, Pruning};
use super::validate::validate;
use super::{OutOfSsa, boissinot, destruct, isolate, rename, sequence, split_edges};
use crate::execution::{Limits, Outcome};
use crate::ir::interpret;
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::ir::random::{Shape, generate};
use crate::ir::verify::verify;
use crate::ir::*;
use crate::support::span::Source;

fn read(text: &str) -> Program {
    let program = parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    verify(&program).unwrap_or_else(|error| panic!("{error}\n{text}"));
    program
}

fn outcome(program: &Program) -> Outcome {
    let limits = Limits { steps: 8_000, depth: 200, ..Limits::default() };
    let run = interpret::run(program, b"1 2 3", limits).unwrap_or_else(|error| panic!("{error}\n{}", print(program)));
    run.outcome
}

fn output(program: &Program) -> String {
    String::from_utf8(outcome(program).output).expect("text")
}

fn copies(program: &Program) -> usize {
    let functions = program.functions.values();
    let insts = functions.flat_map(|function| {
        function.layout.iter().flat_map(|block| &function.blocks[*block].insts).map(|inst| &function.insts[*inst])
    });
    insts.filter(|inst| matches!(inst.op, Op::Copy(_))).count()
}

/// Leaves SSA form; after each step the program is valid, does the same and is what the validator accepts. Gives the
/// program, or why it is not conventional.
fn leave(ssa: &Program, method: OutOfSsa) -> Result<Program, String> {
    let mut program = ssa.clone();
    let each = |program: &mut Program, step: &dyn Fn(&mut Function)| program.functions.values_mut().for_each(step);
    let before = outcome(&program);
    let mut judged = program.clone();
    let check = |judged: &Program, program: &Program| {
        verify(program).unwrap_or_else(|error| panic!("{method:?}: {error}\n{}\n{}", print(judged), print(program)));
        let after = outcome(program);
        assert!(before.agrees(&after), "{method:?}: {before:?}, {after:?}\n{}\n{}", print(judged), print(program));
        for (id, function) in &program.functions {
            if !function.form.is_ssa() {
                validate(&judged.functions[id], function)
                    .unwrap_or_else(|error| panic!("{method:?}: {error}\n{}\n{}", print(judged), print(program)));
            }
        }
    };
    match method {
        OutOfSsa::Split => {
            each(&mut program, &split_edges::run);
            judged = program.clone();
            each(&mut program, &destruct::run);
        }
        OutOfSsa::Isolate | OutOfSsa::Boissinot => {
            each(&mut program, &split_edges::run_twins);
            check(&judged, &program);
            judged = program.clone();
            each(&mut program, &|function| match method {
                OutOfSsa::Isolate => isolate::run(function),
                OutOfSsa::Split | OutOfSsa::Boissinot | OutOfSsa::Rename => {
                    boissinot::run(function);
                }
            });
        }
        OutOfSsa::Rename => {
            for function in program.functions.values_mut() {
                rename::run(function).map_err(|overlap| overlap.to_string())?;
            }
            check(&judged, &program);
            each(&mut program, &rename::finish);
            return Ok(program);
        }
    }
    check(&judged, &program);
    each(&mut program, &sequence::run);
    check(&judged, &program);
    Ok(program)
}

const COPYING: [OutOfSsa; 3] = [OutOfSsa::Split, OutOfSsa::Isolate, OutOfSsa::Boissinot];

#[test]
fn random_programs_keep_their_meaning() {
    let mut conventional = 0;
    for seed in 0..60 {
        for shape in [Shape::tiny(), Shape::webs(), Shape::default(), Shape { traps: true, ..Shape::default() }] {
            let ssa = generate(seed, &shape);
            let made: Vec<Program> =
                COPYING.iter().map(|method| leave(&ssa, *method).expect("these take any form")).collect();
            // Coalescing leaves no copies that isolating alone would not make, but for temporaries of cycles.
            assert!(copies(&made[2]) <= copies(&made[1]), "seed {seed}");
            conventional += usize::from(leave(&ssa, OutOfSsa::Rename).is_ok());
        }
    }
    assert!(conventional > 10, "only {conventional} random programs are conventional");
}

/// Out of SSA form, in again by each way of construction, and out by each way: with copies kept the form is conventional.
#[test]
fn random_programs_go_in_and_out() {
    for seed in 0..12 {
        for shape in [Shape::tiny(), Shape::webs(), Shape::default()] {
            let mut variables = leave(&generate(seed, &shape), OutOfSsa::Split).expect("it takes any form");
            variables.functions.values_mut().for_each(|function| function.form = Form::Variables);
            for pruning in [Pruning::Minimal, Pruning::SemiPruned, Pruning::Pruned] {
                for copies in [Copies::Fold, Copies::Keep] {
                    let mut ssa = variables.clone();
                    for function in ssa.functions.values_mut() {
                        construct::run(function, &Options { pruning, copies });
                    }
                    COPYING.iter().for_each(|method| drop(leave(&ssa, *method)));
                    let renamed = leave(&ssa, OutOfSsa::Rename);
                    if copies == Copies::Keep {
                        let mut renamed = renamed.unwrap_or_else(|error| panic!("{error}\n{}", print(&ssa)));
                        renamed.functions.values_mut().for_each(|function| function.form = Form::Variables);
                        assert_eq!(print(&renamed).to_string(), print(&variables).to_string(), "{pruning:?}");
                    }
                }
            }
        }
    }
}

const SWAP: &str = "fn main() {\nb0:\njump b1\nb1:\n%0 = phi x [1 from b0, %1 from b2]\n%1 = phi y [2 from b0, %0 from b2]\n\
                    %2 = phi i [0 from b0, %4 from b2]\n%3 = bool %2 < 3\nbranch %3 ? b2 : b3\nb2:\n%4 = int %2 + 1\n\
                    jump b1\nb3:\nprint %0\nprint %1\nreturn\n}\n";

#[test]
fn the_swap() {
    let ssa = read(SWAP);
    // Split: 3 constants, i, and the cycle of two with its temporary.
    let split = leave(&ssa, OutOfSsa::Split).expect("it takes any form");
    assert_eq!((output(&split).as_str(), copies(&split)), ("2\n1\n", 7));
    // Isolate: 6 operands and 3 φs.
    let isolated = leave(&ssa, OutOfSsa::Isolate).expect("it takes any form");
    assert_eq!((output(&isolated).as_str(), copies(&isolated)), ("2\n1\n", 9));
    // Boissinot: i becomes one value; the constants stay, and so do both copies of the cycle, with a temporary.
    let coalesced = leave(&ssa, OutOfSsa::Boissinot).expect("it takes any form");
    assert_eq!((output(&coalesced).as_str(), copies(&coalesced)), ("2\n1\n", 6));
    let refusal = leave(&ssa, OutOfSsa::Rename).expect_err("x and y are connected, and live at once");
    assert_eq!(refusal, "not conventional: x %0 and y %1 overlap in b1, at its start");
}

#[test]
fn rotation() {
    let text = "fn main() {\nb0:\njump b1\nb1:\n%0 = phi a [1 from b0, %1 from b2]\n%1 = phi b [2 from b0, %2 from b2]\n\
                %2 = phi c [3 from b0, %0 from b2]\n%3 = phi i [0 from b0, %5 from b2]\n%4 = bool %3 < 4\n\
                branch %4 ? b2 : b3\nb2:\n%5 = int %3 + 1\njump b1\nb3:\nprint %0\nprint %1\nprint %2\nreturn\n}\n";
    let ssa = read(text);
    // 8 operands; a temporary for the cycle of three; i takes no copy where it is coalesced.
    for (method, expected) in [(OutOfSsa::Split, 9), (OutOfSsa::Isolate, 12), (OutOfSsa::Boissinot, 8)] {
        let program = leave(&ssa, method).expect("these take any form");
        assert_eq!((output(&program).as_str(), copies(&program)), ("2\n3\n1\n", expected), "{method:?}");
    }
    let refusal = leave(&ssa, OutOfSsa::Rename).expect_err("a, b and c are connected");
    assert_eq!(refusal, "not conventional: a %0 and b %1 overlap in b1, at its start");
}

#[test]
fn the_lost_copy() {
    // A naive copy at the end of b1 would give b2 the next round's x.
    let text = "fn main() {\nb0:\njump b1\nb1:\n%0 = phi x [1 from b0, %1 from b1]\n%1 = int %0 + 1\n%2 = bool %1 < 5\n\
                branch %2 ? b1 : b2\nb2:\nprint %0\nreturn\n}\n";
    let ssa = read(text);
    // Boissinot: the operand's copy goes, the one into x has to stay, and the constant.
    for (method, expected) in [(OutOfSsa::Split, 2), (OutOfSsa::Isolate, 3), (OutOfSsa::Boissinot, 2)] {
        let program = leave(&ssa, method).expect("these take any form");
        assert_eq!((output(&program).as_str(), copies(&program)), ("4\n", expected), "{method:?}");
    }
    // Only splitting makes a block.
    let blocks = |method| {
        let program = leave(&ssa, method).expect("these take any form");
        program.functions[program.entry].layout.len()
    };
    assert_eq!(COPYING.map(blocks), [4, 3, 3]);
    let refusal = leave(&ssa, OutOfSsa::Rename).expect_err("x lives when its next version is written");
    assert_eq!(refusal, "not conventional: x %0 and %1 overlap in b1, at instruction 1 of 2");
}

#[test]
fn ir01_a_swap_in_a_loop_of_one_block() {
    let text = "fn main() {\nb0:\njump b1\nb1:\n%0 = phi x [1 from b0, %1 from b1]\n%1 = phi y [2 from b0, %0 from b1]\n\
                %2 = phi n [3 from b0, %3 from b1]\n%3 = int %2 - 1\n%4 = bool %3 > 0\nbranch %4 ? b1 : b2\nb2:\n\
                %5 = int %0 * 10\n%6 = int %5 + %1\nprint %6\nreturn\n}\n";
    let ssa = read(text);
    for method in COPYING {
        assert_eq!(output(&leave(&ssa, method).expect("these take any form")), "12\n", "{method:?}");
    }
    assert!(leave(&ssa, OutOfSsa::Rename).is_err());
}

#[test]
fn ir06_both_edges_of_a_loop_are_critical() {
    // r is x of the last round, not the next one.
    let text = "fn main() {\nb0:\n%9 = eof\nbranch %9 ? b2 : b1\nb1:\n%0 = phi x [1 from b0, %1 from b1]\n\
                %1 = int %0 + 1\n%2 = bool %1 < 5\nbranch %2 ? b1 : b2\nb2:\n%3 = phi r [0 from b0, %0 from b1]\n\
                print %3\nreturn\n}\n";
    let ssa = read(text);
    for method in COPYING {
        assert_eq!(output(&leave(&ssa, method).expect("these take any form")), "4\n", "{method:?}");
    }
    assert!(leave(&ssa, OutOfSsa::Rename).is_err());
}

#[test]
fn ir28_copies_of_one_value_that_part() {
    let text = "form variables\nfn main() {\nb0:\n%0 = copy 0 ; c\n%1 = copy %0 ; a\n%2 = copy %0 ; b\njump b1\nb1:\n\
                %1 = int %1 + 1 ; a\n%3 = bool %1 < 3\nbranch %3 ? b1 : b2\nb2:\nprint %1\nprint %2\nreturn\n}\n";
    for copies in [Copies::Fold, Copies::Keep] {
        let mut ssa = read(text);
        for function in ssa.functions.values_mut() {
            construct::run(function, &Options { copies, ..Options::default() });
        }
        for method in COPYING {
            assert_eq!(output(&leave(&ssa, method).expect("these take any form")), "3\n0\n", "{method:?}");
        }
        let renamed = leave(&ssa, OutOfSsa::Rename).expect("a and b are not connected");
        assert_eq!(output(&renamed), "3\n0\n");
    }
}

#[test]
fn copies_of_one_value_become_it() {
    // a, b and c hold the same while all live: one value will do for them and the φ.
    let text = "form ssa\nfn main() {\nb0:\n%0 = read @1:1\n%1 = copy %0 ; a\n%2 = copy %1 ; b\n%9 = eof\n\
                branch %9 ? b1 : b2\nb1:\njump b3\nb2:\njump b3\nb3:\n%3 = phi c [%1 from b1, %2 from b2]\n\
                print %0\nprint %1\nprint %2\nprint %3\nreturn\n}\n";
    let mut ssa = read(text);
    let made = leave(&ssa, OutOfSsa::Boissinot).expect("it takes any form");
    assert_eq!(output(&made), "1\n1\n1\n1\n");
    // The φ lives with a and b, but is no copy of either: one copy on each edge stays.
    assert_eq!(copies(&made), 2, "{}", print(&made));
    let facts = boissinot::run(&mut ssa.functions[FuncId::from_u32(0)]);
    assert_eq!((facts.isolating, facts.coalesced), (3, 3));
}

#[test]
fn twin_edges() {
    let text = "fn main() {\nb0:\n%0 = eof\n%1 = read @1:1\n%4 = int %1 + 1\nbranch %0 ? b1 : b1\nb1:\n\
                %2 = phi [%1 from b0, 7 from b0]\n%3 = phi [%4 from b0, %4 from b0]\nprint %2, %3\nreturn\n}\n";
    let ssa = read(text);
    for method in COPYING {
        assert_eq!(output(&leave(&ssa, method).expect("these take any form")), "7 2\n", "{method:?}");
    }
    let same = read(&text.replace("7 from b0", "%1 from b0"));
    for method in COPYING {
        let made = leave(&same, method).expect("these take any form");
        assert_eq!(output(&made), "1 2\n", "{method:?}");
        let blocks = made.functions[made.entry].layout.len();
        assert_eq!(blocks, if method == OutOfSsa::Split { 4 } else { 2 }, "{method:?}");
    }
    let refusal = leave(&ssa, OutOfSsa::Rename).expect_err("both operands leave by one branch");
    assert_eq!(refusal, "not conventional: %1 and %2 (7) overlap in b0, at its end");
}

/// A chain of 20,000 φs, a φ of 20,000 operands, and 20,000 variables around a loop: none takes quadratic time.
#[test]
fn large_functions() {
    use std::fmt::Write;
    let n = 20_000;
    let mut text = String::from("fn main() {\nb0:\n%0 = eof\n%1 = read @1:1\njump b1\n");
    for i in 0..n {
        let (block, value) = (3 * i + 1, 2 + 2 * i);
        let before = if i == 0 { 1 } else { value - 1 };
        let _ = writeln!(text, "b{block}:\nbranch %0 ? b{} : b{}", block + 1, block + 2);
        let _ = writeln!(text, "b{}:\n%{value} = int %{before} + 1\njump b{}", block + 1, block + 2);
        let (a, b) = (block + 1, block);
        let _ = writeln!(
            text,
            "b{}:\n%{} = phi [%{value} from b{a}, %{before} from b{b}]\njump b{}",
            block + 2,
            value + 1,
            block + 3
        );
    }
    let last = 3 * n + 1;
    let _ = writeln!(text, "b{last}:\nprint %{}\nreturn\n}}", 2 * n + 1);
    let chain = read(&text);

    let mut text = String::from("fn main() {\nb0:\n%0 = read @1:1\njump b1\n");
    for i in 0..n {
        let block = 2 * i + 1;
        let _ = writeln!(
            text,
            "b{block}:\n%{} = bool %0 == {i}\nbranch %{} ? b{} : b{}",
            2 * i + 2,
            2 * i + 2,
            block + 1,
            block + 2
        );
        let _ = writeln!(text, "b{}:\n%{} = int %0 * {i}\njump b{}", block + 1, 2 * i + 3, 2 * n + 2);
    }
    let operands: Vec<String> = (0..n).map(|i| format!("%{} from b{}", 2 * i + 3, 2 * i + 2)).collect();
    let _ = writeln!(text, "b{}:\njump b{}", 2 * n + 1, 2 * n + 2);
    let _ = writeln!(
        text,
        "b{}:\n%1 = phi [{}, 9 from b{}]\nprint %1\nreturn\n}}",
        2 * n + 2,
        operands.join(", "),
        2 * n + 1
    );
    let many = read(&text);

    let start = std::time::Instant::now();
    for program in [&chain, &many] {
        for function in program.functions.values() {
            let mut isolated = function.clone();
            split_edges::run_twins(&mut isolated);
            isolate::run(&mut isolated);
            let mut coalesced = function.clone();
            split_edges::run_twins(&mut coalesced);
            let facts = boissinot::run(&mut coalesced);
            assert!(facts.coalesced >= n, "{facts:?}");
            rename::run(&mut function.clone()).expect("it is conventional");
        }
    }
    assert!(start.elapsed().as_secs() < 20, "it took {:?}", start.elapsed());
}
