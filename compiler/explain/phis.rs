//! Why a variable has a φ in a block, or has none: the blocks that define it, the rounds of the iterated dominance
//! frontier, and liveness (Cytron, Ferrante, Rosen, Wegman, Zadeck, Efficiently Computing Static Single Assignment Form and
//! the Control Dependence Graph, 1991).
//!
//! This follows the textbook's worklist in rounds, which SSA construction itself does not: it is an explanation and a second
//! opinion at once, and a test compares both.
//!
//! **in**: a function over variables, a variable. **out**: for each block an [`Answer`]. Cost: the size of the dominance
//! frontiers, for one variable.

use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::frontiers;
use crate::analysis::liveness::Liveness;
use crate::ir::{Block, Function, Value, Variable};
use serde::Serialize;
use std::collections::BTreeMap;

/// Why a block has a φ for a variable, or has none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// It has one: the chain leads from a defining block by dominance frontiers to the block.
    Phi { round: usize, chain: Vec<String> },
    /// Definitions meet here, but nothing reads the variable before it is written again.
    NotLive { round: usize, chain: Vec<String> },
    /// No two definitions meet here.
    NotInFrontier,
    /// Control cannot come here.
    Unreachable,
}

/// What is known of one variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Placement {
    /// The function.
    pub function: String,
    /// The variable.
    pub variable: String,
    /// The blocks that write it; a parameter counts as written in the entry.
    pub defined_in: Vec<String>,
    /// For each block why it has a φ or not.
    pub blocks: BTreeMap<String, Answer>,
}

/// Explains a variable of a function over variables whose entry has no predecessors.
pub fn compute(function: &Function, variable: Variable) -> Placement {
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);
    let frontiers = frontiers::compute(&cfg, &dominators);
    let live = Liveness::compute(function, &cfg);
    let is_it = |value: Value| function.values[value].variable.expand() == Some(variable);
    let mut defining: Vec<Block> = Vec::new();
    if function.params.iter().any(|param| is_it(*param)) {
        defining.push(function.entry());
    }
    for block in &function.layout {
        let mut writes = false;
        for inst in &function.blocks[*block].insts {
            function.insts[*inst].for_each_def(|value| writes |= is_it(value));
        }
        if writes && cfg.is_reachable(*block) && !defining.contains(block) {
            defining.push(*block);
        }
    }
    // Round by round: the frontiers of what the last round added.
    let mut placed: BTreeMap<Block, (usize, Vec<Block>)> = BTreeMap::new();
    let mut last: Vec<(Block, Vec<Block>)> = defining.iter().map(|block| (*block, vec![*block])).collect();
    let mut round = 0;
    while !last.is_empty() {
        round += 1;
        let mut added = Vec::new();
        for (block, chain) in last {
            for join in &frontiers[block] {
                if !placed.contains_key(join) {
                    let mut longer = chain.clone();
                    longer.push(*join);
                    placed.insert(*join, (round, longer.clone()));
                    added.push((*join, longer));
                }
            }
        }
        last = added;
    }
    let read_in = |block: Block| live.live_in(block).iter().any(|value| is_it(*value));
    let names = |chain: &[Block]| chain.iter().map(Block::to_string).collect();
    let blocks = function
        .layout
        .iter()
        .map(|block| {
            let answer = match placed.get(block) {
                Some(_) | None if !cfg.is_reachable(*block) => Answer::Unreachable,
                None => Answer::NotInFrontier,
                Some((round, chain)) if read_in(*block) => Answer::Phi { round: *round, chain: names(chain) },
                Some((round, chain)) => Answer::NotLive { round: *round, chain: names(chain) },
            };
            (block.to_string(), answer)
        })
        .collect();
    Placement {
        function: function.name.clone(),
        variable: function.variables[variable].name.clone(),
        defined_in: names(&defining),
        blocks,
    }
}

impl Answer {
    /// What to say of it, in a sentence without a full stop.
    pub fn sentence(&self, variable: &str, block: &str) -> String {
        let chain = |chain: &[String]| chain.join(" → ");
        match self {
            Answer::Phi { round, chain: links } => format!(
                "{block} has a φ for {variable}: it is in the dominance frontier chain {} (round {round}), and {variable} is \
                 live there",
                chain(links)
            ),
            Answer::NotLive { round, chain: links } => format!(
                "{block} has no φ for {variable}: definitions meet there ({}, round {round}), but {variable} is not live-in",
                chain(links)
            ),
            Answer::NotInFrontier => {
                format!("{block} has no φ for {variable}: it is in no dominance frontier of a definition")
            }
            Answer::Unreachable => format!("{block} has no φ for {variable}: control cannot come there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::generate::{Shape, generate};
    use crate::ssa::construct::{self, Copies, Pruning};
    use crate::support::span::Source;
    use crate::{build, check, syntax};
    use std::collections::BTreeSet;

    #[test]
    fn the_textbook_and_the_construction_agree() {
        let mut phis = 0;
        for seed in 0..40 {
            let source = Source::new("a.atl", generate(seed, &Shape::default()));
            let tree = syntax::parse(&source).ast.expect("a tree");
            let program = build::run(&check::run(&tree, &source).expect("well-typed"));
            for function in program.functions.values() {
                let mut constructed = function.clone();
                construct::run(
                    &mut constructed,
                    &construct::Options { pruning: Pruning::Pruned, copies: Copies::Keep },
                );
                let mut built: BTreeSet<(String, String)> = BTreeSet::new();
                for block in &constructed.layout {
                    for phi in &constructed.blocks[*block].params {
                        // The value of an `&&` is no variable of the source.
                        if let Some(variable) = constructed.variable_of(*phi) {
                            built.insert((block.to_string(), variable.name.clone()));
                        }
                    }
                }
                let mut explained = BTreeSet::new();
                for variable in function.variables.keys() {
                    let placement = compute(function, variable);
                    for (block, answer) in &placement.blocks {
                        if matches!(answer, Answer::Phi { .. }) {
                            explained.insert((block.clone(), placement.variable.clone()));
                        }
                    }
                }
                phis += built.len();
                assert_eq!(built, explained, "seed {seed}, {}", function.name);
            }
        }
        assert!(phis > 200, "the programs have φs");
    }
}
