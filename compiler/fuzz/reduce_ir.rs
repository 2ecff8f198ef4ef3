//! Makes a program of IR text small while something remains true of it.
//!
//! Branches become jumps; instructions, φs, parameters and parts of prints go, their results replaced by a constant or by one of their
//! operands; blocks in a row become one, and blocks that only jump are passed by; what nothing reaches or calls goes with them.
//! Candidates that the verifier rejects cost nothing. Deterministic.
//!
//! ```text
//! branch %4 ? b2 : b3     →     jump b2
//! %5 = int %1 * %2        →     1, or %1, or %2, wherever %5 is read
//! ```
//!
//! **in**: IR text and a predicate that holds of it. **out**: IR text of which it holds. Cost: some tries for each instruction,
//! block and parameter, some times over; each prints the program.

use super::reduce::Reduced;
use crate::ir::{self, Block, Edge, FuncId, Function, Op, Operand, Program, Terminator, Type, Value};
use crate::opt::drop_functions;
use crate::semantics::Scalar;
use crate::support::span::Source;

/// Reduces; `None` if the text does not parse or the predicate does not hold of it as it prints.
pub fn run(text: &str, most_tries: usize, holds: &mut dyn FnMut(&str) -> bool) -> Option<Reduced> {
    let program = ir::parse::parse(&Source::new("reduce.ir", text)).ok()?;
    let mut reducer = Reducer { text: print(&program), program, tries: 1, most_tries, holds };
    if !(reducer.holds)(&reducer.text.clone()) {
        return None;
    }
    loop {
        let before = reducer.text.len();
        reducer.branches();
        reducer.instructions();
        reducer.phis();
        reducer.rows();
        reducer.parameters();
        reducer.prints();
        if reducer.text.len() >= before || reducer.tries >= most_tries {
            return Some(Reduced { text: reducer.text, tries: reducer.tries });
        }
    }
}

fn print(program: &Program) -> String {
    ir::print::print(program).lines().map(|line| line.text() + "\n").collect()
}

struct Reducer<'a> {
    program: Program,
    text: String,
    tries: usize,
    most_tries: usize,
    holds: &'a mut dyn FnMut(&str) -> bool,
}

impl Reducer<'_> {
    fn attempt(&mut self, mut candidate: Program) -> bool {
        candidate.functions.values_mut().for_each(drop_unreached);
        drop_functions::run(&mut candidate);
        if self.tries >= self.most_tries || ir::verify::verify(&candidate).is_err() {
            return false;
        }
        let text = print(&candidate);
        if text.len() >= self.text.len() {
            return false;
        }
        self.tries += 1;
        let holds = (self.holds)(&text);
        if holds {
            self.program = candidate;
            self.text = text;
        }
        holds
    }

    /// The blocks as they stand now; a candidate that holds may take some away.
    fn blocks(&self) -> Vec<(FuncId, Block)> {
        let functions = self.program.functions.iter();
        functions.flat_map(|(id, function)| function.layout.iter().map(move |block| (id, *block))).collect()
    }

    /// The function, if it still has the block.
    fn function(&self, id: FuncId, block: Block) -> Option<&Function> {
        self.program.functions.get(id).filter(|function| function.layout.contains(&block))
    }

    /// Makes each branch a jump, and ends the function at each block.
    fn branches(&mut self) {
        for (id, block) in self.blocks() {
            let Some(function) = self.function(id, block) else { continue };
            let result = function.result.map(|scalar| Operand::from_constant(scalar, 1));
            let mut candidate = self.program.clone();
            candidate.functions[id].blocks[block].term = Terminator::Return(result);
            if self.attempt(candidate) {
                continue;
            }
            for number in 0..2 {
                let Some(function) = self.function(id, block) else { break };
                let Terminator::Branch { then, els, .. } = &function.blocks[block].term else { break };
                let edge: Edge = if number == 0 { then.clone() } else { els.clone() };
                let mut candidate = self.program.clone();
                candidate.functions[id].blocks[block].term = Terminator::Jump(edge);
                self.attempt(candidate);
            }
        }
    }

    /// Takes each instruction away, the last first.
    fn instructions(&mut self) {
        for (id, block) in self.blocks() {
            let count = self.function(id, block).map_or(0, |function| function.blocks[block].insts.len());
            for index in (0..count).rev() {
                let Some(function) = self.function(id, block) else { break };
                let Some(inst) = function.blocks[block].insts.get(index).copied() else { continue };
                let mut candidate = self.program.clone();
                let changed = &mut candidate.functions[id];
                changed.blocks[block].insts.remove(index);
                let Some(result) = function.insts[inst].result.expand() else {
                    self.attempt(candidate);
                    continue;
                };
                // An array goes with the instruction that ends it.
                if let Op::Array { .. } = function.insts[inst].op {
                    for block in changed.layout.clone() {
                        let insts = &changed.insts;
                        let ends = |inst: &ir::Inst| insts[*inst].op == Op::Free(Operand::Value(result));
                        changed.blocks[block].insts.retain(|inst| !ends(inst));
                    }
                }
                let mut operands = Vec::new();
                function.insts[inst].op.for_each_operand(|operand| operands.push(operand));
                self.replacing(id, result, &operands, &candidate);
            }
        }
    }

    /// Takes each φ away.
    fn phis(&mut self) {
        for (id, block) in self.blocks() {
            let count = self.function(id, block).map_or(0, |function| function.blocks[block].params.len());
            for number in (0..count).rev() {
                let Some(function) = self.function(id, block) else { break };
                let mut candidate = self.program.clone();
                let changed = &mut candidate.functions[id];
                let phi = changed.blocks[block].params.remove(number);
                let mut operands = Vec::new();
                for from in function.layout.clone() {
                    for edge in changed.blocks[from].term.edges_mut().filter(|edge| edge.target == block) {
                        operands.push(edge.args.remove(number));
                    }
                }
                self.replacing(id, phi, &operands, &candidate);
            }
        }
    }

    /// Tries the candidate, which has lost the definition of a value, with something else in the value's place: a constant,
    /// or what it was made of.
    fn replacing(&mut self, id: FuncId, value: Value, operands: &[Operand], candidate: &Program) -> bool {
        let function = &self.program.functions[id];
        let ty = function.values[value].ty;
        let mut others = Vec::from_iter(scalar(ty).map(|scalar| Operand::from_constant(scalar, 1)));
        for operand in operands {
            if *operand != Operand::Value(value) && function.type_of(*operand) == ty && !others.contains(operand) {
                others.push(*operand);
            }
        }
        others.truncate(4);
        if others.is_empty() {
            // Perhaps nothing reads it.
            return self.attempt(candidate.clone());
        }
        others.into_iter().any(|other| {
            let mut candidate = candidate.clone();
            replace(&mut candidate.functions[id], value, other);
            self.attempt(candidate)
        })
    }

    /// Makes a block and its only successor one where nothing else comes to that, and passes by blocks that only jump.
    fn rows(&mut self) {
        for (id, block) in self.blocks() {
            let Some(function) = self.function(id, block) else { continue };
            let Terminator::Jump(edge) = &function.blocks[block].term else { continue };
            let next = edge.target;
            let entries = |target: Block| {
                let edges = function.layout.iter().flat_map(|from| function.blocks[*from].term.edges());
                edges.filter(|edge| edge.target == target).count()
            };
            let mut candidate = self.program.clone();
            let changed = &mut candidate.functions[id];
            if next != block && next != function.entry() && entries(next) == 1 {
                for (param, arg) in function.blocks[next].params.iter().zip(&edge.args) {
                    // An argument may be a value that another parameter is replaced by, but never such a parameter itself.
                    replace(changed, *param, *arg);
                }
                changed.blocks[next].params.clear();
                let insts = std::mem::take(&mut changed.blocks[next].insts);
                changed.blocks[block].insts.extend(insts);
                changed.blocks[block].term = changed.blocks[next].term.clone();
                changed.layout.retain(|other| *other != next);
                self.attempt(candidate);
            } else if block != function.entry()
                && function.blocks[block].insts.is_empty()
                && function.blocks[block].params.is_empty()
                && next != block
            {
                let edge = edge.clone();
                for from in function.layout.clone() {
                    for other in changed.blocks[from].term.edges_mut().filter(|other| other.target == block) {
                        *other = edge.clone();
                    }
                }
                self.attempt(candidate);
            }
        }
    }

    /// Takes the parameters of functions away, with the arguments.
    fn parameters(&mut self) {
        let ids: Vec<FuncId> = self.program.functions.keys().collect();
        for id in ids.into_iter().rev() {
            let count = self.program.functions.get(id).map_or(0, |function| function.params.len());
            for number in (0..count).rev() {
                let Some(function) = self.program.functions.get(id) else { break };
                let Some(param) = function.params.get(number).copied() else { continue };
                let mut candidate = self.program.clone();
                candidate.functions[id].params.remove(number);
                for other in candidate.functions.values_mut() {
                    for inst in other.insts.values_mut() {
                        if let Op::Call { callee, args } = &mut inst.op
                            && *callee == id
                        {
                            args.remove(number);
                        }
                    }
                }
                self.replacing(id, param, &[], &candidate);
            }
        }
    }

    /// Takes parts of prints away.
    fn prints(&mut self) {
        for (id, block) in self.blocks() {
            let Some(function) = self.function(id, block) else { continue };
            for inst in function.blocks[block].insts.clone() {
                let parts = |program: &Program| match program.functions.get(id).map(|function| &function.insts[inst].op)
                {
                    Some(Op::Print(parts)) => parts.len(),
                    Some(_) | None => 0,
                };
                for number in (0..parts(&self.program)).rev() {
                    if parts(&self.program) < 2 {
                        break;
                    }
                    let mut candidate = self.program.clone();
                    if let Op::Print(parts) = &mut candidate.functions[id].insts[inst].op {
                        parts.remove(number);
                    }
                    self.attempt(candidate);
                }
            }
        }
    }
}

fn scalar(ty: Type) -> Option<Scalar> {
    match ty {
        Type::Scalar(scalar) => Some(scalar),
        Type::Array(_) => None,
    }
}

fn replace(function: &mut Function, value: Value, by: Operand) {
    let change = |operand: &mut Operand| {
        if *operand == Operand::Value(value) {
            *operand = by;
        }
    };
    for block in function.layout.clone() {
        for inst in function.blocks[block].insts.clone() {
            function.insts[inst].op.for_each_operand_mut(change);
        }
        function.blocks[block].term.for_each_operand_mut(change);
    }
}

fn drop_unreached(function: &mut Function) {
    let mut reached = vec![false; function.blocks.len()];
    let mut work = vec![function.entry()];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut reached[block.as_u32() as usize], true) {
            work.extend(function.blocks[block].term.edges().map(|edge| edge.target));
        }
    }
    function.layout.retain(|block| reached[block.as_u32() as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::campaign::random_ir;

    fn text_of(seed: u64, wanted: impl Fn(&String) -> bool) -> String {
        (seed..seed + 400).map(random_ir).find(wanted).expect("some random program has it")
    }

    #[test]
    fn keeps_one_instruction() {
        // Some multiply only in blocks that nothing reaches, which go first.
        let text = text_of(0, |text| text.matches(" * ").count() >= 5);
        let reduced = run(&text, 5_000, &mut |candidate| candidate.contains(" * ")).expect("it holds at first").text;
        assert!(reduced.lines().count() <= 6, "{reduced}");
        assert!(reduced.contains(" * "));
    }

    #[test]
    fn keeps_one_loop_with_a_cycle_of_phis() {
        // A φ whose operand is another φ of the same block: the swap, in whatever surroundings.
        let swaps = |text: &str| {
            let Ok(program) = ir::parse::parse(&Source::new("t.ir", text)) else { return false };
            program.functions.values().any(|function| {
                function.layout.iter().any(|block| {
                    let params = &function.blocks[*block].params;
                    let reads = |edge: &Edge| {
                        let other = |(at, arg): (usize, &Operand)| {
                            arg.value().is_some_and(|value| value != params[at] && params.contains(&value))
                        };
                        edge.target == *block && edge.args.iter().enumerate().any(other)
                    };
                    function.layout.iter().any(|from| function.blocks[*from].term.edges().any(reads))
                })
            })
        };
        let text = text_of(0, |text| text.lines().count() > 80 && swaps(text));
        let reduced = run(&text, 5_000, &mut |candidate| swaps(candidate)).expect("it holds at first").text;
        assert!(swaps(&reduced));
        assert!(reduced.lines().count() <= 10, "{reduced}");
        assert_eq!(run(&text, 5_000, &mut |_| false), None);
    }
}
