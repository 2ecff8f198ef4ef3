//! Checks that a program keeps the rules of its form. Runs after every stage when the compiler is asked to verify.
//!
//! For all forms: the layout lists blocks once, the entry first, which has no predecessors and no φs; edges go to blocks of
//! the layout, with an argument for each φ; what instructions name exists; operands and results have the types that the
//! operation wants. Then by form:
//!
//! | form | φs | parallel copies | definitions of a value |
//! | --- | --- | --- | --- |
//! | variables | none | none | any number; every way to a read has one |
//! | ssa | any | none | one, which dominates all reads; an argument is read at the end of the block that the edge leaves |
//! | split-ssa | not on critical edges | none | as in ssa |
//! | parallel-copies | none | first or last in a block | as over variables |
//! | sequenced | none | none | as over variables |
//!
//! Whether every way has a definition is found without liveness sets: what reaches a block is what reaches its immediate
//! dominator, unless it is in the iterated dominance frontier of the definitions, where it is what reaches all its
//! predecessors. In blocks that the entry does not reach, a read only needs a definition somewhere.
//!
//! **In**: any program. **Out**: the first broken rule, with the function and the entity. Cost: near-linear.

use super::types::*;
use crate::graph::dominators::{self, Tree};
use crate::graph::frontiers::Joins;
use crate::graph::nearest::{Family, Nearest};
use crate::graph::postorder;
use crate::semantics::{BinaryOp, CompareOp, Scalar};
use crate::support::internal::Internal;
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Display;

/// Checks all functions.
pub fn verify(program: &Program) -> Result<(), Internal> {
    let Some(entry) = program.functions.get(program.entry) else {
        return Err(Internal::new(program.entry, "the program's body does not exist"));
    };
    if !entry.params.is_empty() || entry.result.is_some() {
        return Err(Internal::new("", "the program's body has parameters or a result").in_function(&entry.name));
    }
    let mut names = FxHashSet::default();
    for function in program.functions.values() {
        if !names.insert(function.name.as_str()) {
            return Err(Internal::new("", "two functions have this name").in_function(&function.name));
        }
    }
    program.functions.keys().try_for_each(|function| verify_function(program, function))
}

/// Checks one function.
pub fn verify_function(program: &Program, function: FuncId) -> Result<(), Internal> {
    let data = &program.functions[function];
    let verifier = Verifier { program, function: data };
    verifier.run().map_err(|error| error.in_function(&data.name))
}

type Check = Result<(), Internal>;

fn broken<T>(entity: impl Display, message: impl Into<String>) -> Result<T, Internal> {
    Err(Internal::new(entity, message))
}

struct Verifier<'a> {
    program: &'a Program,
    function: &'a Function,
}

impl Verifier<'_> {
    fn run(&self) -> Check {
        let preds = self.blocks()?;
        self.values()?;
        for &block in &self.function.layout {
            let data = &self.function.blocks[block];
            for (at, inst) in data.insts.iter().enumerate() {
                self.parallel(block, at, *inst)?;
                self.inst(block, *inst)?;
            }
            self.terminator(block)?;
        }
        self.form_of_edges(&preds)?;
        self.reads(&preds)
    }

    /// Checks the layout and where edges go; gives the blocks with an edge into each block.
    fn blocks(&self) -> Result<SecondaryMap<Block, Vec<Block>>, Internal> {
        let function = self.function;
        if function.layout.is_empty() {
            return broken("", "the function has no blocks");
        }
        let mut listed: EntitySet<Block> = EntitySet::new();
        let mut insts: EntitySet<Inst> = EntitySet::new();
        for &block in &function.layout {
            let Some(data) = function.blocks.get(block) else {
                return broken(block, "the layout names a block that does not exist");
            };
            if !listed.insert(block) {
                return broken(block, "the layout lists the block twice");
            }
            for inst in &data.insts {
                if function.insts.get(*inst).is_none() {
                    return broken(block, format!("the block has the instruction {inst}, which does not exist"));
                }
                if !insts.insert(*inst) {
                    return broken(block, format!("the instruction {inst} stands in two places"));
                }
            }
        }
        let mut preds: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for &block in &function.layout {
            for edge in function.blocks[block].term.edges() {
                if function.blocks.get(edge.target).is_none() || !listed.contains(edge.target) {
                    return broken(block, format!("an edge goes to {}, which is not in the layout", edge.target));
                }
                let (phis, args) = (function.blocks[edge.target].params.len(), edge.args.len());
                if phis != args {
                    let message = format!(
                        "the edge to {} has {args} arguments for {phis} φs: a φ lacks an operand or has one too many",
                        edge.target
                    );
                    return broken(block, message);
                }
                preds[edge.target].push(block);
            }
        }
        let entry = function.entry();
        if let Some(pred) = preds[entry].first() {
            return broken(entry, format!("the entry has a predecessor, {pred}"));
        }
        if !function.blocks[entry].params.is_empty() {
            return broken(entry, "the entry has φs");
        }
        Ok(preds)
    }

    /// Checks that all values named exist, and that the definitions are as many as the form allows.
    fn values(&self) -> Check {
        let function = self.function;
        let mut defined: EntitySet<Value> = EntitySet::new();
        let single = function.form.is_ssa();
        let mut define = |value: Value| -> Check {
            self.exists(value)?;
            if !defined.insert(value) && single {
                return broken(value, format!("{value} has two definitions in SSA form"));
            }
            Ok(())
        };
        let mut params: EntitySet<Value> = EntitySet::new();
        for &param in &function.params {
            define(param)?;
            if !params.insert(param) {
                return broken(param, format!("{param} is a parameter twice"));
            }
        }
        for &block in &function.layout {
            let data = &function.blocks[block];
            for &phi in &data.params {
                if !single {
                    return broken(block, format!("a φ ({phi}) in the form `{}`", function.form.name()));
                }
                define(phi)?;
            }
            let mut result = Ok(());
            for &inst in &data.insts {
                function.insts[inst]
                    .for_each_def(|value| result = std::mem::replace(&mut result, Ok(())).and(define(value)));
                function.insts[inst].op.for_each_operand(|operand| {
                    if let Some(value) = operand.value() {
                        result = std::mem::replace(&mut result, Ok(())).and(self.exists(value));
                    }
                });
            }
            data.term.for_each_operand(|operand| {
                if let Some(value) = operand.value() {
                    result = std::mem::replace(&mut result, Ok(())).and(self.exists(value));
                }
            });
            result?;
        }
        Ok(())
    }

    fn exists(&self, value: Value) -> Check {
        let Some(data) = self.function.values.get(value) else {
            return broken(value, format!("{value} does not exist"));
        };
        match data.variable.expand() {
            Some(variable) if self.function.variables.get(variable).is_none() => {
                broken(value, format!("{value} is a version of {variable}, which does not exist"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a parallel copy stands where copies for φs belong.
    fn parallel(&self, block: Block, at: usize, inst: Inst) -> Check {
        let Op::Parallel(copies) = &self.function.insts[inst].op else { return Ok(()) };
        if self.function.form != Form::ParallelCopies {
            return broken(block, format!("a parallel copy in the form `{}`", self.function.form.name()));
        }
        if at != 0 && at + 1 != self.function.blocks[block].insts.len() {
            return broken(block, "a parallel copy stands neither first nor last in its block");
        }
        let mut destinations = FxHashSet::default();
        for (destination, _) in copies {
            if !destinations.insert(*destination) {
                return broken(destination, format!("a parallel copy writes {destination} twice"));
            }
        }
        Ok(())
    }

    fn inst(&self, block: Block, inst: Inst) -> Check {
        let InstData { op, result, .. } = &self.function.insts[inst];
        let entity = result.expand().map_or_else(|| block.to_string(), |value| value.to_string());
        self.operation(op, result.expand()).map_err(|message| Internal::new(entity, format!("{message} ({block})")))
    }

    /// Checks types; says what is wrong.
    fn operation(&self, op: &Op, result: Option<Value>) -> Result<(), String> {
        let gives = |ty: Type| match result.map(|value| self.function.values[value].ty) {
            Some(found) if found == ty => Ok(()),
            Some(found) => Err(format!("the result has the type {found} instead of {ty}")),
            None => Err("the instruction lacks a result".to_string()),
        };
        // Reading and calling have an effect besides their result, which may be dropped.
        let may_give = |ty: Type| if result.is_none() { Ok(()) } else { gives(ty) };
        let gives_nothing = || match result {
            Some(_) => Err("the instruction has a result, though it gives no value".to_string()),
            None => Ok(()),
        };
        match op {
            Op::Copy(source) => gives(self.function.type_of(*source)),
            Op::Parallel(copies) => {
                for (destination, source) in copies {
                    self.wants(*source, self.function.values[*destination].ty)?;
                }
                gives_nothing()
            }
            Op::Binary { op, ty, args } => {
                let on_bools = match op {
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::Rem
                    | BinaryOp::Shl
                    | BinaryOp::Shr => false,
                };
                if *ty == Scalar::Bool && !on_bools {
                    return Err(format!("`{}` does not work on bools", op.symbol()));
                }
                args.iter().try_for_each(|arg| self.wants(*arg, Type::Scalar(*ty)))?;
                gives(Type::Scalar(*ty))
            }
            Op::Compare { op, args } => {
                let ty = self.function.type_of(args[0]);
                let equality = match op {
                    CompareOp::Eq | CompareOp::Ne => true,
                    CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => false,
                };
                if ty != Type::INT && !(equality && ty == Type::BOOL) {
                    return Err(format!("`{}` does not compare operands of type {ty}", op.symbol()));
                }
                self.wants(args[1], ty)?;
                gives(Type::BOOL)
            }
            Op::Unary { op, arg } => {
                self.wants(*arg, Type::Scalar(op.operand()))?;
                gives(Type::Scalar(op.result()))
            }
            Op::Select { cond, args } => {
                self.wants(*cond, Type::BOOL)?;
                self.wants(args[1], self.function.type_of(args[0]))?;
                gives(self.function.type_of(args[0]))
            }
            Op::Array { element, init, len } => {
                self.wants(*init, Type::Scalar(*element))?;
                self.wants(*len, Type::INT)?;
                gives(Type::Array(*element))
            }
            Op::Free(array) => {
                self.wants_array(*array)?;
                gives_nothing()
            }
            Op::Len(array) => {
                self.wants_array(*array)?;
                gives(Type::INT)
            }
            Op::Bounds { index, len } => {
                self.wants(*index, Type::INT)?;
                self.wants(*len, Type::INT)?;
                gives_nothing()
            }
            Op::Load { element, array, index } => {
                self.wants(*array, Type::Array(*element))?;
                self.wants(*index, Type::INT)?;
                gives(Type::Scalar(*element))
            }
            Op::Store { element, array, index, value } => {
                self.wants(*array, Type::Array(*element))?;
                self.wants(*index, Type::INT)?;
                self.wants(*value, Type::Scalar(*element))?;
                gives_nothing()
            }
            Op::Call { callee, args } => {
                let Some(callee) = self.program.functions.get(*callee) else {
                    return Err(format!("the call goes to {callee}, which does not exist"));
                };
                if args.len() != callee.params.len() {
                    let (given, wanted, name) = (args.len(), callee.params.len(), &callee.name);
                    return Err(format!("the call of {name} has {given} arguments for {wanted} parameters"));
                }
                for (arg, param) in args.iter().zip(&callee.params) {
                    self.wants(*arg, callee.values[*param].ty)?;
                }
                match callee.result {
                    Some(ty) => may_give(Type::Scalar(ty)),
                    None => gives_nothing(),
                }
            }
            Op::Read => may_give(Type::INT),
            Op::Eof => may_give(Type::BOOL),
            Op::Print(args) => {
                for arg in args {
                    match arg {
                        PrintArg::Operand(operand) => match self.function.type_of(*operand) {
                            Type::Scalar(_) => {}
                            Type::Array(_) => return Err("an array cannot be printed".to_string()),
                        },
                        PrintArg::Str(string) => {
                            if self.program.strings.get(*string).is_none() {
                                return Err(format!("{string} does not exist"));
                            }
                        }
                    }
                }
                gives_nothing()
            }
            Op::Assert(cond) => {
                self.wants(*cond, Type::BOOL)?;
                gives_nothing()
            }
        }
    }

    fn wants(&self, operand: Operand, ty: Type) -> Result<(), String> {
        let found = self.function.type_of(operand);
        if found == ty {
            Ok(())
        } else {
            Err(format!("{} has the type {found} instead of {ty}", super::print::operand_text(operand)))
        }
    }

    fn wants_array(&self, operand: Operand) -> Result<(), String> {
        match self.function.type_of(operand) {
            Type::Array(_) => Ok(()),
            Type::Scalar(_) => Err(format!("{} is not an array", super::print::operand_text(operand))),
        }
    }

    fn terminator(&self, block: Block) -> Check {
        let function = self.function;
        let in_block = |message| Internal::new(block, message);
        match &function.blocks[block].term {
            Terminator::Branch { cond, .. } => self.wants(*cond, Type::BOOL).map_err(in_block)?,
            Terminator::Return(operand) => match (operand, function.result) {
                (Some(operand), Some(ty)) => self.wants(*operand, Type::Scalar(ty)).map_err(in_block)?,
                (None, None) => {}
                (Some(_), None) => return broken(block, "a value is returned by a function that gives none"),
                (None, Some(_)) => return broken(block, "no value is returned by a function that gives one"),
            },
            Terminator::Jump(_) | Terminator::Unreachable => {}
        }
        for edge in function.blocks[block].term.edges() {
            for (phi, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                self.wants(*arg, function.values[*phi].ty)
                    .map_err(|message| Internal::new(phi, format!("{message}, on the edge from {block}")))?;
            }
        }
        Ok(())
    }

    fn form_of_edges(&self, preds: &SecondaryMap<Block, Vec<Block>>) -> Check {
        if self.function.form != Form::SplitSsa {
            return Ok(());
        }
        for &block in &self.function.layout {
            let term = &self.function.blocks[block].term;
            for edge in term.edges().filter(|edge| !edge.args.is_empty()) {
                if matches!(term, Terminator::Branch { .. }) && preds[edge.target].len() > 1 {
                    return broken(block, format!("the edge to {} is critical and has arguments", edge.target));
                }
            }
        }
        Ok(())
    }

    /// Checks that what is read has been defined.
    fn reads(&self, preds: &SecondaryMap<Block, Vec<Block>>) -> Check {
        let function = self.function;
        let successors = |block: Block| function.blocks[block].term.edges().map(|edge| edge.target);
        let order = postorder::compute(function.entry(), successors);
        let tree = dominators::compute(&order, successors, |block| preds[block].iter().copied());
        let (writers, open) = self.open_reads();

        let mut nearest = Nearest::default();
        let mut families: SecondaryMap<Value, Family> = SecondaryMap::new();
        for value in function.values.keys() {
            let mut sites: Vec<Block> =
                writers[value].iter().copied().filter(|block| tree.is_reachable(*block)).collect();
            sites.sort_by_key(|block| tree.number(*block));
            families[value] =
                nearest.add(sites.iter().map(|block| (tree.number(*block), tree.last_number(*block), block.as_u32())));
        }
        let mut doubtful: Vec<&OpenRead> = Vec::new();
        for read in &open {
            if writers[read.value].is_empty() {
                return read.broken("nothing defines it");
            }
            if !tree.is_reachable(read.block) {
                continue;
            }
            let above = if read.edge.is_some() { Some(read.block) } else { tree.idom(read.block) };
            let defined =
                above.is_some_and(|block| nearest.closest(families[read.value], tree.number(block)).is_some());
            if defined {
                continue;
            }
            if function.form.is_ssa() {
                return read.broken(&match read.edge {
                    Some(_) => format!("its definition in {} does not dominate the edge", writers[read.value][0]),
                    None => format!("its definition in {} does not dominate the read", writers[read.value][0]),
                });
            }
            doubtful.push(read);
        }
        if doubtful.is_empty() { Ok(()) } else { doubtful_reads(&tree, preds, &writers, doubtful) }
    }

    /// For each value the blocks that write it, each once; and the reads that their block has not written before, the first
    /// one of each value and block, but each on an edge.
    fn open_reads(&self) -> (SecondaryMap<Value, Vec<Block>>, Vec<OpenRead>) {
        let function = self.function;
        let mut writers: SecondaryMap<Value, Vec<Block>> = SecondaryMap::new();
        let mut last_read: SecondaryMap<Value, Option<Block>> = SecondaryMap::new();
        let mut open = Vec::new();
        for &block in &function.layout {
            let data = &function.blocks[block];
            let write = |value: Value, writers: &mut SecondaryMap<Value, Vec<Block>>| {
                if writers[value].last() != Some(&block) {
                    writers[value].push(block);
                }
            };
            let mut read = |operand: Operand, edge: Option<Block>, writers: &SecondaryMap<Value, Vec<Block>>| {
                if let Operand::Value(value) = operand
                    && writers[value].last() != Some(&block)
                    && (edge.is_some() || last_read[value].replace(block) != Some(block))
                {
                    open.push(OpenRead { value, block, edge });
                }
            };
            if block == function.entry() {
                function.params.iter().for_each(|param| write(*param, &mut writers));
            }
            data.params.iter().for_each(|phi| write(*phi, &mut writers));
            for inst in &data.insts {
                function.insts[*inst].op.for_each_operand(|operand| read(operand, None, &writers));
                function.insts[*inst].for_each_def(|value| write(value, &mut writers));
            }
            if let Some(operand) = data.term.operand() {
                read(operand, None, &writers);
            }
            for edge in data.term.edges() {
                edge.args.iter().for_each(|arg| read(*arg, Some(edge.target), &writers));
            }
        }
        (writers, open)
    }
}

/// A read that its own block does not answer.
struct OpenRead {
    value: Value,
    block: Block,
    /// Where the edge goes whose argument it is.
    edge: Option<Block>,
}

impl OpenRead {
    fn broken(&self, why: &str) -> Check {
        let (value, block) = (self.value, self.block);
        match self.edge {
            Some(target) => {
                broken(value, format!("{value} is an argument on the edge from {block} to {target}, but {why}"))
            }
            None => broken(value, format!("{value} is read in {block}, but {why}")),
        }
    }
}

/// Decides reads above which no single definition stands: every way must have some definition.
fn doubtful_reads(
    tree: &Tree<Block>,
    preds: &SecondaryMap<Block, Vec<Block>>,
    writers: &SecondaryMap<Value, Vec<Block>>,
    mut reads: Vec<&OpenRead>,
) -> Check {
    let joins = Joins::compute(tree, |block| preds[block].iter().copied());
    let mut marks = SecondaryMap::new();
    reads.sort_by_key(|read| read.value);
    for group in reads.chunk_by(|a, b| a.value == b.value) {
        let reached = || writers[group[0].value].iter().copied().filter(|block| tree.is_reachable(*block));
        let meets = joins.iterated(reached(), &mut marks);
        // Sites are what may change what reaches a block: definitions, whose answer is 0, and meets, numbered from 1. A
        // block that is both has its definition at its end, its meet at its start.
        let mut sites: Vec<(u32, Block, u32)> = reached().map(|block| (tree.number(block), block, 0)).collect();
        sites.extend(meets.iter().enumerate().map(|(n, block)| (tree.number(*block), *block, n as u32 + 1)));
        sites.sort_unstable();
        sites.dedup_by_key(|(number, _, _)| *number);
        let mut nearest = Nearest::default();
        let at_end =
            nearest.add(sites.iter().map(|(number, block, answer)| (*number, tree.last_number(*block), *answer)));
        // What reaches the end of a block: a definition, a meet, or nothing.
        let reaches = |block: Block| nearest.closest(at_end, tree.number(block));

        // A meet is undefined if nothing, or an undefined meet, reaches the end of some predecessor.
        let mut undefined = vec![false; meets.len() + 1];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); meets.len() + 1];
        let mut work = Vec::new();
        for (n, block) in meets.iter().enumerate() {
            for pred in preds[*block].iter().filter(|pred| tree.is_reachable(**pred)) {
                match reaches(*pred) {
                    Some(0) => {}
                    Some(meet) => readers[meet as usize].push(n + 1),
                    None => work.push(n + 1),
                }
            }
        }
        while let Some(meet) = work.pop() {
            if !std::mem::replace(&mut undefined[meet], true) {
                work.extend(&readers[meet]);
            }
        }
        let meet_of: FxHashMap<Block, u32> = meets.iter().zip(1..).map(|(block, n)| (*block, n)).collect();
        for read in group {
            let meet = meet_of.get(&read.block).copied();
            let from = meet.or_else(|| tree.idom(read.block).and_then(&reaches));
            if from.is_none_or(|site| undefined[site as usize]) {
                return read.broken("some way there does not define it");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::super::random::{Shape, generate};
    use super::*;
    use crate::support::random::Random;
    use crate::support::span::Source;
    use cranelift_entity::EntityRef;

    fn read(text: &str) -> Program {
        parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
    }

    fn message(program: &Program) -> String {
        verify(program).expect_err("the program is wrong").to_string()
    }

    fn main_of(lines: &str) -> Program {
        read(&format!("fn main() {{\nb0:\n{lines}\n}}\n"))
    }

    const LOOP: &str = "fn main() {\nb0:\n%0 = read\njump b1\nb1:\n%1 = phi [%0 from b0, %2 from b2]\n%3 = bool %1 < 9\n\
                        branch %3 ? b2 : b3\nb2:\n%2 = int %1 + 1\njump b1\nb3:\nreturn\n}\n";

    #[test]
    fn ir14_three_different_errors() {
        let with = |change: fn(&mut Function)| {
            let mut program = read(LOOP);
            assert_eq!(verify(&program), Ok(()));
            change(&mut program.functions[FuncId::new(0)]);
            message(&program)
        };
        let missing =
            with(|function| function.blocks[Block::new(2)].term.edges_mut().for_each(|edge| edge.args.clear()));
        let expected =
            "the edge to b1 has 0 arguments for 1 φs: a φ lacks an operand or has one too many (function main, at b2)";
        assert_eq!(missing, expected);
        let deleted = with(|function| function.blocks[Block::new(0)].insts.clear());
        assert_eq!(
            deleted,
            "%0 is an argument on the edge from b0 to b1, but nothing defines it (function main, at %0)"
        );
        let not_dominating = with(|function| {
            let args = function.blocks[Block::new(0)].term.edges_mut().next().map(|edge| &mut edge.args);
            args.expect("b0 jumps")[0] = Operand::Value(Value::new(2));
        });
        let expected =
            "%2 is an argument on the edge from b0 to b1, but its definition in b2 does not dominate the edge";
        assert_eq!(not_dominating, format!("{expected} (function main, at %2)"));
    }

    #[test]
    fn types_are_checked() {
        for (lines, expected) in [
            ("%0 = eof\n%1 = int %0 + 1\nreturn", "%0 has the type bool instead of int"),
            ("%0 = bool 1 + 2\nreturn", "`+` does not work on bools"),
            ("%0 = bool true < false\nreturn", "`<` does not compare operands of type bool"),
            ("%0 = bool 1 == true\nreturn", "true has the type bool instead of int"),
            ("%0 = int of 3\nreturn", "3 has the type int instead of bool"),
            ("%0 = select 1 ? 2 : 3\nreturn", "1 has the type int instead of bool"),
            ("%0 = array int [true; 3]\nreturn", "true has the type bool instead of int"),
            ("%0 = array int [1; 3]\nprint %0\nreturn", "an array cannot be printed"),
            ("%0 = array int [1; 3]\nstore bool %0[1] = true\nreturn", "%0 has the type [int] instead of [bool]"),
            ("free 3\nreturn", "3 is not an array"),
            ("len 3\nreturn", "3 is not an array"),
            ("assert 3\nreturn", "3 has the type int instead of bool"),
            ("int 1 + 2\nreturn", "the instruction lacks a result"),
            ("call main(3)\nreturn", "the call of main has 1 arguments for 0 parameters"),
            ("branch 1 ? b1 : b1\nb1:\nreturn", "1 has the type int instead of bool"),
            ("return 1", "a value is returned by a function that gives none"),
            (
                "jump b1\nb1:\n%0 = phi [true from b0]\nreturn",
                "true has the type bool instead of int, on the edge from b0",
            ),
        ] {
            let found = message(&main_of(lines));
            assert!(found.starts_with(expected), "{found}");
        }
        let f = "fn f(%0: int) -> bool {\nb0:\nreturn %0\n}\nfn main() {\nb0:\nreturn\n}";
        assert!(message(&read(f)).contains("%0 has the type int instead of bool (function f, at b0)"));
    }

    #[test]
    fn each_form_forbids_what_it_must() {
        let in_form = |form: Form, lines: &str| {
            let program = read(&format!("form {}\nfn main() {{\nb0:\n{lines}\n}}\n", form.name()));
            verify(&program).err().map(|error| error.message)
        };
        let twice = "%0 = copy 1\n%0 = copy 2\nreturn";
        assert_eq!(in_form(Form::Variables, twice), None);
        assert_eq!(in_form(Form::Ssa, twice).as_deref(), Some("%0 has two definitions in SSA form"));
        let phi = "jump b1\nb1:\n%0 = phi [1 from b0]\nreturn";
        assert_eq!(in_form(Form::SplitSsa, phi), None);
        assert_eq!(in_form(Form::Sequenced, phi).as_deref(), Some("a φ (%0) in the form `sequenced`"));
        let critical = "%1 = eof\nbranch %1 ? b1 : b2\nb1:\n%0 = phi [1 from b0, 2 from b2]\nreturn\nb2:\njump b1";
        assert_eq!(in_form(Form::Ssa, critical), None);
        assert_eq!(in_form(Form::SplitSsa, critical).as_deref(), Some("the edge to b1 is critical and has arguments"));
        let parallel = "print 5\nparallel %0 = 1\nprint %0\nreturn";
        let expected = "a parallel copy stands neither first nor last in its block";
        assert_eq!(in_form(Form::ParallelCopies, parallel).as_deref(), Some(expected));
        let on_edges = "parallel %0 = 1\njump b1\nb1:\nparallel %0 = 2\nprint %0\nreturn";
        assert_eq!(in_form(Form::ParallelCopies, on_edges), None);
        assert_eq!(in_form(Form::Sequenced, on_edges).as_deref(), Some("a parallel copy in the form `sequenced`"));
        let doubled = "parallel %0 = 1, %0 = 2\njump b1\nb1:\nreturn";
        assert_eq!(in_form(Form::ParallelCopies, doubled).as_deref(), Some("a parallel copy writes %0 twice"));
        let entered = "jump b0";
        assert_eq!(in_form(Form::Ssa, entered).as_deref(), Some("the entry has a predecessor, b0"));
        let backwards = "%0 = copy %1\n%1 = copy 2\nreturn";
        assert!(in_form(Form::Ssa, backwards).is_some_and(|message| message.contains("does not dominate the read")));
        assert!(in_form(Form::Variables, backwards).is_some_and(|message| message.contains("some way there")));
    }

    #[test]
    fn broken_records_are_errors_and_not_panics() {
        type Change = fn(&mut Function);
        let breaks: [(&str, Change); 5] = [
            ("twice", |f| f.layout.push(Block::new(1))),
            ("not in the layout", |f| f.layout.retain(|block| *block != Block::new(3))),
            ("no blocks", |f| f.layout.clear()),
            ("does not exist", |f| {
                f.blocks[Block::new(0)].term = Terminator::Return(Some(Operand::Value(Value::new(99))))
            }),
            ("two places", |f| {
                let inst = f.blocks[Block::new(0)].insts[0];
                f.blocks[Block::new(3)].insts.push(inst);
            }),
        ];
        for (expected, change) in breaks {
            let mut program = read(LOOP);
            change(&mut program.functions[FuncId::new(0)]);
            assert!(message(&program).contains(expected));
        }
    }

    #[test]
    fn a_way_without_a_definition_is_followed_through_joins() {
        let text = |first: &str| {
            format!(
                "form variables\nfn main() {{\nb0:\n%1 = eof\nbranch %1 ? b1 : b2\nb1:\n%0 = copy 1\njump b3\n\
                 b2:\n{first}jump b3\nb3:\nbranch %1 ? b4 : b5\nb4:\n%0 = copy 2\njump b6\nb5:\njump b6\n\
                 b6:\nprint %0\nreturn\n}}"
            )
        };
        assert_eq!(verify(&read(&text("%0 = copy 3\n"))), Ok(()));
        assert!(message(&read(&text(""))).starts_with("%0 is read in b6, but some way there does not define it"));
    }

    /// Forward dataflow over sets: is each read defined on every way? The textbook's method, quadratic.
    fn slow_definite(function: &Function) -> bool {
        let count = function.values.len();
        let mut at_end: SecondaryMap<Block, Option<Vec<bool>>> = SecondaryMap::new();
        let mut ok = true;
        // Optimistic: a block not seen yet defines everything.
        for round in 0.. {
            let before = at_end.clone();
            ok = true;
            for &block in &function.layout {
                let mut defined: Option<Vec<bool>> = (block == function.entry()).then(|| vec![false; count]);
                for pred in &function.layout {
                    if function.blocks[*pred].term.edges().any(|edge| edge.target == block)
                        && let Some(other) = &at_end[*pred]
                    {
                        let defined = defined.get_or_insert_with(|| vec![true; count]);
                        defined.iter_mut().zip(other).for_each(|(own, other)| *own &= other);
                    }
                }
                let Some(mut defined) = defined else { continue };
                if block == function.entry() {
                    function.params.iter().for_each(|param| defined[param.index()] = true);
                }
                let data = &function.blocks[block];
                for inst in &data.insts {
                    let read = |operand: Operand| operand.value().is_none_or(|value| defined[value.index()]);
                    function.insts[*inst].op.for_each_operand(|operand| ok &= read(operand));
                    function.insts[*inst].for_each_def(|value| defined[value.index()] = true);
                }
                data.term.for_each_operand(|operand| ok &= operand.value().is_none_or(|value| defined[value.index()]));
                at_end[block] = Some(defined);
            }
            assert!(round < 1000);
            if format!("{before:?}") == format!("{at_end:?}") {
                break;
            }
        }
        ok
    }

    #[test]
    fn definite_assignment_agrees_with_dataflow() {
        let mut random = Random::new(5);
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..400 {
            // Programs over variables: φs are dropped, values joined and instructions removed at random.
            let shape = if seed % 2 == 0 { Shape::tiny() } else { Shape { fuel: 3, ..Shape::webs() } };
            let mut program = generate(seed, &shape);
            let join = random.between(1, 12);
            let percent = random.below(10);
            let cut = random.chance(50);
            for function in program.functions.values_mut() {
                function.form = Form::Variables;
                let types: Vec<Type> = function.values.values().map(|value| value.ty).collect();
                let merge = |value: Value| {
                    let target = value.index() / join * join;
                    if types[target] == types[value.index()] { Value::new(target) } else { value }
                };
                let change = |operand: &mut Operand| {
                    if let Operand::Value(value) = operand {
                        *value = merge(*value);
                    }
                };
                for block in function.layout.clone() {
                    function.blocks[block].term.for_each_operand_mut(change);
                    function.blocks[block].term.edges_mut().for_each(|edge| edge.args.clear());
                    // Each φ becomes a definition at the start of its block, or none at all.
                    let phis = std::mem::take(&mut function.blocks[block].params);
                    let mut insts = std::mem::take(&mut function.blocks[block].insts);
                    insts.retain(|_| !random.chance(percent));
                    for inst in &insts {
                        function.insts[*inst].op.for_each_operand_mut(change);
                        function.insts[*inst].result = function.insts[*inst].result.expand().map(merge).into();
                    }
                    for phi in phis.into_iter().filter(|_| !cut || random.chance(90)) {
                        let source = match function.values[phi].ty {
                            Type::Scalar(Scalar::Int) => Operand::Int(0),
                            Type::Scalar(Scalar::Bool) => Operand::Bool(false),
                            Type::Array(_) => continue,
                        };
                        insts.insert(
                            0,
                            function.make_inst(Op::Copy(source), Some(merge(phi)), crate::support::span::Span::NONE),
                        );
                    }
                    function.blocks[block].insts = insts;
                }
            }
            for (id, function) in &program.functions {
                let found = verify_function(&program, id);
                let never = found.as_ref().err().is_some_and(|error| error.message.contains("nothing defines it"));
                let expected = slow_definite(function);
                // A value that nothing defines is an error even where only unreachable blocks read it.
                if !never {
                    assert_eq!(found.is_ok(), expected, "seed {seed}: {found:?}");
                }
                if expected { right += 1 } else { wrong += 1 }
            }
        }
        assert!(right > 50 && wrong > 50, "{right} right and {wrong} wrong programs");
    }
}
