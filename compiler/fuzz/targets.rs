//! The bodies of the coverage-guided fuzzers in `fuzz/`: each takes any bytes and panics if the compiler does something that
//! it never should. Each also runs for a second in `cargo test`, on bytes that [`mutate`] makes of good ones.
//!
//! | target | bytes are | never |
//! | --- | --- | --- |
//! | [`front_end`] | a source text | a panic; a tree that does not print and parse to itself; IR that the verifier rejects |
//! | [`ir_text`] | IR text | a panic or a judge's complaint at any stage; a stage that shows something else |
//! | [`parallel_copies`] | pairs of locations | a sequence with another effect; more moves than there are |
//! | [`ir_graphs`] | options and choices of the generator of IR | the same |
//! | [`programs`] | options and choices of the generator of sources | the same |
//! | [`allocation`] | options and choices of the generator of machine code | an allocation that the checker rejects |
//!
//! Where bytes are choices, a changed byte is a changed choice ([`Random::of_bytes`]), so that the fuzzer walks through programs.
//!
//! **in**: any bytes. **out**: nothing, or a panic. Cost: bounded by cutting long inputs off.

use super::{examine, generate};
use crate::execution::Limits;
use crate::graph::parallel_copy::{self, Source as Moved, Step};
use crate::pipeline::{self, Failure, Options, State};
use crate::regalloc::{self, checker};
use crate::ssa::OutOfSsa;
use crate::support::random::Random;
use crate::support::span::Source;
use crate::verify::Verifier;
use crate::verify::observe::VerifyLimits;
use crate::{check, ir, syntax, x64};
use std::collections::HashMap;

/// Longer inputs are cut off: they only take time.
const LONGEST: usize = 1 << 14;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned()
}

/// Any text through the front end.
pub fn front_end(bytes: &[u8]) {
    let source = Source::new("fuzz.atl", text(bytes));
    match pipeline::compile(&source, &Options { verify: true, ..Options::default() }, "cfg", &mut []) {
        Ok(compiled) => assert!(matches!(compiled.state, State::Ir(_)), "the pipeline stops where it is told to"),
        Err(Failure::Source(diagnostics)) => {
            assert!(!diagnostics.is_empty(), "a program is rejected without a reason");
            for diagnostic in &diagnostics {
                let end = diagnostic.primary.span.end as usize;
                assert!(end <= source.text.len() + 1, "{:?} points behind the source", diagnostic.message);
            }
            return;
        }
        Err(Failure::Internal(internal)) => panic!("{internal}"),
        Err(Failure::Stage(message) | Failure::NotConventional(message)) => panic!("{message}"),
    }
    let first = syntax::parse(&source).ast.map(|tree| syntax::format(&tree)).expect("it has compiled");
    let again = Source::new("fuzz.atl", first.clone());
    let parsed = syntax::parse(&again);
    let tree = parsed.ast.expect("what is printed parses");
    assert_eq!(parsed.diagnostics, Vec::new(), "what is printed parses");
    assert_eq!(syntax::format(&tree), first, "what is printed prints the same");
    assert!(check::run(&tree, &again).is_ok(), "what is printed is well typed");
}

/// IR text through every stage. The first byte chooses options.
pub fn ir_text(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let source = Source::new("fuzz.ir", text(bytes));
    every_stage(&source, *choice, false);
}

/// IR that its generator makes by these choices, through every stage. The first byte chooses options.
pub fn ir_graphs(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Some((shape, bytes)) = bytes.split_first() else { return };
    let mut shape = match shape % 4 {
        0 => ir::random::Shape::default(),
        1 => ir::random::Shape::webs(),
        2 => ir::random::Shape::pressure(),
        _ => ir::random::Shape { traps: shape & 0x10 != 0, ..ir::random::Shape::tiny() },
    };
    shape.input = choice & 1 != 0;
    let program = ir::random::generate(Random::of_bytes(bytes), &shape);
    let text: String = ir::print::print(&program).lines().map(|line| line.text() + "\n").collect();
    every_stage(&Source::new("fuzz.ir", text), *choice, true);
}

/// A source program that its generator makes by these choices, through every stage. The first byte chooses options.
pub fn programs(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Some((shape, bytes)) = bytes.split_first() else { return };
    let shape = generate::Shape { budget: 6_000, ..generate::Shape::of_seed(u64::from(*shape)) };
    every_stage(&Source::new("fuzz.atl", generate::generate(Random::of_bytes(bytes), &shape)), *choice, true);
}

/// Compiles with all judges, runs what every stage leaves, and compares. What a generator made must be valid.
fn every_stage(source: &Source, choice: u8, generated: bool) {
    let limits = Limits { steps: 20_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    let limits = VerifyLimits { interpreted: limits, ..examine::LIMITS };
    match examine::reference(source, b"1 -2 3", limits.interpreted) {
        Ok(shown) if !shown.is_cut() => {}
        // It would only take time.
        Ok(_) => return,
        // No valid program, or one that does what no source program does, such as reading an array that has ended.
        Err(_) if !generated => return,
        Err(fault) => panic!("the generator made this: {}\n{}", fault.message, source.text),
    }
    let limits = VerifyLimits { interpreted: Limits { steps: 2_000_000, ..limits.interpreted }, ..limits };
    let mut options = Options { level: choice % 3, verify: true, threads: 1, ..Options::default() };
    options.spill_all = choice & 0x10 != 0;
    options.out_of_ssa = match choice / 3 % 4 {
        0 => OutOfSsa::Isolate,
        1 => OutOfSsa::Boissinot,
        _ => OutOfSsa::Split,
    };
    if choice & 0x20 != 0 {
        let registers = regalloc::Options::with_registers(regalloc::FEWEST_REGISTERS + usize::from(choice >> 6));
        options.registers = registers.expect("so many registers there are").registers;
    }
    let mut verifier = Verifier::new(b"1 -2 3", limits, None);
    match pipeline::compile(source, &options, "bytes", &mut [&mut verifier]) {
        Ok(_) => {
            let report = verifier.into_report();
            assert!(report.difference.is_none(), "{}\n{}", report.text(), source.text);
        }
        Err(Failure::Internal(internal)) => panic!("{internal}\n{}", source.text),
        // What is rejected is rejected for a reason; that the parser takes it is no promise.
        Err(Failure::Source(_) | Failure::Stage(_) | Failure::NotConventional(_)) => {}
    }
}

/// Moves that happen at once, as pairs of bytes: destination and source; odd sources above 200 are constants.
pub fn parallel_copies(bytes: &[u8]) {
    let mut moves: Vec<(u32, Moved<u32, u32>)> = Vec::new();
    for pair in bytes[..bytes.len().min(512)].chunks_exact(2) {
        let (to, from) = (u32::from(pair[0]), u32::from(pair[1]));
        if moves.iter().all(|(other, _)| *other != to) {
            moves.push((to, if from > 200 { Moved::Constant(from) } else { Moved::Location(from) }));
        }
    }
    let mut temporaries = 1000;
    let steps = parallel_copy::sequence(&moves, |_| {
        temporaries += 1;
        temporaries
    });
    // A location holds its own number at first; a constant is 10,000 and more.
    let mut held: HashMap<u32, u32> = HashMap::new();
    let read = |held: &HashMap<u32, u32>, from: u32| held.get(&from).copied().unwrap_or(from);
    for step in &steps {
        let (to, value) = match step {
            Step::Move { dst, src: Moved::Location(src) } => (*dst, read(&held, *src)),
            Step::Move { dst, src: Moved::Constant(constant) } => (*dst, 10_000 + constant),
            Step::Rescue { temp, victim } => (*temp, read(&held, *victim)),
        };
        held.insert(to, value);
    }
    for location in 0..=255 {
        let wanted = match moves.iter().find(|(to, _)| *to == location) {
            Some((_, Moved::Location(from))) => *from,
            Some((_, Moved::Constant(constant))) => 10_000 + constant,
            None => location,
        };
        assert_eq!(read(&held, location), wanted, "location {location} of {moves:?} after {steps:?}");
    }
    let real = moves.iter().filter(|(to, from)| *from != Moved::Location(*to)).count();
    let rescues = steps.iter().filter(|step| matches!(step, Step::Rescue { .. })).count();
    assert_eq!(steps.len(), real + rescues, "each move once, and a rescue for each cycle: {moves:?}");
    assert!(rescues * 2 <= real, "a cycle has two moves at least: {moves:?}");
}

/// Machine code that its generator makes by these choices, through the allocator. The first bytes are options.
pub fn allocation(bytes: &[u8]) {
    let Some(([shape, registers, spill_all], bytes)) = bytes.split_first_chunk() else { return };
    let shape = match shape % 3 {
        0 => x64::random::Shape::default(),
        1 => x64::random::Shape::pressure(),
        _ => x64::random::Shape::tiny(),
    };
    let program = x64::random::generate(Random::of_bytes(bytes), &shape);
    let most = 16 - regalloc::FEWEST_REGISTERS;
    let count = regalloc::FEWEST_REGISTERS + usize::from(*registers) % most;
    let mut options = regalloc::Options::with_registers(count).expect("so many registers there are");
    options.spill_all = spill_all % 8 == 7;
    for function in program.functions.values() {
        let (allocated, _) = match regalloc::run(function, &options) {
            Ok(allocated) => allocated,
            Err(internal) => panic!("{count} registers: {internal}\n{}", function.name),
        };
        if let Err(internal) = checker::check(function, &allocated) {
            panic!("{count} registers: {internal}\n{}", function.name);
        }
    }
}

/// Bytes like these: parts dropped, doubled, exchanged, overwritten.
pub fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.between(1, 4) {
        if bytes.is_empty() {
            return bytes;
        }
        // Mostly whole lines, so that much of the result means something.
        let lines = random.chance(60);
        let cut = |random: &mut Random| {
            let at = random.below(bytes.len());
            if lines { bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) } else { at }
        };
        let (a, b) = (cut(random), cut(random));
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 200));
        match random.below(4) {
            0 => drop(bytes.drain(start..end)),
            1 => {
                let copy = bytes[start..end].to_vec();
                bytes.splice(start..start, copy);
            }
            2 => {
                let other = random.below(bytes.len());
                let byte = bytes[other];
                bytes[start] = byte;
            }
            _ => bytes[start] = random.bits() as u8,
        }
    }
    bytes
}
