//! The hazard report: what could have gone wrong on the way out of SSA form, and what was done about it.
//!
//! - **Critical edges**: from a block with several ways out to a block with several ways in; split where copies must stand
//!   on them, and left alone where no φ takes an operand.
//! - **Lost copies**: a copy placed at the end of the predecessor, instead of on the split edge, would also run on the
//!   way to the other successor; where its destination is still wanted there, the old value would be lost (Preston Briggs,
//!   Keith Cooper, Timothy Harvey, Taylor Simpson, Practical Improvements to the Construction and Destruction of Static
//!   Single Assignment Form, 1998).
//! - **Cycles**: φs that trade values on an edge (the swap problem), with the victim that was rescued and its temporary.
//! - **Pruned φs**: φs of minimal SSA form that nothing would read.
//!
//! **in**: a [`Trace`]. **out**: hazards in listing order, each with its source line. Cost: near-linear; liveness and one more
//! SSA construction of each function.

use super::trace::{self, Trace};
use crate::analysis::{cfg::Cfg, liveness::Liveness};
use crate::ir::{self, Block, CopyOrigin, FuncId, Function, Operand, Value};
use crate::ssa::construct::{self, Copies, Pruning};
use crate::support::listing::Entity;
use crate::support::span::Span;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One hazard.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hazard {
    /// The function.
    pub function: String,
    /// The source line that it is about, where one is known.
    pub line: Option<u32>,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
    /// The entities that it names, for pages.
    #[serde(skip)]
    pub entities: Vec<Entity>,
    /// Where a note on the source would stand.
    #[serde(skip)]
    pub span: Span,
}

/// What a hazard is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "hazard", rename_all = "kebab-case")]
pub enum Kind {
    /// A critical edge.
    CriticalEdge {
        /// `b2→b1`.
        edge: String,
        /// How many copies stand on it.
        copies: usize,
        /// The block made for them; none where there are none.
        split: Option<String>,
    },
    /// A copy that would have been lost at the end of the predecessor.
    LostCopy {
        /// The edge that needed the copy.
        edge: String,
        /// The φ that the copy writes.
        phi: String,
        /// The variable that would have been wrong.
        variable: Option<String>,
        /// The other way out, on which its old value is still wanted.
        wanted_in: String,
    },
    /// φs that trade values.
    Cycle {
        /// The edge.
        edge: String,
        /// The φs, each read by the next.
        members: Vec<String>,
        /// Their variables.
        variables: Vec<String>,
        /// The φ whose value was saved before it was overwritten.
        victim: String,
        /// Where it was saved.
        temporary: String,
    },
    /// A φ that pruning left out.
    PrunedPhi {
        /// The block.
        block: String,
        /// The variable.
        variable: String,
    },
}

impl Kind {
    /// Its name in text.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::CriticalEdge { .. } => "critical edge",
            Kind::LostCopy { .. } => "lost copy",
            Kind::Cycle { .. } => "cycle",
            Kind::PrunedPhi { .. } => "pruned φ",
        }
    }

    /// What to say of it, in a sentence without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            Kind::CriticalEdge { edge, copies: 0, .. } => {
                format!("{edge} is critical, but no φ takes an operand from it: it needs no block")
            }
            Kind::CriticalEdge { edge, copies, split } => {
                let block = split.clone().unwrap_or_else(|| "a block".to_string());
                let noun = if *copies == 1 { "copy" } else { "copies" };
                format!("{edge} is critical and carries {copies} {noun}: split by {block}")
            }
            Kind::LostCopy { edge, phi, variable, wanted_in } => {
                let what = variable.as_ref().map_or(phi.clone(), |name| format!("{name} ({phi})"));
                format!(
                    "the copy to {what} for {edge}, placed before the branch, would overwrite it on the way to {wanted_in}, \
                     where its old value is still read"
                )
            }
            Kind::Cycle { edge, members, victim, temporary, variables } => {
                let trade = if variables.is_empty() { members.join(", ") } else { variables.join(", ") };
                format!("on {edge} {trade} trade values: {victim} is rescued in {temporary} before it is overwritten")
            }
            Kind::PrunedPhi { block, variable } => {
                format!("definitions of {variable} meet in {block}, but {variable} is not live there: no φ")
            }
        }
    }
}

/// The hazards of the whole program.
pub fn compute(trace: &Trace) -> Vec<Hazard> {
    let mut hazards = Vec::new();
    let written: FxHashMap<&str, FuncId> = trace.variables.iter().flat_map(trace::names).collect();
    if let (Some(optimized), Some(split), Some(sequenced)) = (&trace.optimized, &trace.split, &trace.sequenced) {
        for (id, function) in optimized.functions.iter().filter(|(_, function)| !function.layout.is_empty()) {
            let report = Report { program: optimized, function, split: &split.functions[id] };
            report.edges(&mut hazards);
            report.cycles(&sequenced.functions[id], &mut hazards);
            if let Some((variables, id)) = trace.variables.as_ref().zip(written.get(function.name.as_str())) {
                report.pruned(&variables.functions[*id], &mut hazards);
            }
        }
    }
    hazards
}

struct Report<'a> {
    program: &'a ir::Program,
    function: &'a Function,
    split: &'a Function,
}

impl Report<'_> {
    fn hazard(&self, kind: Kind, span: Span, entities: Vec<Entity>) -> Hazard {
        let line = self.program.positions.position(span).map(|position| position.line);
        Hazard { function: self.function.name.clone(), line, kind, entities, span }
    }

    /// The span that a block's edges come from.
    fn span(&self, block: Block) -> Span {
        self.function.blocks[block].term_span
    }

    fn variable_span(&self, value: Value) -> Span {
        self.function.variable_of(value).map_or(Span::NONE, |variable| variable.span)
    }

    fn edges(&self, hazards: &mut Vec<Hazard>) {
        let cfg = Cfg::compute(self.function);
        let live = Liveness::compute(self.function, &cfg);
        for pred in &self.function.layout {
            let term = &self.function.blocks[*pred].term;
            if term.edges().count() < 2 {
                continue;
            }
            for (number, edge) in term.edges().enumerate() {
                if cfg.preds(edge.target).len() < 2 {
                    continue;
                }
                let now =
                    self.split.blocks[*pred].term.edges().nth(number).expect("splitting keeps a block's edges").target;
                let split = (now != edge.target).then(|| now.to_string());
                let text = format!("{pred}→{}", edge.target);
                let entities = vec![block_entity(*pred), block_entity(edge.target)];
                let copies = edge.args.len();
                let kind = Kind::CriticalEdge { edge: text.clone(), copies, split };
                hazards.push(self.hazard(kind, self.span(*pred), entities));
                let other = term.edges().nth(1 - number).expect("a branch has two edges");
                let phis = &self.function.blocks[edge.target].params;
                for (phi, operand) in phis.iter().zip(&edge.args) {
                    if *operand == Operand::Value(*phi) {
                        continue;
                    }
                    // Is the φ's old value wanted on the other way out, or by the branch itself?
                    let passed = other.args.contains(&Operand::Value(*phi));
                    let read = term.operand() == Some(Operand::Value(*phi));
                    // A parameter of the other target is written there, so its old value is not wanted under that name.
                    let inside =
                        live.is_live_in(other.target, *phi) && !self.function.blocks[other.target].params.contains(phi);
                    if passed || read || inside {
                        let kind = Kind::LostCopy {
                            edge: text.clone(),
                            phi: phi.to_string(),
                            variable: self.function.variable_of(*phi).map(|variable| variable.name.clone()),
                            wanted_in: other.target.to_string(),
                        };
                        let entities = vec![Entity::Value(phi.index() as u32), block_entity(edge.target)];
                        hazards.push(self.hazard(kind, self.variable_span(*phi), entities));
                    }
                }
            }
        }
    }

    /// Each rescue broke one cycle: its members are followed through the copies of its edge.
    fn cycles(&self, sequenced: &Function, hazards: &mut Vec<Hazard>) {
        for block in &sequenced.layout {
            for inst in &sequenced.blocks[*block].insts {
                let Some(CopyOrigin::Rescue { victim, pred, edge }) = sequenced.copy_origins.get(inst) else {
                    continue;
                };
                let edge_data = self.function.blocks[*pred].term.edges().nth(usize::from(*edge));
                let edge_data = edge_data.expect("a rescue stands on an edge of the optimized form");
                let sources: BTreeMap<Value, Operand> = self.function.blocks[edge_data.target]
                    .params
                    .iter()
                    .copied()
                    .zip(edge_data.args.iter().copied())
                    .collect();
                let mut members = vec![*victim];
                let mut at = sources.get(victim).and_then(|operand| operand.value());
                while let Some(value) = at.filter(|value| value != victim && members.len() <= sources.len()) {
                    members.push(value);
                    at = sources.get(&value).and_then(|operand| operand.value());
                }
                let temporary = sequenced.insts[*inst].result.expand().expect("a rescue writes a temporary");
                let name = |value: &Value| self.function.variable_of(*value).map(|variable| variable.name.clone());
                let kind = Kind::Cycle {
                    edge: format!("{pred}→{}", edge_data.target),
                    members: members.iter().map(Value::to_string).collect(),
                    variables: members.iter().filter_map(name).collect(),
                    victim: victim.to_string(),
                    temporary: temporary.to_string(),
                };
                let mut entities: Vec<Entity> =
                    members.iter().map(|value| Entity::Value(value.index() as u32)).collect();
                entities.extend([block_entity(*pred), block_entity(edge_data.target)]);
                hazards.push(self.hazard(kind, self.variable_span(*victim), entities));
            }
        }
    }

    /// φs of minimal form that pruned form does not have.
    fn pruned(&self, variables: &Function, hazards: &mut Vec<Hazard>) {
        let phis = |pruning| {
            let mut function = variables.clone();
            construct::run(&mut function, &construct::Options { pruning, copies: Copies::Fold });
            let mut found: BTreeSet<(Block, String)> = BTreeSet::new();
            for block in &function.layout {
                for phi in &function.blocks[*block].params {
                    if let Some(variable) = function.variable_of(*phi) {
                        found.insert((*block, variable.name.clone()));
                    }
                }
            }
            found
        };
        let kept = phis(Pruning::Pruned);
        for (block, name) in phis(Pruning::Minimal).difference(&kept) {
            let variable = variables.variables.values().find(|variable| variable.name == *name);
            let span = variable.map_or(Span::NONE, |variable| variable.span);
            let kind = Kind::PrunedPhi { block: block.to_string(), variable: name.clone() };
            hazards.push(self.hazard(kind, span, vec![block_entity(*block)]));
        }
    }
}

fn block_entity(block: Block) -> Entity {
    Entity::Block(block.index() as u32)
}
