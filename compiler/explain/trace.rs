//! What explanations look at: the program as it was at the stages around the way out of SSA form, kept by an observer of
//! the pipeline.
//!
//! **in**: a compilation as far as the last stage of machine code. **out**: a [`Trace`] with every form. Cost: a copy of
//! the program for each kept stage, and its φs after each optimization.

use crate::ir::{self, Form, FuncId, Value};
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::options::Options;
use crate::pipeline::run::{Failure, compile};
use crate::pipeline::state::{AllocationFacts, State};
use crate::support::span::Source;
use crate::x64::{self, PReg, VReg};
use rustc_hash::{FxHashMap, FxHashSet};

/// The program at the stages that explanations need.
#[derive(Debug, Default)]
pub struct Trace {
    /// Over variables, before SSA construction.
    pub variables: Option<ir::Program>,
    /// As SSA construction made it.
    pub constructed: Option<ir::Program>,
    /// As the last optimization left it.
    pub optimized: Option<ir::Program>,
    /// With critical edges split.
    pub split: Option<ir::Program>,
    /// With parallel copies.
    pub parallel: Option<ir::Program>,
    /// Out of SSA form.
    pub sequenced: Option<ir::Program>,
    /// Machine code over virtual registers.
    pub selected: Option<x64::Program<VReg>>,
    /// What the allocator tells.
    pub facts: Option<AllocationFacts>,
    /// The machine code that is encoded.
    pub machine: Option<x64::Program<PReg>>,
    /// The φs that a stage removed: its name, then function, as construction had it, and φ.
    pub removed: Vec<(&'static str, Vec<(FuncId, Value)>)>,
    phis: FxHashSet<(FuncId, Value)>,
    /// The functions as construction had them, by name: those that are left get new ids when others go.
    names: FxHashMap<String, FuncId>,
}

/// Compiles as far as machine code and keeps the trace.
pub fn trace(source: &Source, options: &Options) -> Result<Trace, Failure> {
    let mut trace = Trace::default();
    compile(source, options, "layout", &mut [&mut trace])?;
    Ok(trace)
}

impl Observer for Trace {
    fn after(&mut self, event: &Event<'_>) {
        match event.state {
            State::Ir(program) => self.ir(event.stage.name, program),
            State::Virtual(program) => self.selected = Some(program.clone()),
            State::Physical(program, facts) => {
                self.machine = Some(program.clone());
                self.facts.get_or_insert_with(|| facts.clone());
            }
            State::Source
            | State::Tokens(_)
            | State::Ast(_)
            | State::Hir(_)
            | State::Bytes(_)
            | State::Object(_)
            | State::Executable(_) => {}
        }
    }
}

impl Trace {
    fn ir(&mut self, stage: &'static str, program: &ir::Program) {
        match program.functions[program.entry].form {
            // Renaming comes back to this form.
            Form::Variables if self.constructed.is_none() => self.variables = Some(program.clone()),
            Form::Variables => {}
            Form::Ssa => {
                if self.constructed.is_none() {
                    self.names = names(program).map(|(name, id)| (name.to_string(), id)).collect();
                }
                let mut now: FxHashSet<(FuncId, Value)> = FxHashSet::default();
                for function in program.functions.values() {
                    if let Some(id) = self.names.get(&function.name) {
                        now.extend(phis(function).map(|phi| (*id, phi)));
                    }
                }
                if self.constructed.is_some() {
                    let mut gone: Vec<(FuncId, Value)> = self.phis.difference(&now).copied().collect();
                    gone.sort_unstable();
                    if !gone.is_empty() {
                        self.removed.push((stage, gone));
                    }
                } else {
                    self.constructed = Some(program.clone());
                }
                self.phis = now;
                self.optimized = Some(program.clone());
            }
            Form::SplitSsa => self.split = Some(program.clone()),
            Form::ParallelCopies => self.parallel = Some(program.clone()),
            Form::Sequenced => self.sequenced = Some(program.clone()),
        }
    }
}

/// All φs of a function, block by block.
fn phis(function: &ir::Function) -> impl Iterator<Item = Value> {
    function.layout.iter().flat_map(|block| function.blocks[*block].params.iter().copied())
}

/// The functions of a program by name. Ids are not the same in all stages.
pub fn names(program: &ir::Program) -> impl Iterator<Item = (&str, FuncId)> {
    program.functions.iter().map(|(id, function)| (function.name.as_str(), id))
}
