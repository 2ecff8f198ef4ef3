//! The methods side by side: one program built by every way into SSA form and every way out of it, with what each costs.
//!
//! Each combination is compiled as far as the executable and run, as IR and as machine code, on the given input. All must
//! show the same. Where renaming refuses, its reason stands in the place of numbers.
//!
//! ```text
//! pruned  fold  split    3 φs, 6 copies inserted, 1 temporary, …
//! pruned  fold  rename   not conventional: x %5 and y %6 overlap in b1, at its start
//! ```
//!
//! **in**: a source whose way leads through SSA form, options, an input. **out**: a [`Comparison`], rows in a fixed order.
//! Cost: that of so many compilations and runs; runs end at a limit of steps.

use crate::execution::{End, Limits, Outcome};
use crate::ir::{self, Form, FuncId, Function, Op, Role};
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::options::Options;
use crate::pipeline::run::{Failure, compile};
use crate::pipeline::state::{AllocationFacts, State};
use crate::regalloc::rewrite::Fate;
use crate::ssa::OutOfSsa;
use crate::ssa::construct::{Copies, Pruning};
use crate::support::internal::Internal;
use crate::support::span::Source;
use crate::x64::{self, PReg, VReg};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// The version of the JSON form; docs/json.md has its schema.
pub const VERSION: u32 = 1;

/// All combinations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// [`VERSION`].
    pub version: u32,
    /// The source's name.
    pub file: String,
    /// The optimization level.
    pub level: u8,
    /// How the runs ended: `normal`, `error` or `limit`.
    pub end: &'static str,
    /// One for each combination.
    pub rows: Vec<Row>,
}

/// One combination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// How φs were placed: `minimal`, `semi-pruned`, `pruned`; `given` if the source is in SSA form already.
    pub ssa: &'static str,
    /// What became of copies between variables: `fold`, `keep`; `given` if the source is in SSA form already.
    pub ssa_copies: &'static str,
    /// The way out: `split`, `isolate`, `boissinot`, `rename`.
    pub out_of_ssa: &'static str,
    /// What it cost, if it could be built.
    pub counts: Option<Counts>,
    /// Why it could not.
    pub refused: Option<String>,
}

/// What one combination costs. Static counts are of the whole program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// φs of the SSA form that the way out starts from.
    pub phis: usize,
    /// Their operands.
    pub operands: usize,
    /// Copies that the way out is made of, before it coalesces any.
    pub inserted: usize,
    /// Copies that it has coalesced, among them copies between variables.
    pub coalesced_by_method: usize,
    /// Temporaries that break cycles.
    pub temporaries: usize,
    /// Blocks on split edges.
    pub split_blocks: usize,
    /// Copies in the code out of SSA form, temporaries and copies between variables included.
    pub copies: usize,
    /// Of those, copies whose sides the allocator gave one place.
    pub coalesced_by_allocator: usize,
    /// Of those, copies that still move a value.
    pub surviving: usize,
    /// Copies that a run of the code out of SSA form executes; none if it was too long.
    pub executed_copies: Option<u64>,
    /// Moves between registers and slots that a run of the machine code executes; none if it was too long.
    pub executed_moves: Option<u64>,
    /// Bytes of the program's functions.
    pub code_bytes: usize,
}

/// Builds and runs all combinations.
pub fn compute(source: &Source, options: &Options, input: &[u8], limits: Limits) -> Result<Comparison, Failure> {
    let mut comparison = Comparison {
        version: VERSION,
        file: source.name.clone(),
        level: options.level,
        end: "limit",
        rows: Vec::new(),
    };
    let mut shown: Option<Outcome> = None;
    let prunings = [(Pruning::Minimal, "minimal"), (Pruning::SemiPruned, "semi-pruned"), (Pruning::Pruned, "pruned")];
    for (pruning, ssa) in prunings {
        let ways = OutOfSsa::ALL.map(|method| (Copies::Fold, "fold", method));
        for (copies, ssa_copies, method) in ways.into_iter().chain([(Copies::Keep, "keep", OutOfSsa::Rename)]) {
            let mut options = Options { out_of_ssa: method, ..options.clone() };
            options.ssa.pruning = pruning;
            options.ssa.copies = copies;
            let mut watch = Watch::default();
            let compiled = compile(source, &options, "executable", &mut [&mut watch]);
            let mut row = Row { ssa, ssa_copies, out_of_ssa: method.name(), counts: None, refused: None };
            match compiled {
                Ok(_) => {}
                Err(Failure::NotConventional(reason)) => row.refused = Some(reason),
                Err(failure @ (Failure::Source(_) | Failure::Internal(_) | Failure::Stage(_))) => return Err(failure),
            }
            let Some(form) = &watch.ssa else {
                return Err(Failure::Stage(format!("there is no SSA form on the way of `{}`", source.name)));
            };
            if !watch.constructed {
                // Where the source is in SSA form, there is one way in only.
                if pruning != Pruning::Minimal || copies == Copies::Keep {
                    continue;
                }
                (row.ssa, row.ssa_copies) = ("given", "given");
            }
            if row.refused.is_none() {
                let (counts, outcomes) = watch.counts(form, method, input, limits)?;
                for outcome in outcomes {
                    let what = format!("{ssa}, {ssa_copies}, {}", method.name());
                    agree(&mut shown, outcome, &what)?;
                }
                row.counts = Some(counts);
            }
            comparison.rows.push(row);
        }
    }
    comparison.end = match shown.map(|outcome| outcome.end) {
        Some(End::Normal) => "normal",
        Some(End::Trap(..)) => "error",
        Some(End::Limit(_)) | None => "limit",
    };
    Ok(comparison)
}

/// All ways must show the same; the first run that got to an end is what others are held against.
fn agree(shown: &mut Option<Outcome>, outcome: Outcome, what: &str) -> Result<(), Failure> {
    match shown {
        Some(expected) if !expected.agrees(&outcome) => {
            let message = format!(
                "{what}: a run ends with {:?} instead of {:?}, or prints something else",
                outcome.end, expected.end
            );
            Err(Failure::Internal(Internal::new("", message)))
        }
        Some(Outcome { end: End::Normal | End::Trap(..), .. }) => Ok(()),
        Some(Outcome { end: End::Limit(_), .. }) | None => {
            *shown = Some(outcome);
            Ok(())
        }
    }
}

impl Comparison {
    /// The JSON form.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("rows are made of texts and numbers");
        text.push('\n');
        text
    }
}

/// What the counts are made of, kept while compiling.
#[derive(Default)]
struct Watch {
    /// Was SSA form made on the way?
    constructed: bool,
    /// The last SSA form without split edges.
    ssa: Option<ir::Program>,
    parallel: Option<ir::Program>,
    sequenced: Option<ir::Program>,
    selected: Option<x64::Program<VReg>>,
    facts: Option<AllocationFacts>,
    machine: Option<x64::Program<PReg>>,
    code_bytes: usize,
}

impl Observer for Watch {
    fn after(&mut self, event: &Event<'_>) {
        match event.state {
            State::Ir(program) => {
                let kept = Some(program.clone());
                match program.functions[program.entry].form {
                    Form::Variables => {}
                    Form::Ssa => {
                        self.constructed |= event.stage.name == "ssa";
                        self.ssa = kept;
                    }
                    Form::SplitSsa => {
                        // IR text in SSA form may come to this stage first.
                        self.ssa.get_or_insert_with(|| program.clone());
                    }
                    Form::ParallelCopies => self.parallel = kept,
                    Form::Sequenced => self.sequenced = kept,
                }
            }
            State::Virtual(program) => self.selected = Some(program.clone()),
            State::Physical(program, facts) => {
                self.machine = Some(program.clone());
                self.facts.get_or_insert_with(|| facts.clone());
            }
            State::Bytes(code) => self.code_bytes = code.functions.values().map(|function| function.bytes.len()).sum(),
            State::Source
            | State::Tokens(_)
            | State::Ast(_)
            | State::Hir(_)
            | State::Object(_)
            | State::Executable(_) => {}
        }
    }
}

impl Watch {
    fn counts(
        &self,
        ssa: &ir::Program,
        method: OutOfSsa,
        input: &[u8],
        limits: Limits,
    ) -> Result<(Counts, [Outcome; 2]), Failure> {
        let (Some(sequenced), Some(machine)) = (&self.sequenced, &self.machine) else {
            return Err(Failure::Internal(Internal::new("", "the executable was made without the stages before it")));
        };
        let before = Copied::of(ssa);
        let after = Copied::of(sequenced);
        let parallel = self.parallel.as_ref().map_or(Copied::default(), Copied::of);
        let mut counts = Counts { code_bytes: self.code_bytes, copies: after.copies, ..Counts::default() };
        for function in ssa.functions.values() {
            count_phis(function, method, &mut counts);
        }
        // A parallel copy becomes as many copies as it has moves, and one more for each cycle.
        match method {
            OutOfSsa::Split => {
                counts.inserted = parallel.moves;
                counts.temporaries = after.copies - parallel.copies - parallel.moves;
            }
            OutOfSsa::Isolate => counts.temporaries = after.copies - parallel.copies - parallel.moves,
            OutOfSsa::Boissinot => {
                counts.temporaries = after.copies - parallel.copies - parallel.moves;
                counts.coalesced_by_method = counts.inserted + before.copies - parallel.copies - parallel.moves;
            }
            OutOfSsa::Rename => counts.inserted = after.copies - before.copies,
        }
        let blocks = sequenced
            .functions
            .values()
            .flat_map(|function| function.layout.iter().map(|block| function.blocks[*block].role));
        counts.split_blocks = blocks.filter(|role| *role == Role::Split).count();
        self.fates(sequenced, &mut counts);

        let run = ir::interpret::run(sequenced, input, limits)?;
        let limited = |outcome: &Outcome| matches!(outcome.end, End::Limit(_));
        counts.executed_copies = (!limited(&run.outcome)).then_some(run.counts.copies);
        let native = x64::interpret::run(machine, input, limits)?;
        counts.executed_moves = (!limited(&native.outcome)).then_some(native.counts.moves);
        Ok((counts, [run.outcome, native.outcome]))
    }

    /// What the allocator made of the copies.
    fn fates(&self, sequenced: &ir::Program, counts: &mut Counts) {
        let (Some(selected), Some(facts)) = (&self.selected, &self.facts) else { return };
        for (id, function) in &sequenced.functions {
            let is_copy: FxHashSet<ir::Inst> =
                instructions(function).filter(|inst| matches!(function.insts[*inst].op, Op::Copy(_))).collect();
            let mut fates: FxHashMap<ir::Inst, Fate> = FxHashMap::default();
            for copy in &facts[id].copies {
                let inst = &selected.functions[id].blocks[copy.at.block].insts[copy.at.inst as usize];
                if let Some(origin) = inst.origin.expand().filter(|origin| is_copy.contains(origin)) {
                    fates.entry(origin).or_insert(copy.fate);
                }
            }
            for fate in fates.values() {
                match fate {
                    Fate::Coalesced | Fate::SamePlace => counts.coalesced_by_allocator += 1,
                    Fate::Moved { .. } => counts.surviving += 1,
                    Fate::NotNeeded => {}
                }
            }
        }
    }
}

/// φs, their operands, and the copies that isolating them takes: one for each φ, and for each block before it one.
fn count_phis(function: &Function, method: OutOfSsa, counts: &mut Counts) {
    for block in &function.layout {
        counts.phis += function.blocks[*block].params.len();
    }
    for block in &function.layout {
        let mut before: Option<&ir::Edge> = None;
        for edge in function.blocks[*block].term.edges() {
            counts.operands += edge.args.len();
            // Both edges of a branch may carry the same to one block; the copies stand once in front of it.
            if before.is_none_or(|before| before != edge) {
                counts.inserted += edge.args.len();
            }
            before = Some(edge);
        }
    }
    match method {
        OutOfSsa::Isolate | OutOfSsa::Boissinot => {
            counts.inserted += function.layout.iter().map(|block| function.blocks[*block].params.len()).sum::<usize>();
        }
        OutOfSsa::Split | OutOfSsa::Rename => counts.inserted = 0,
    }
}

fn instructions(function: &Function) -> impl Iterator<Item = ir::Inst> {
    function.layout.iter().flat_map(|block| function.blocks[*block].insts.iter().copied())
}

/// How many copies a program has.
#[derive(Clone, Copy, Default)]
struct Copied {
    /// Instructions that copy one value.
    copies: usize,
    /// Moves of parallel copies, without those of a value to itself.
    moves: usize,
}

impl Copied {
    fn of(program: &ir::Program) -> Copied {
        let mut copied = Copied::default();
        let insts = program.functions.keys().flat_map(|id: FuncId| {
            let function = &program.functions[id];
            instructions(function).map(|inst| &function.insts[inst].op)
        });
        for op in insts {
            match op {
                Op::Copy(_) => copied.copies += 1,
                Op::Parallel(moves) => {
                    copied.moves += moves.iter().filter(|(to, from)| from.value() != Some(*to)).count();
                }
                Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Unary { .. }
                | Op::Select { .. }
                | Op::Array { .. }
                | Op::Free(_)
                | Op::Len(_)
                | Op::Bounds { .. }
                | Op::Load { .. }
                | Op::Store { .. }
                | Op::Call { .. }
                | Op::Read
                | Op::Eof
                | Op::Print(_)
                | Op::Assert(_) => {}
            }
        }
        copied
    }
}
