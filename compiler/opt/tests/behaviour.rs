//! What programs do, before and after: all pairs of operations, random programs, recursion, every prefix of the changes;
//! and that time grows in proportion.

use super::super::fuel::Fuel;
use super::super::*;
use super::program;
use crate::ir::{Op, Operand, interpret, print, verify};

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
        (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
    }
    verify::verify(&got).expect("it is right");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn passes_keep_what_programs_do() {
    use crate::execution::Limits;
    use crate::ir::random::{Shape, generate};
    use crate::support::random::Random;
    let limits = Limits { steps: 200_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    let mut totals = vec![0; PASSES.len()];
    for seed in 0..300 {
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
        // A pass that never finds anything here is not tested here; calls of a function to itself have their own test.
        assert!(total > 0 || pass.name == "tail-recursion", "{} has found nothing", pass.name);
    }
}
