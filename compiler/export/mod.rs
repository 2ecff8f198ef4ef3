//! Floor 4: the same program in the languages of other compilers, so that they can judge ours. Exact semantics:
//! wrapping arithmetic, masked shifts, checks with the contract's messages and positions.

pub mod c;
pub mod llvm;
pub mod qbe;

use crate::ir::{Block, Edge, Function, Program, Terminator};
use crate::support::span::{Position, Span};
use cranelift_entity::{EntityRef, SecondaryMap};

/// The position that a run-time error at this span shows; 0:0 where it is unknown.
fn position(program: &Program, span: Span) -> Position {
    program.positions.position(span).unwrap_or(Position { line: 0, column: 0 })
}

/// A name of the source with only letters, digits and underscores, for use within a longer name.
fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Do both edges of the block's branch go to one block? Peers cannot tell two such edges apart in their φs, so the second
/// goes through a block of its own, `b3.else`.
fn has_twin_edges(function: &Function, block: Block) -> bool {
    match &function.blocks[block].term {
        Terminator::Branch { then, els, .. } => then.target == els.target,
        Terminator::Jump(_) | Terminator::Return(_) | Terminator::Unreachable => false,
    }
}

/// For each block its incoming edges with the label that each comes from; `end` gives the label under which a block ends.
fn incoming(function: &Function, end: impl Fn(Block) -> String) -> SecondaryMap<Block, Vec<(&Edge, String)>> {
    let mut incoming: SecondaryMap<Block, Vec<(&Edge, String)>> = SecondaryMap::new();
    for block in &function.layout {
        let twin = has_twin_edges(function, *block);
        for (position, edge) in function.blocks[*block].term.edges().enumerate() {
            let own_block = twin && position == 1;
            let from = if own_block { format!("b{}.else", block.index()) } else { end(*block) };
            incoming[edge.target].push((edge, from));
        }
    }
    incoming
}
