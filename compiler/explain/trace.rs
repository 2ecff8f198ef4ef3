//! What explanations look at: the program as it was at the stages around the way out of SSA form, kept by an observer of
//! the pipeline.
//!
//! **in**: a compilation as far as the last stage of machine code. **out**: a [`Trace`] with every form. Cost: a copy of
//! the program for each kept stage, and its φs after each optimization.

use crate::ir::{self, Form, FuncId, Role, Terminator, Value};
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::options::Options;
use crate::pipeline::run::{Failure, compile};
use crate::pipeline::stages::Stage;
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
    begun: bool,
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
    fn before(&mut self, _: &'static Stage, state: &State) {
        // IR text begins in some form that no stage leaves.
        if let (false, State::Ir(program)) = (self.begun, state) {
            self.ir("", program);
        }
        self.begun = true;
    }

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
            Form::SplitSsa => {
                // IR text may begin here.
                self.optimized.get_or_insert_with(|| unsplit(program));
                self.split = Some(program.clone());
            }
            Form::ParallelCopies => self.parallel = Some(program.clone()),
            Form::Sequenced => self.sequenced = Some(program.clone()),
        }
    }
}

/// The program as it was before edges were split: a block that splitting made has one edge in and only jumps.
fn unsplit(program: &ir::Program) -> ir::Program {
    let mut program = program.clone();
    for function in program.functions.values_mut().filter(|function| !function.layout.is_empty()) {
        for block in function.layout.clone() {
            for number in 0..function.blocks[block].term.edges().count() {
                let middle = function.blocks[block].term.edges().nth(number).expect("it was counted").target;
                if let (Role::Split, Terminator::Jump(edge)) =
                    (function.blocks[middle].role, &function.blocks[middle].term)
                {
                    let edge = edge.clone();
                    *function.blocks[block].term.edges_mut().nth(number).expect("it was counted") = edge;
                }
            }
        }
        let blocks = &function.blocks;
        function.layout.retain(|block| blocks[*block].role != Role::Split);
        function.form = Form::Ssa;
    }
    program
}

/// All φs of a function, block by block.
fn phis(function: &ir::Function) -> impl Iterator<Item = Value> {
    function.layout.iter().flat_map(|block| function.blocks[*block].params.iter().copied())
}

/// The functions of a program by name. Ids are not the same in all stages.
pub fn names(program: &ir::Program) -> impl Iterator<Item = (&str, FuncId)> {
    program.functions.iter().map(|(id, function)| (function.name.as_str(), id))
}
