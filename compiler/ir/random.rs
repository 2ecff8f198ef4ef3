//! Makes random programs in SSA form, for tests: the same seed and shape give the same program.
//!
//! A function's graph is drawn first: forward and backward edges (loops, also irreducible ones), self loops, branches whose
//! two edges go to one block, critical edges, blocks that nothing reaches. Blocks with several edges in get φs of random
//! types. Blocks are filled in an order in which dominators come first, with operands from the block or its dominators; at
//! last the edges get arguments, often a permutation of the target's own φs, so that swaps and rotations arise.
//!
//! Every run ends: each cycle has a block that counts down and leaves when the count is used up. Where blocks join, the
//! count is a φ; a callee gets less than half of the caller's. How much work a run does before it ends is random all the
//! same, so run it under limits.
//!
//! ```text
//! b3: ; block preds=b2,b3,b5
//!   %9 = phi fuel [%4 from b2, %12 from b3, %4 from b5]
//!   %10 = phi x2 [7 from b2, %11 from b3, %6 from b5]
//!   %11 = phi x0 [%5 from b2, %10 from b3, %10 from b5]
//!   %12 = int %9 - 1
//!   %13 = bool %12 > 0
//!   branch %13 ? b3 : b6
//! ```
//!
//! **in**: nothing. **out**: a program in [`Form::Ssa`] that the verifier accepts; spans start at distinct offsets and have
//! positions. Its body reads no input unless the shape says so. Cost: blocks times instructions, and quadratic in a
//! function's blocks for dominators, which keeps this free of the code that it tests.

use super::types::*;
use crate::graph::random::{self, Graph};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use crate::support::random::Random;
use crate::support::span::{Position, Positions, Span};
use cranelift_entity::{EntityRef, PrimaryMap};

/// What kind of program to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Functions besides the body, at most.
    pub functions: usize,
    /// Blocks of a function besides its entry and exit, at most; at least 1.
    pub blocks: usize,
    /// Instructions of a block, at most.
    pub insts: usize,
    /// φs of a block besides the count, at most.
    pub phis: usize,
    /// What the body's count starts from.
    pub fuel: i64,
    /// Make, read and write arrays.
    pub arrays: bool,
    /// Divide by anything, index anywhere, assert anything: most runs end in a run-time error.
    pub traps: bool,
    /// Read standard input.
    pub input: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { functions: 2, blocks: 12, insts: 6, phis: 4, fuel: 30, arrays: true, traps: false, input: false }
    }
}

impl Shape {
    /// One function whose blocks have many φs and little else.
    pub fn webs() -> Shape {
        Shape { functions: 0, blocks: 16, insts: 2, phis: 9, arrays: false, ..Shape::default() }
    }

    /// Long blocks, so that many values live at once.
    pub fn pressure() -> Shape {
        Shape { functions: 1, blocks: 6, insts: 40, phis: 12, ..Shape::default() }
    }

    /// Programs that fit on a screen.
    pub fn tiny() -> Shape {
        Shape { functions: 1, blocks: 4, insts: 3, phis: 3, fuel: 6, ..Shape::default() }
    }
}

/// What callers need to know of a function before its body is drawn.
struct Signature {
    params: Vec<Type>,
    result: Option<Scalar>,
}

/// The program that the choices (a seed, usually) and the shape decide.
pub fn generate(choices: impl Into<Random>, shape: &Shape) -> Program {
    let mut random = choices.into();
    let mut signatures = vec![Signature { params: Vec::new(), result: None }];
    for _ in 0..random.below(shape.functions + 1) {
        // The first parameter is the count.
        let mut params = vec![Type::INT];
        for _ in 0..random.below(9) {
            params.push(random_type(&mut random, shape, true));
        }
        let result = random.pick(&[None, Some(Scalar::Int), Some(Scalar::Int), Some(Scalar::Bool)]);
        signatures.push(Signature { params, result });
    }
    let mut strings = PrimaryMap::new();
    for text in ["", "x = ", "é\t\"\\"] {
        strings.push(text.to_string());
    }
    let mut spans = 0;
    let mut functions = PrimaryMap::new();
    for number in 0..signatures.len() {
        let mut maker = Maker::new(&mut random, shape, &signatures, number, &mut spans, strings.len());
        maker.find_dominators();
        maker.fill();
        functions.push(maker.function);
    }
    let pairs = (0..spans).map(|start| (start, Position { line: start / 8 + 1, column: start % 8 * 5 + 1 })).collect();
    Program { functions, entry: FuncId::new(0), strings, positions: Positions::of_pairs(pairs) }
}

fn random_type(random: &mut Random, shape: &Shape, parameter: bool) -> Type {
    match random.below(10) {
        0..=6 => Type::INT,
        7 | 8 => Type::BOOL,
        _ if shape.arrays && (parameter || random.chance(50)) => {
            Type::Array(random.pick(&[Scalar::Int, Scalar::Int, Scalar::Bool]))
        }
        _ => Type::INT,
    }
}

/// One function on its way.
struct Maker<'a> {
    random: &'a mut Random,
    shape: &'a Shape,
    signatures: &'a [Signature],
    signature: &'a Signature,
    /// The offset that the next span starts at.
    spans: &'a mut u32,
    strings: usize,
    function: Function,
    /// Targets of each block, by number; the last block is the exit.
    targets: Vec<Vec<usize>>,
    /// Blocks that count down: targets of edges that do not go forward.
    headers: Vec<bool>,
    /// The immediate dominator of each block that is reached.
    idoms: Vec<Option<usize>>,
    /// Reached blocks, dominators first; then the others.
    order: Vec<usize>,
    /// The values that each block defines.
    defined: Vec<Vec<Value>>,
    /// The count at the end of each block.
    fuel: Vec<Operand>,
    /// Arrays made in the entry, in order: they end before each return.
    made: Vec<Value>,
    variables: Vec<Variable>,
}

impl<'a> Maker<'a> {
    fn new(
        random: &'a mut Random,
        shape: &'a Shape,
        signatures: &'a [Signature],
        number: usize,
        spans: &'a mut u32,
        strings: usize,
    ) -> Maker<'a> {
        let name = if number == 0 { "main".to_string() } else { format!("f{number}") };
        let signature = &signatures[number];
        let mut function = Function::new(name, Form::Ssa);
        function.result = signature.result;
        let variables = ["fuel", "x", "y", "flag"];
        let types = [Type::INT, Type::INT, Type::INT, Type::BOOL];
        let variables = variables
            .into_iter()
            .zip(types)
            .map(|(name, ty)| function.variables.push(VariableData { name: name.to_string(), ty, span: Span::NONE }))
            .collect();
        let Graph { targets, headers } = random::draw(random, shape.blocks);
        Maker {
            random,
            shape,
            signatures,
            signature,
            spans,
            strings,
            function,
            targets,
            headers,
            idoms: Vec::new(),
            order: Vec::new(),
            defined: Vec::new(),
            fuel: Vec::new(),
            made: Vec::new(),
            variables,
        }
    }

    /// Dominators as sets, by iteration to the fixed point.
    fn find_dominators(&mut self) {
        let count = self.targets.len();
        let mut order = Vec::new();
        let mut seen = vec![false; count];
        let mut work = vec![(0, 0)];
        seen[0] = true;
        while let Some((block, next)) = work.pop() {
            if let Some(target) = self.targets[block].get(next).copied() {
                work.push((block, next + 1));
                if !seen[target] {
                    seen[target] = true;
                    work.push((target, 0));
                }
            } else {
                order.push(block);
            }
        }
        order.reverse();
        let mut dominators = vec![vec![true; count]; count];
        dominators[0] = vec![false; count];
        dominators[0][0] = true;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &order[1..] {
                let mut meet = vec![true; count];
                for &pred in &order {
                    if self.targets[pred].contains(&block) {
                        meet.iter_mut().zip(&dominators[pred]).for_each(|(bit, other)| *bit &= other);
                    }
                }
                meet[block] = true;
                changed |= meet != dominators[block];
                dominators[block] = meet;
            }
        }
        // The immediate dominator is the strict dominator that itself has the most dominators.
        self.idoms = vec![None; count];
        let size = |block: usize| dominators[block].iter().filter(|bit| **bit).count();
        for &block in &order[1..] {
            let strict = (0..count).filter(|other| *other != block && dominators[block][*other]);
            self.idoms[block] = strict.max_by_key(|other| size(*other));
        }
        order.extend((0..count).filter(|block| !seen[*block]));
        self.order = order;
    }

    // ---- contents ----

    fn fill(&mut self) {
        let count = self.targets.len();
        for block in 0..count {
            let role = if block == 0 { Role::Entry } else { Role::Other };
            let made = self.function.make_block(role);
            self.function.layout.push(made);
        }
        self.defined = vec![Vec::new(); count];
        self.fuel = vec![Operand::Int(1); count];
        let mut edges_in = vec![0; count];
        self.targets.iter().flatten().for_each(|target| edges_in[*target] += 1);
        for (index, ty) in self.signature.params.iter().enumerate() {
            let variable = (index == 0).then(|| self.variables[0]);
            let value = self.function.make_value(*ty, variable);
            self.function.params.push(value);
            self.defined[0].push(value);
        }
        for block in self.order.clone() {
            self.start(block, edges_in[block]);
            self.body(block);
            self.end(block);
        }
        for block in 0..count {
            self.arguments(block);
        }
    }

    /// Draws the φs, and says what the count is.
    fn start(&mut self, block: usize, edges_in: usize) {
        let id = Block::new(block);
        if block == 0 {
            let param = self.function.params.first().copied();
            self.fuel[0] = param.map_or(Operand::Int(self.shape.fuel), Operand::Value);
        } else if edges_in == 1 && self.idoms[block].is_some() {
            self.fuel[block] = self.fuel[self.idoms[block].expect("it was asked for just now")];
        } else if edges_in > 0 {
            let value = self.function.make_value(Type::INT, Some(self.variables[0]));
            self.function.blocks[id].params.push(value);
            self.defined[block].push(value);
            self.fuel[block] = value.into();
        }
        if edges_in > 1 || edges_in == 1 && self.random.chance(30) {
            for _ in 0..self.random.below(self.shape.phis + 1) {
                let ty = random_type(self.random, self.shape, false);
                let variable = self.random.chance(60).then(|| self.random.between(1, 3));
                let variable = variable.map(|index| self.variables[index]);
                let variable = variable.filter(|variable| self.function.variables[*variable].ty == ty);
                let value = self.function.make_value(ty, variable);
                self.function.blocks[id].params.push(value);
                self.defined[block].push(value);
            }
        }
    }

    fn body(&mut self, block: usize) {
        if block == 0 {
            self.make_arrays();
        }
        if self.headers[block] {
            let op = Op::Binary { op: BinaryOp::Sub, ty: Scalar::Int, args: [self.fuel[block], Operand::Int(1)] };
            self.fuel[block] = self.push(block, op, Some(Type::INT));
        }
        self.show_phis(block);
        for _ in 0..self.random.below(self.shape.insts + 1) {
            self.instruction(block);
        }
    }

    /// Prints some of the φs, so that few of them are dead.
    fn show_phis(&mut self, block: usize) {
        let params = &self.function.blocks[Block::new(block)].params;
        let scalar = |value: &Value| matches!(self.function.values[*value].ty, Type::Scalar(_));
        let mut shown: Vec<Value> = params.iter().copied().filter(scalar).collect();
        if shown.is_empty() || self.random.chance(50) {
            return;
        }
        self.random.shuffle(&mut shown);
        shown.truncate(4);
        let args = shown.into_iter().map(|value| PrintArg::Operand(value.into())).collect();
        self.push(block, Op::Print(args), None);
    }

    /// Arrays that live as long as the call.
    fn make_arrays(&mut self) {
        if !self.shape.arrays {
            return;
        }
        for _ in 0..self.random.below(3) {
            let element = self.random.pick(&[Scalar::Int, Scalar::Int, Scalar::Bool]);
            let init = self.operand(0, Type::Scalar(element));
            // Mostly powers of two, so that a mask keeps indices in bounds.
            let shortest = if self.shape.traps { 0 } else { 1 };
            let len = Operand::Int(self.random.pick(&[1, 2, 4, 8, 8, 3, shortest]));
            let array = self.push(0, Op::Array { element, init, len }, Some(Type::Array(element)));
            self.made.push(array.value().expect("instructions give values"));
        }
    }

    fn instruction(&mut self, block: usize) {
        match self.random.below(100) {
            0..=34 => self.binary(block),
            35..=44 => {
                let ty = if self.random.chance(80) { Type::INT } else { Type::BOOL };
                let args = [self.operand(block, ty), self.operand(block, ty)];
                let op = match ty {
                    Type::Scalar(Scalar::Bool) => self.random.pick(&[CompareOp::Eq, CompareOp::Ne]),
                    Type::Scalar(Scalar::Int) | Type::Array(_) => self.random.pick(&CompareOp::ALL),
                };
                self.push(block, Op::Compare { op, args }, Some(Type::BOOL));
            }
            45..=52 => {
                let op = self.random.pick(&[UnaryOp::Neg, UnaryOp::BitNot, UnaryOp::Not, UnaryOp::IntOfBool]);
                let arg = self.operand(block, Type::Scalar(op.operand()));
                self.push(block, Op::Unary { op, arg }, Some(Type::Scalar(op.result())));
            }
            53..=58 => {
                let ty = if self.random.chance(80) { Type::INT } else { Type::BOOL };
                let cond = self.operand(block, Type::BOOL);
                let args = [self.operand(block, ty), self.operand(block, ty)];
                self.push(block, Op::Select { cond, args }, Some(ty));
            }
            59..=62 => {
                let ty = random_type(self.random, self.shape, false);
                if let Some(value) = self.visible(block, ty) {
                    self.push(block, Op::Copy(value.into()), Some(ty));
                }
            }
            63..=76 => self.array_access(block),
            77..=80 => self.short_lived_array(block),
            81..=85 => self.call(block),
            86..=93 => {
                let args = (0..self.random.below(4)).map(|_| self.print_arg(block)).collect();
                self.push(block, Op::Print(args), None);
            }
            94..=96 => {
                let cond = if self.shape.traps && self.random.chance(30) {
                    self.operand(block, Type::BOOL)
                } else {
                    let value = self.operand(block, Type::INT);
                    let op = Op::Compare { op: CompareOp::Le, args: [value, Operand::Int(i64::MAX)] };
                    self.push(block, op, Some(Type::BOOL))
                };
                self.push(block, Op::Assert(cond), None);
            }
            _ if self.shape.input => {
                self.push(block, Op::Eof, Some(Type::BOOL));
                self.push(block, Op::Read, Some(Type::INT));
            }
            _ => self.binary(block),
        }
    }

    fn binary(&mut self, block: usize) {
        let op = self.random.pick(&BinaryOp::ALL);
        let logic = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
        let scalar = if logic && self.random.chance(50) { Scalar::Bool } else { Scalar::Int };
        let ty = Type::Scalar(scalar);
        let mut args = [self.operand(block, ty), self.operand(block, ty)];
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        if divides && !(self.shape.traps && self.random.chance(30)) && args[1].constant().is_none_or(|c| c == 0) {
            // `x | 1` is never 0, and may well be -1.
            let odd = Op::Binary { op: BinaryOp::Or, ty: scalar, args: [args[1], Operand::Int(1)] };
            args[1] = self.push(block, odd, Some(ty));
        }
        self.push(block, Op::Binary { op, ty: scalar, args }, Some(ty));
    }

    /// A bounds check with the access that it guards.
    fn array_access(&mut self, block: usize) {
        let element = self.random.pick(&[Scalar::Int, Scalar::Int, Scalar::Bool]);
        let Some(array) = self.visible(block, Type::Array(element)) else { return self.binary(block) };
        let array = Operand::Value(array);
        let len = self.push(block, Op::Len(array), Some(Type::INT));
        let wild = self.shape.traps && self.random.chance(20);
        let index = self.operand(block, Type::INT);
        let index = if wild {
            index
        } else {
            // In bounds for arrays whose length is a power of two; `len - 1` masks all others short of their end.
            let less = Op::Binary { op: BinaryOp::Sub, ty: Scalar::Int, args: [len, Operand::Int(1)] };
            let mask = self.push(block, less, Some(Type::INT));
            self.push(block, Op::Binary { op: BinaryOp::And, ty: Scalar::Int, args: [index, mask] }, Some(Type::INT))
        };
        self.push(block, Op::Bounds { index, len }, None);
        if self.random.chance(50) {
            self.push(block, Op::Load { element, array, index }, Some(Type::Scalar(element)));
        } else {
            let value = self.operand(block, Type::Scalar(element));
            self.push(block, Op::Store { element, array, index, value }, None);
        }
    }

    /// An array that ends in the block that makes it. It is not visible elsewhere.
    fn short_lived_array(&mut self, block: usize) {
        if !self.shape.arrays {
            return self.binary(block);
        }
        let element = self.random.pick(&[Scalar::Int, Scalar::Bool]);
        let init = self.operand(block, Type::Scalar(element));
        let count = self.operand(block, Type::INT);
        let len = if self.shape.traps && self.random.chance(10) {
            count
        } else {
            self.push(
                block,
                Op::Binary { op: BinaryOp::And, ty: Scalar::Int, args: [count, Operand::Int(7)] },
                Some(Type::INT),
            )
        };
        let array = self.push(block, Op::Array { element, init, len }, Some(Type::Array(element)));
        self.push(block, Op::Len(array), Some(Type::INT));
        self.push(block, Op::Free(array), None);
        // Nothing may read it from here on.
        let value = array.value().expect("instructions give values");
        self.defined[block].retain(|other| *other != value);
    }

    fn call(&mut self, block: usize) {
        // Entry and exit run even when the count is used up, so only the program's body may call from there.
        let outer = block == 0 && !self.signature.params.is_empty() || block + 1 == self.targets.len();
        if self.signatures.len() < 2 || outer {
            return self.binary(block);
        }
        let number = self.random.between(1, self.signatures.len() - 1);
        let signatures = self.signatures;
        let signature = &signatures[number];
        if signature.params.iter().any(|ty| matches!(ty, Type::Array(_)) && self.visible(block, *ty).is_none()) {
            return self.binary(block);
        }
        let less = Op::Binary { op: BinaryOp::Sub, ty: Scalar::Int, args: [self.fuel[block], Operand::Int(1)] };
        let less = self.push(block, less, Some(Type::INT));
        let half = Op::Binary { op: BinaryOp::Shr, ty: Scalar::Int, args: [less, Operand::Int(1)] };
        let mut args = vec![self.push(block, half, Some(Type::INT))];
        for ty in &signature.params[1..] {
            args.push(self.operand(block, *ty));
        }
        self.push(block, Op::Call { callee: FuncId::new(number), args }, signature.result.map(Type::Scalar));
    }

    fn print_arg(&mut self, block: usize) -> PrintArg {
        if self.random.chance(20) {
            return PrintArg::Str(StrId::new(self.random.below(self.strings)));
        }
        let ty = if self.random.chance(70) { Type::INT } else { Type::BOOL };
        PrintArg::Operand(self.operand(block, ty))
    }

    fn end(&mut self, block: usize) {
        let exit = self.targets.len() - 1;
        let span = self.span();
        let term = match self.targets[block].as_slice() {
            [] if block != exit && self.idoms[block].is_none() => Terminator::Unreachable,
            [] => {
                let result = self.signature.result.map(|scalar| self.operand(block, Type::Scalar(scalar)));
                if self.signature.result.is_none() {
                    let args = vec![self.print_arg(block), self.print_arg(block)];
                    self.push(block, Op::Print(args), None);
                }
                if self.idoms[block].is_some() {
                    for array in self.made.clone().into_iter().rev() {
                        self.push(block, Op::Free(array.into()), None);
                    }
                }
                Terminator::Return(result)
            }
            [target] => Terminator::Jump(Edge::to(Block::new(*target))),
            [then, els] => {
                let (then, els) = (Edge::to(Block::new(*then)), Edge::to(Block::new(*els)));
                let cond = if block == 0 || self.headers[block] {
                    let op = Op::Compare { op: CompareOp::Gt, args: [self.fuel[block], Operand::Int(0)] };
                    self.push(block, op, Some(Type::BOOL))
                } else {
                    self.operand(block, Type::BOOL)
                };
                Terminator::Branch { cond, then, els }
            }
            more => panic!("a block has {} targets", more.len()),
        };
        let data = &mut self.function.blocks[Block::new(block)];
        data.term = term;
        data.term_span = span;
    }

    /// Gives every edge out of the block its arguments.
    fn arguments(&mut self, block: usize) {
        let id = Block::new(block);
        let edges = self.function.blocks[id].term.edges().count();
        for edge in 0..edges {
            let target = self.targets[block][edge];
            let params = self.function.blocks[Block::new(target)].params.clone();
            let permute = self.dominates(target, block) && self.random.chance(60);
            let mut shuffled = params.clone();
            self.random.shuffle(&mut shuffled);
            let mut args = Vec::with_capacity(params.len());
            for param in &params {
                let ty = self.function.values[*param].ty;
                let variable = self.function.values[*param].variable.expand();
                if variable == Some(self.variables[0]) {
                    args.push(self.fuel[block]);
                    continue;
                }
                let own = shuffled.iter().position(|other| self.function.values[*other].ty == ty);
                args.push(match own {
                    // Most arguments are φs of the target itself, each used once: a permutation.
                    Some(own) if permute && self.random.chance(85) => Operand::Value(shuffled.remove(own)),
                    Some(_) | None => self.operand(block, ty),
                });
            }
            let mut term = self.function.blocks[id].term.clone();
            term.edges_mut().nth(edge).expect("the edge was counted").args = args;
            self.function.blocks[id].term = term;
        }
    }

    // ---- parts ----

    fn dominates(&self, dominator: usize, block: usize) -> bool {
        let mut at = block;
        loop {
            if at == dominator {
                return true;
            }
            match self.idoms[at] {
                Some(idom) => at = idom,
                None => return false,
            }
        }
    }

    /// An operand of the type that may be read in the block as it stands. An array must be visible or about to be: an
    /// array of one element is made in the entry where none is.
    fn operand(&mut self, block: usize, ty: Type) -> Operand {
        if self.random.chance(80)
            && let Some(value) = self.visible(block, ty)
        {
            return value.into();
        }
        match ty {
            Type::Scalar(Scalar::Int) => Operand::Int(self.random.integer()),
            Type::Scalar(Scalar::Bool) => Operand::Bool(self.random.chance(50)),
            Type::Array(element) => match self.visible(block, ty) {
                Some(value) => value.into(),
                None => self.fallback_array(block, element),
            },
        }
    }

    /// An array for where none is visible: made in the entry if that dominates the block, else in the block itself, which
    /// then is not reached.
    fn fallback_array(&mut self, block: usize, element: Scalar) -> Operand {
        let home = if self.dominates(0, block) { 0 } else { block };
        let init = Operand::from_constant(element, 1);
        let value = self.function.make_value(Type::Array(element), None);
        let span = self.span();
        let inst = self.function.make_inst(Op::Array { element, init, len: Operand::Int(1) }, Some(value), span);
        // First of all, so that it is made before, and so ends after, all others.
        self.function.blocks[Block::new(home)].insts.insert(0, inst);
        self.defined[home].push(value);
        if home == 0 {
            self.made.insert(0, value);
            // Returns that are already written must free it too, last.
            for returning in 0..self.targets.len() {
                let id = Block::new(returning);
                if self.idoms[returning].is_some() && matches!(self.function.blocks[id].term, Terminator::Return(_)) {
                    let span = self.span();
                    let free = self.function.make_inst(Op::Free(value.into()), None, span);
                    self.function.blocks[id].insts.push(free);
                }
            }
        }
        value.into()
    }

    /// A random value of the type that the block or a dominator has defined so far.
    fn visible(&mut self, block: usize, ty: Type) -> Option<Value> {
        for _ in 0..4 {
            let mut at = block;
            for _ in 0..self.random.below(6) {
                at = self.idoms[at].unwrap_or(at);
            }
            if !self.defined[at].is_empty() {
                let value = self.random.pick(&self.defined[at]);
                if self.function.values[value].ty == ty {
                    return Some(value);
                }
            }
        }
        // Luck failed: look at all, nearest first.
        let mut at = Some(block);
        while let Some(here) = at {
            if let Some(value) = self.defined[here].iter().rev().find(|value| self.function.values[**value].ty == ty) {
                return Some(*value);
            }
            at = self.idoms[here];
        }
        None
    }

    /// Appends an instruction; gives its result as an operand (or a constant without meaning if it has none).
    fn push(&mut self, block: usize, op: Op, ty: Option<Type>) -> Operand {
        let value = ty.map(|ty| self.function.make_value(ty, None));
        let span = self.span();
        let inst = self.function.make_inst(op, value, span);
        self.function.blocks[Block::new(block)].insts.push(inst);
        self.defined[block].extend(value);
        value.map_or(Operand::Int(0), Operand::Value)
    }

    fn span(&mut self) -> Span {
        *self.spans += 1;
        Span { start: *self.spans - 1, end: *self.spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_program() {
        for seed in 0..20u64 {
            assert_eq!(generate(seed, &Shape::default()), generate(seed, &Shape::default()));
        }
        assert_ne!(generate(1, &Shape::default()), generate(2, &Shape::default()));
    }

    /// The generator must not grow tame unseen: over some seeds, every thing that it promises has to occur.
    #[test]
    fn every_feature_occurs() {
        let (mut self_loops, mut twins, mut critical, mut dead, mut swaps, mut kinds) = (0, 0, 0, 0, 0, Vec::new());
        let shape = Shape { traps: true, input: true, ..Shape::default() };
        for seed in 0..200u64 {
            let program = generate(seed, &shape);
            for function in program.functions.values() {
                let mut edges_in = vec![0; function.blocks.len()];
                for block in &function.layout {
                    for edge in function.blocks[*block].term.edges() {
                        edges_in[edge.target.index()] += 1;
                    }
                }
                for block in &function.layout {
                    let data = &function.blocks[*block];
                    kinds.extend(data.insts.iter().map(|inst| std::mem::discriminant(&function.insts[*inst].op)));
                    kinds.sort_by_key(|kind| format!("{kind:?}"));
                    kinds.dedup();
                    dead += usize::from(edges_in[block.index()] == 0 && *block != function.entry());
                    let targets: Vec<Block> = data.term.edges().map(|edge| edge.target).collect();
                    self_loops += usize::from(targets.contains(block));
                    twins += usize::from(targets.len() == 2 && targets[0] == targets[1]);
                    for edge in data.term.edges() {
                        let target = &function.blocks[edge.target];
                        critical += usize::from(targets.len() == 2 && edges_in[edge.target.index()] > 1);
                        let position = |value: Value| target.params.iter().position(|param| *param == value);
                        let source = |index: usize| edge.args[index].value().and_then(position);
                        swaps += (0..edge.args.len())
                            .filter(|index| {
                                source(*index).is_some_and(|other| other != *index && source(other) == Some(*index))
                            })
                            .count();
                    }
                }
            }
        }
        for count in [self_loops, twins, critical, dead, swaps] {
            assert!(count >= 20, "{:?}", [self_loops, twins, critical, dead, swaps]);
        }
        // All kinds of instructions but `parallel`, which SSA does not have.
        assert_eq!(kinds.len(), 16);
    }

    #[test]
    fn arguments_fit_the_phis() {
        for seed in 0..300u64 {
            for shape in [Shape::default(), Shape::webs(), Shape::tiny(), Shape::pressure()] {
                let program = generate(seed, &shape);
                for function in program.functions.values() {
                    for block in &function.layout {
                        for edge in function.blocks[*block].term.edges() {
                            let params = &function.blocks[edge.target].params;
                            let types: Vec<Type> = params.iter().map(|param| function.values[*param].ty).collect();
                            let given: Vec<Type> = edge.args.iter().map(|arg| function.type_of(*arg)).collect();
                            assert_eq!(types, given, "seed {seed}, {}, {block}", function.name);
                        }
                    }
                }
            }
        }
    }
}
