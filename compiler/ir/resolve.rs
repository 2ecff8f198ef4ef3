//! Completes a function that `parse` has read line by line: checks its blocks, gives the operands of φs to the edges that
//! they belong to, and settles the types of copies and the variables that names stand for.
//!
//! **In**: a draft whose callees are known. **Out**: the function, or diagnostics. Cost: linear.

use super::parse::{INCOMPLETE, MAX_DIAGNOSTICS, PHI_OPERANDS, UNKNOWN};
use super::types::*;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Span;
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A function with what can only be resolved later.
pub(super) struct Draft<'a> {
    pub(super) function: Function,
    pub(super) name_span: Span,
    /// The block that instructions go into, until its terminator.
    pub(super) current: Option<Block>,
    /// The block has its terminator.
    pub(super) ended: bool,
    pub(super) labelled: EntitySet<Block>,
    /// Blocks that terminators name.
    pub(super) mentioned: Vec<(Block, Span)>,
    pub(super) phis: Vec<Phi>,
    pub(super) calls: Vec<(Inst, &'a str, Span)>,
    /// The types of values that their definition gives away.
    pub(super) types: SecondaryMap<Value, Option<Type>>,
    /// Values whose type is that of the operand.
    pub(super) same: Vec<(Operand, Value)>,
    /// Which variable's version a value is.
    pub(super) names: Vec<(Value, &'a str)>,
}

pub(super) struct Phi {
    pub(super) block: Block,
    pub(super) value: Value,
    pub(super) operands: Vec<(Operand, Block, Span)>,
    pub(super) span: Span,
}

/// Checks the blocks of a function, gives the φs' operands to the edges, and settles types and variables.
pub(super) fn complete(draft: &mut Draft<'_>, diagnostics: &mut Vec<Diagnostic>) {
    if draft.function.layout.is_empty() {
        let message = format!("the function `{}` has no blocks", draft.function.name);
        diagnostics.push(Diagnostic::error(INCOMPLETE, draft.name_span, message));
        return;
    }
    let before = diagnostics.len();
    for (block, span) in &draft.mentioned {
        if !draft.labelled.contains(*block) {
            diagnostics.push(Diagnostic::error(UNKNOWN, *span, format!("there is no block {block}")));
            if diagnostics.len() >= MAX_DIAGNOSTICS {
                return;
            }
        }
    }
    if diagnostics.len() > before {
        return;
    }
    give_operands(draft, diagnostics);
    settle_types(draft);
    settle_variables(draft);
}

/// Makes the operands of φs arguments of edges. The first operand from a predecessor belongs to its first edge to the
/// block, the second to its second.
fn give_operands(draft: &mut Draft<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let mut edges: SecondaryMap<Block, Vec<(Block, usize)>> = SecondaryMap::new();
    for block in &draft.function.layout {
        for (number, edge) in draft.function.blocks[*block].term.edges().enumerate() {
            edges[edge.target].push((*block, number));
        }
    }
    // Of each edge into the block at hand, the place in `edges`.
    let mut place: FxHashMap<(Block, usize), usize> = FxHashMap::default();
    let mut of_block = None;
    for phi in &draft.phis {
        let into = &edges[phi.block];
        if of_block != Some(phi.block) {
            of_block = Some(phi.block);
            place.clear();
            let mut seen: FxHashMap<Block, usize> = FxHashMap::default();
            for (at, (pred, _)) in into.iter().enumerate() {
                let count = seen.entry(*pred).or_default();
                place.insert((*pred, *count), at);
                *count += 1;
            }
        }
        let mut args: Vec<Option<Operand>> = vec![None; into.len()];
        let mut seen: FxHashMap<Block, usize> = FxHashMap::default();
        for (operand, pred, span) in &phi.operands {
            let count = seen.entry(*pred).or_default();
            match place.get(&(*pred, *count)) {
                Some(at) => args[*at] = Some(*operand),
                None => {
                    let message = match count {
                        0 => format!("{pred} has no edge to {}", phi.block),
                        _ => format!(
                            "{} has more operands from {pred} than {pred} has edges to {}",
                            phi.value, phi.block
                        ),
                    };
                    diagnostics.push(Diagnostic::error(PHI_OPERANDS, *span, message));
                }
            }
            *count += 1;
        }
        if let Some(at) = args.iter().position(Option::is_none) {
            let message = format!("{} has no operand from its predecessor {}", phi.value, into[at].0);
            diagnostics.push(Diagnostic::error(PHI_OPERANDS, phi.span, message));
        }
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            return;
        }
        for ((pred, number), arg) in into.iter().zip(args) {
            let edge = draft.function.blocks[*pred].term.edges_mut().nth(*number);
            edge.expect("the edge was found in the terminator").args.extend(arg);
        }
    }
}

/// Passes types along copies and selections to values whose own definition does not tell; what nothing tells is an int.
fn settle_types(draft: &mut Draft<'_>) {
    let types = &mut draft.types;
    let mut readers: FxHashMap<Value, SmallVec<[Value; 2]>> = FxHashMap::default();
    let mut work: Vec<Value> = Vec::new();
    for (source, destination) in &draft.same {
        let ty = match source {
            Operand::Value(source) => {
                readers.entry(*source).or_default().push(*destination);
                types[*source]
            }
            Operand::Int(_) => Some(Type::INT),
            Operand::Bool(_) => Some(Type::BOOL),
        };
        if types[*destination].is_none() && ty.is_some() {
            types[*destination] = ty;
            work.push(*destination);
        }
    }
    while let Some(value) = work.pop() {
        for reader in readers.get(&value).into_iter().flatten() {
            if types[*reader].is_none() {
                types[*reader] = types[value];
                work.push(*reader);
            }
        }
    }
    for (value, data) in draft.function.values.iter_mut() {
        data.ty = draft.types[value].unwrap_or(Type::INT);
    }
}

/// Makes the variables that names stand for. A name that values of different types bear stands for one variable each.
fn settle_variables(draft: &mut Draft<'_>) {
    let mut known: FxHashMap<(&str, Type), Variable> = FxHashMap::default();
    let function = &mut draft.function;
    for (value, name) in &draft.names {
        let ty = function.values[*value].ty;
        let variable = *known
            .entry((name, ty))
            .or_insert_with(|| function.variables.push(VariableData { name: name.to_string(), ty, span: Span::NONE }));
        if function.values[*value].variable.is_none() {
            function.values[*value].variable = Some(variable).into();
        }
    }
}
