//! Makes a program of IR text small while something remains true of it.
//!
//! Functions lose their callers, branches become jumps, φs and results become constants, instructions go; then what nothing reaches goes.
//! Candidates that the verifier rejects cost nothing. Deterministic.
//!
//! ```text
//! branch %4 ? b2 : b3     →     jump b2
//! %5 = int %1 * %2        →     %5 = copy 0
//! ```
//!
//! **in**: IR text and a predicate that holds of it. **out**: IR text of which it holds. Cost: a try for each instruction and
//! branch, some times over; each prints the program.

use crate::ir::{self, Block, Edge, Function, Op, Operand, Program, Terminator, Type};
use crate::support::span::Source;

/// Reduces; gives the text back if it does not parse or the predicate does not hold of it as it prints.
pub fn run(text: &str, most_tries: usize, holds: &mut dyn FnMut(&str) -> bool) -> String {
    let Ok(program) = ir::parse::parse(&Source::new("reduce.ir", text)) else { return text.to_string() };
    let mut reducer = Reducer { text: print(&program), program, tries: 0, most_tries, holds };
    if !(reducer.holds)(&reducer.text.clone()) {
        return text.to_string();
    }
    loop {
        let before = reducer.text.len();
        reducer.branches();
        reducer.instructions();
        reducer.phis();
        if reducer.text.len() >= before || reducer.tries >= most_tries {
            return reducer.text;
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

    fn blocks(&self) -> Vec<(ir::FuncId, Block)> {
        let functions = self.program.functions.iter();
        functions.flat_map(|(id, function)| function.layout.iter().map(move |block| (id, *block))).collect()
    }

    fn branches(&mut self) {
        for (id, block) in self.blocks() {
            for number in 0..2 {
                let Terminator::Branch { then, els, .. } = &self.program.functions[id].blocks[block].term else {
                    break;
                };
                let edge: Edge = if number == 0 { then.clone() } else { els.clone() };
                let mut candidate = self.program.clone();
                candidate.functions[id].blocks[block].term = Terminator::Jump(edge);
                self.attempt(candidate);
            }
        }
    }

    fn instructions(&mut self) {
        for (id, block) in self.blocks() {
            for index in (0..self.program.functions[id].blocks[block].insts.len()).rev() {
                let function = &self.program.functions[id];
                let inst = function.blocks[block].insts[index];
                let mut candidate = self.program.clone();
                let changed = &mut candidate.functions[id];
                changed.blocks[block].insts.remove(index);
                if let Some(result) = function.insts[inst].result.expand() {
                    match function.values[result].ty {
                        Type::Scalar(scalar) => replace(changed, result, Operand::from_constant(scalar, 1)),
                        Type::Array(_) => {}
                    }
                }
                // An array goes with the instruction that ends it.
                if let Op::Array { .. } = function.insts[inst].op {
                    let array = function.insts[inst].result.expand().map(Operand::Value);
                    for block in changed.layout.clone() {
                        let insts = &changed.insts;
                        let ends =
                            |inst: &ir::Inst| matches!(&insts[*inst].op, Op::Free(operand) if Some(*operand) == array);
                        changed.blocks[block].insts.retain(|inst| !ends(inst));
                    }
                }
                self.attempt(candidate);
            }
        }
    }

    fn phis(&mut self) {
        for (id, block) in self.blocks() {
            for number in (0..self.program.functions[id].blocks[block].params.len()).rev() {
                let mut candidate = self.program.clone();
                let function = &mut candidate.functions[id];
                let phi = function.blocks[block].params.remove(number);
                let Type::Scalar(scalar) = function.values[phi].ty else { continue };
                for from in function.layout.clone() {
                    for edge in function.blocks[from].term.edges_mut().filter(|edge| edge.target == block) {
                        edge.args.remove(number);
                    }
                }
                replace(function, phi, Operand::from_constant(scalar, 1));
                self.attempt(candidate);
            }
        }
    }
}

fn replace(function: &mut Function, value: ir::Value, by: Operand) {
    let change = |operand: &mut Operand| {
        if *operand == Operand::Value(value) {
            *operand = by;
        }
    };
    for block in function.layout.clone() {
        for inst in function.blocks[block].insts.clone() {
            let op = &mut function.insts[inst].op;
            op.for_each_operand_mut(change);
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

    #[test]
    fn keeps_one_instruction() {
        // Some multiply only in blocks that nothing reaches, which go first.
        let multiplies = |text: &String| text.matches(" * ").count() >= 5;
        let text = (0..100).map(random_ir).find(multiplies).expect("some random program multiplies often");
        let reduced = run(&text, 5_000, &mut |candidate| candidate.contains(" * "));
        assert!(reduced.lines().count() < text.lines().count() / 3, "{reduced}");
        assert!(reduced.contains(" * "));
    }
}
