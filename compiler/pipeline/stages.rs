//! THE STAGE LIST: every stage of the compiler, in order, as a row.
//!
//! A stage's name is its flag (`--stage`, `--emit`, `--stop-after`), its dump file and its row in `--time-passes`. Its
//! number orders the dump files; facts stand between the stages that they are about. Optional stages say from which
//! level on they run, and stages on the way out of SSA form say which ways take them. Which stage must stand before which, and why, is in [`ORDER`]; a test holds it.

use super::facts::FactKind;
use super::options::Options;
use super::run::{Context, Failure};
use super::state::{Language, State};
use super::steps;
use crate::emit;
use crate::ir::{self, Form};
use crate::opt::{self, fuel::Fuel};
use crate::ssa::OutOfSsa;
use crate::support::internal::Internal;
use crate::x64::{self, PReg, VReg};
use std::sync::LazyLock;

/// How a stage does its work.
#[derive(Clone, Copy)]
pub enum Step {
    /// On the whole program, into another language.
    Program(fn(State, &Context<'_>) -> Result<State, Failure>),
    /// An optimization pass: on the whole IR program; gives the number of changes.
    Optimize(fn(&mut ir::Program, &mut Fuel) -> usize),
    /// Drops functions that the body cannot reach, unless the options keep them; gives their number.
    DropFunctions,
    /// On each function of the IR, independently; gives the number of changes.
    IrFunction(fn(&mut ir::Function, &Options) -> usize),
    /// On each function of allocated machine code; gives the number of changes.
    MachineFunction(fn(&mut x64::Function<PReg>) -> usize),
}

/// Compares what a stage was given with what it left, without sharing its code.
#[derive(Clone, Copy)]
pub enum Judge {
    /// The last IR in SSA form, and what it has become on its way out of it.
    OutOfSsa(fn(&ir::Program, &ir::Program) -> Result<(), Internal>),
    /// Machine code before and after allocation.
    Allocation(fn(&x64::Program<VReg>, &x64::Program<PReg>) -> Result<(), Internal>),
}

/// One row of the list.
pub struct Stage {
    /// Its name everywhere.
    pub name: &'static str,
    /// What it does, for people.
    pub title: &'static str,
    /// What it takes.
    pub from: Language,
    /// What it gives.
    pub to: Language,
    /// The level from which it runs; 0 means that it is required.
    pub level: u8,
    /// The ways out of SSA form that it is part of.
    pub methods: &'static [OutOfSsa],
    /// Its work.
    pub step: Step,
    /// Who judges its work, besides the verifier of the language that it gives.
    pub judge: Option<Judge>,
}

impl Stage {
    /// Do the options ask for it?
    pub fn wanted(&self, options: &Options) -> bool {
        self.level <= options.level
            && self.methods.contains(&options.out_of_ssa)
            && !(options.keep_functions && matches!(self.step, Step::DropFunctions))
    }
}

/// What an analysis knows at some point, as a listing of its own.
pub struct Fact {
    /// Its name, as for stages.
    pub name: &'static str,
    /// What it shows, for people.
    pub title: &'static str,
    /// The stage that it is about. For one about SSA form that is where the usual way out leaves it: see [`last_ssa`].
    pub after: &'static str,
    /// Which analysis.
    pub kind: FactKind,
}

const SSA: Language = Language::Ir(Form::Ssa);
const EVERY: &[OutOfSsa] = &OutOfSsa::ALL;
const SPLITS: &[OutOfSsa] = &[OutOfSsa::Split];
const ISOLATES: &[OutOfSsa] = &[OutOfSsa::Isolate];
const COALESCES: &[OutOfSsa] = &[OutOfSsa::Boissinot];
const RENAMES: &[OutOfSsa] = &[OutOfSsa::Rename];
const HAS_COPIES: &[OutOfSsa] = &[OutOfSsa::Split, OutOfSsa::Isolate, OutOfSsa::Boissinot];
const KEEPS_EDGES: &[OutOfSsa] = &[OutOfSsa::Isolate, OutOfSsa::Boissinot];

/// The stages before optimization.
const FRONT: [Stage; 6] = [
    Stage {
        name: "tokens",
        title: "words and signs of the source",
        from: Language::Source,
        to: Language::Tokens,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::tokens),
        judge: None,
    },
    Stage {
        name: "ast",
        title: "abstract syntax tree",
        from: Language::Tokens,
        to: Language::Ast,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::ast),
        judge: None,
    },
    Stage {
        name: "hir",
        title: "names and types resolved",
        from: Language::Ast,
        to: Language::Hir,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::hir),
        judge: None,
    },
    Stage {
        name: "cfg",
        title: "control flow graph over variables",
        from: Language::Hir,
        to: Language::Ir(Form::Variables),
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::cfg),
        judge: None,
    },
    Stage {
        name: "drop-functions",
        title: "functions that the body cannot reach dropped",
        from: Language::Ir(Form::Variables),
        to: Language::Ir(Form::Variables),
        level: 0,
        methods: EVERY,
        step: Step::DropFunctions,
        judge: None,
    },
    Stage {
        name: "ssa",
        title: "static single assignment",
        from: Language::Ir(Form::Variables),
        to: SSA,
        level: 0,
        methods: EVERY,
        step: Step::IrFunction(steps::ssa),
        judge: None,
    },
];

/// The stages behind optimization.
const BACK: [Stage; 17] = [
    Stage {
        name: "drop-functions.2",
        title: "functions that inlining has left without callers dropped",
        from: SSA,
        to: SSA,
        level: 2,
        methods: EVERY,
        step: Step::DropFunctions,
        judge: None,
    },
    Stage {
        name: "split-edges",
        title: "critical edges split",
        from: SSA,
        to: Language::Ir(Form::SplitSsa),
        level: 0,
        methods: SPLITS,
        step: Step::IrFunction(steps::split_edges),
        judge: None,
    },
    Stage {
        name: "parallel-copies",
        title: "phis as parallel copies on edges",
        from: Language::Ir(Form::SplitSsa),
        to: Language::Ir(Form::ParallelCopies),
        level: 0,
        methods: SPLITS,
        step: Step::IrFunction(steps::parallel_copies),
        judge: Some(Judge::OutOfSsa(steps::validate_out_of_ssa)),
    },
    Stage {
        name: "split-twin-edges",
        title: "edges split that share both ends but not what they carry",
        from: SSA,
        to: SSA,
        level: 0,
        methods: KEEPS_EDGES,
        step: Step::IrFunction(steps::split_twin_edges),
        judge: None,
    },
    Stage {
        name: "isolate",
        title: "phis isolated by parallel copies on both sides",
        from: SSA,
        to: Language::Ir(Form::ParallelCopies),
        level: 0,
        methods: ISOLATES,
        step: Step::IrFunction(steps::isolate),
        judge: Some(Judge::OutOfSsa(steps::validate_out_of_ssa)),
    },
    Stage {
        name: "coalesce",
        title: "phis isolated, and what does not interfere made one",
        from: SSA,
        to: Language::Ir(Form::ParallelCopies),
        level: 0,
        methods: COALESCES,
        step: Step::IrFunction(steps::coalesce),
        judge: Some(Judge::OutOfSsa(steps::validate_out_of_ssa)),
    },
    Stage {
        name: "sequence",
        title: "out of SSA: copies in sequence",
        from: Language::Ir(Form::ParallelCopies),
        to: Language::Ir(Form::Sequenced),
        level: 0,
        methods: HAS_COPIES,
        step: Step::IrFunction(steps::sequence),
        judge: Some(Judge::OutOfSsa(steps::validate_out_of_ssa)),
    },
    Stage {
        name: "rename",
        title: "what phis connect made one value",
        from: SSA,
        to: Language::Ir(Form::Variables),
        level: 0,
        methods: RENAMES,
        step: Step::Program(steps::rename),
        judge: Some(Judge::OutOfSsa(steps::validate_out_of_ssa)),
    },
    Stage {
        name: "sequence.2",
        title: "out of SSA: no copies to put in sequence",
        from: Language::Ir(Form::Variables),
        to: Language::Ir(Form::Sequenced),
        level: 0,
        methods: RENAMES,
        step: Step::IrFunction(steps::finish_renaming),
        judge: None,
    },
    Stage {
        name: "isel",
        title: "machine code over virtual registers",
        from: Language::Ir(Form::Sequenced),
        to: Language::Virtual,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::isel),
        judge: None,
    },
    Stage {
        name: "regalloc",
        title: "coalesced and allocated to registers",
        from: Language::Virtual,
        to: Language::Physical,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::regalloc),
        judge: Some(Judge::Allocation(steps::check_allocation)),
    },
    Stage {
        name: "peephole",
        title: "moves that move nothing dropped",
        from: Language::Physical,
        to: Language::Physical,
        level: 1,
        methods: EVERY,
        step: Step::MachineFunction(emit::peephole::run),
        judge: None,
    },
    Stage {
        name: "shrink-wrap",
        title: "copies sunk so that early ways out need no frame",
        from: Language::Physical,
        to: Language::Physical,
        level: 1,
        methods: EVERY,
        step: Step::MachineFunction(emit::shrink_wrap::run),
        judge: None,
    },
    Stage {
        name: "layout",
        title: "blocks in the order of emission",
        from: Language::Physical,
        to: Language::Physical,
        level: 1,
        methods: EVERY,
        step: Step::MachineFunction(emit::layout::run),
        judge: None,
    },
    Stage {
        name: "bytes",
        title: "encoded instructions, disassembled",
        from: Language::Physical,
        to: Language::Bytes,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::bytes),
        judge: None,
    },
    Stage {
        name: "object",
        title: "ELF object",
        from: Language::Bytes,
        to: Language::Object,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::object),
        judge: None,
    },
    Stage {
        name: "executable",
        title: "linked with the runtime",
        from: Language::Object,
        to: Language::Executable,
        level: 0,
        methods: EVERY,
        step: Step::Program(steps::executable),
        judge: None,
    },
];

/// The last stage in SSA form, on the usual way.
const LEAVES_SSA: &str = "split-edges";

/// The facts, in the order in which they are dumped.
const FACTS: [Fact; 5] = [
    fact("dominators", "dominator tree with frontiers", LEAVES_SSA, FactKind::Dominators),
    fact("loops", "loops by header, with depth", LEAVES_SSA, FactKind::Loops),
    fact("liveness", "values live into and out of blocks", LEAVES_SSA, FactKind::Liveness),
    fact("live-ranges", "where registers must hold values", "regalloc", FactKind::LiveRanges),
    fact("allocation", "what each value became", "regalloc", FactKind::Allocation),
];

/// The program in other compilers' languages: made only when named.
const EXPORTS: [Fact; 4] = [
    fact("ir", "IR in SSA form, optimized", LEAVES_SSA, FactKind::Ir),
    fact("llvm-ir", "LLVM IR, from SSA", LEAVES_SSA, FactKind::Llvm),
    fact("qbe", "QBE's language, from SSA", LEAVES_SSA, FactKind::Qbe),
    fact("c", "C, from the copies in sequence", "sequence", FactKind::C),
];

const fn fact(name: &'static str, title: &'static str, after: &'static str, kind: FactKind) -> Fact {
    Fact { name, title, after, kind }
}

static STAGES: LazyLock<Vec<Stage>> = LazyLock::new(|| {
    let passes = opt::PASSES.iter().map(|pass| Stage {
        name: pass.name,
        title: pass.title,
        from: SSA,
        to: SSA,
        level: pass.level,
        methods: EVERY,
        step: Step::Optimize(pass.run),
        judge: None,
    });
    FRONT.into_iter().chain(passes).chain(BACK).collect()
});

/// All stages, in order.
pub fn all() -> &'static [Stage] {
    &STAGES
}

/// All facts and exports.
pub fn facts() -> impl Iterator<Item = &'static Fact> {
    FACTS.iter().chain(&EXPORTS)
}

fn fact_named(name: &str) -> Option<&'static Fact> {
    facts().find(|fact| fact.name == name)
}

/// The stage with a name.
pub fn named(name: &str) -> Option<&'static Stage> {
    position(name).map(|index| &all()[index])
}

/// The place of a stage in the list.
pub fn position(name: &str) -> Option<usize> {
    all().iter().position(|stage| stage.name == name)
}

/// The names of everything that is dumped together, in the order of the pipeline: stages, each followed by its facts.
pub fn dump_names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for stage in all() {
        names.push(stage.name);
        names.extend(FACTS.iter().filter(|fact| fact.after == stage.name).map(|fact| fact.name));
    }
    names
}

/// The names of the exports.
pub fn export_names() -> Vec<&'static str> {
    EXPORTS.iter().map(|fact| fact.name).collect()
}

/// The name of a stage, fact or export, as the list has it.
pub fn dump_name(name: &str) -> Option<&'static str> {
    named(name).map(|stage| stage.name).or_else(|| fact_named(name).map(|fact| fact.name))
}

/// The number of a stage's or fact's dump file: stages count by ten, facts by one behind their stage.
///
/// # Panics
/// If nothing has that name.
pub fn dump_number(name: &str) -> usize {
    let stage = fact_named(name).map_or(name, |fact| fact.after);
    let number = 10 * (1 + position(stage).unwrap_or_else(|| panic!("nothing to dump is called `{name}`")));
    let behind = facts().filter(|fact| fact.after == stage).position(|fact| fact.name == name);
    number + behind.map_or(0, |index| index + 1)
}

/// The last stage that leaves SSA form with these options.
pub fn last_ssa(options: &Options) -> &'static str {
    let is_ssa = |language: Language| matches!(language, Language::Ir(form) if form.is_ssa());
    let last = all().iter().rfind(|stage| stage.wanted(options) && is_ssa(stage.to));
    last.expect("there is SSA form on every way").name
}

/// The last stage that is needed to dump these.
pub fn last_of(names: &[&'static str], options: &Options) -> Option<&'static str> {
    let stage_of = |name: &&'static str| match fact_named(name) {
        Some(fact) if fact.kind.is_of_ssa() => last_ssa(options),
        Some(fact) => fact.after,
        None => *name,
    };
    names.iter().map(stage_of).max_by_key(|name| position(name))
}

/// A constraint on the order of the list: the first stage must stand before the second.
pub struct Before {
    /// The earlier stage.
    pub first: &'static str,
    /// The later stage.
    pub second: &'static str,
    /// Why.
    pub reason: &'static str,
}

const fn before(first: &'static str, second: &'static str, reason: &'static str) -> Before {
    Before { first, second, reason }
}

/// What the languages that stages take and give do not force already.
pub const ORDER: &[Before] = &[
    before("peephole", "layout", "blocks whose moves go are empty, and jumps skip them"),
    before("hir", "drop-functions", "a function that nobody calls is checked before it goes"),
    before("drop-functions", "ssa", "no work is done on functions that go"),
    before("sccp", "simplify-cfg", "constants decide branches, which leave blocks to be merged"),
    before("copy-propagation", "lvn", "equal operands are seen only under one name"),
    before("lvn", "dce", "what was found equal is dead code then"),
    before("drop-functions.2", "split-twin-edges", "edges of functions that go need no blocks"),
    before("split-twin-edges", "isolate", "copies at the end of a branch cannot tell which way it goes"),
    before("split-twin-edges", "coalesce", "copies at the end of a branch cannot tell which way it goes"),
    before("drop-functions.2", "split-edges", "edges of functions that go need no blocks"),
    before("regalloc", "layout", "allocation may empty the blocks of split edges, which layout then passes over"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_language_leads_to_the_next() {
        for (level, method) in (0..=2).flat_map(|level| OutOfSsa::ALL.map(|method| (level, method))) {
            let mut language = Language::Source;
            for stage in all().iter().filter(|stage| stage.level <= level && stage.methods.contains(&method)) {
                assert_eq!(stage.from, language, "{} at -O{level}, {method:?}", stage.name);
                language = stage.to;
            }
            assert_eq!(language, Language::Executable);
        }
    }

    #[test]
    fn the_order_keeps_its_constraints() {
        for Before { first, second, reason } in ORDER {
            let place = |name| position(name).unwrap_or_else(|| panic!("ORDER names {name}, which is no stage"));
            assert!(place(first) < place(second), "{first} must stand before {second}: {reason}");
        }
    }

    #[test]
    fn names_are_unique_and_numbers_ascend() {
        let names: Vec<&str> = dump_names().into_iter().chain(export_names()).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let numbers: Vec<usize> = dump_names().into_iter().map(dump_number).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        assert_eq!((dump_number("tokens"), dump_number("ast")), (10, 20));
        for fact in facts() {
            assert!(named(fact.after).is_some(), "{}", fact.name);
        }
    }
}
