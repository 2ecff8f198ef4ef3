//! Value numbering in scopes: the table that local and global value numbering share.
//!
//! A table maps what an operation computes (its operator and its operands, put in one order where they commute;
//! comparisons turned to `<`, `<=`, `==`, `!=`) to the operand that already holds it (Cocke & Schwartz 1970; the
//! dominator-scoped form: Briggs, Cooper & Simpson, "Value numbering", 1997). Loads are numbered with the version of
//! the memory class that they read; a store makes a new version, of which it tells what one element is (store-to-load
//! forwarding). What is known to hold is in the table too: after `branch %1`, `bounds` and `assert`, comparisons that
//! follow are constants, and a value compared equal to a constant is that constant.
//!
//! Operations that may trap are merged with an equal one that ran before: the first stays and reports its own place.
//!
//! **In**: instructions in an order in which definitions come before uses, but for φs. Cost: constant per operand.

use super::fuel::Fuel;
use super::lower_bounds::LowerBounds;
use super::memory::{CLASSES, Classes, Memory};
use super::renaming::Renaming;
use super::summaries::Summaries;
use crate::ir::{Block, FuncId, Function, Inst, Op, Operand, Type, Value};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::{SecondaryMap, packed_option::PackedOption};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What an operation computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    Binary(BinaryOp, Scalar, Operand, Operand),
    Compare(CompareOp, Operand, Operand),
    Unary(UnaryOp, Operand),
    Select(Operand, Operand, Operand),
    Len(Operand),
    Bounds(Operand, Operand),
    /// An element of an array, at a version of its class.
    Load(Operand, Operand, u32),
    /// A call without effects, with the versions of the classes it may read.
    Call(FuncId, SmallVec<[Operand; 4]>, SmallVec<[u32; 4]>),
    Phi(Block, SmallVec<[Operand; 4]>),
}

/// What undoes a change when a scope is left.
enum Undo {
    Key(Key, Option<Operand>),
    Constant(Value, Option<Operand>),
    Version(u8, u32),
}

/// The table, with what it needs to know of the function.
pub struct Numbering<'a> {
    summaries: &'a Summaries,
    /// The classes of arrays.
    pub memory: Memory,
    /// Values that have been merged, everywhere.
    pub renaming: Renaming,
    /// The instruction that defines a value.
    defs: SecondaryMap<Value, PackedOption<Inst>>,
    table: FxHashMap<Key, Operand>,
    /// What values are known to be in this scope.
    constants: FxHashMap<Value, Operand>,
    versions: [u32; CLASSES],
    next_version: u32,
    undo: Vec<Undo>,
    /// Constants that values are never below, if they have been computed.
    pub bounds: Option<LowerBounds>,
    /// Changes made.
    pub changes: usize,
}

/// A scope, to be left in the reverse order of entering.
#[derive(Clone, Copy)]
pub struct Scope(usize);

impl<'a> Numbering<'a> {
    /// An empty table.
    pub fn new(function: &Function, summaries: &'a Summaries) -> Numbering<'a> {
        let mut defs: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(function.values.len());
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                if let Some(result) = function.insts[*inst].result.expand() {
                    defs[result] = (*inst).into();
                }
            }
        }
        Numbering {
            summaries,
            memory: Memory::compute(function),
            renaming: Renaming::new(),
            defs,
            table: FxHashMap::default(),
            constants: FxHashMap::default(),
            versions: [0; CLASSES],
            next_version: 1,
            undo: Vec::new(),
            bounds: None,
            changes: 0,
        }
    }

    /// Enters a scope: what is learnt from now on holds until it is left.
    pub fn enter(&mut self) -> Scope {
        Scope(self.undo.len())
    }

    /// Leaves a scope.
    pub fn leave(&mut self, scope: Scope) {
        while self.undo.len() > scope.0 {
            match self.undo.pop().expect("longer than the scope's start") {
                Undo::Key(key, Some(before)) => _ = self.table.insert(key, before),
                Undo::Key(key, None) => _ = self.table.remove(&key),
                Undo::Constant(value, Some(before)) => _ = self.constants.insert(value, before),
                Undo::Constant(value, None) => _ = self.constants.remove(&value),
                Undo::Version(class, before) => self.versions[class as usize] = before,
            }
        }
    }

    fn insert(&mut self, key: Key, operand: Operand) {
        let before = self.table.insert(key.clone(), operand);
        self.undo.push(Undo::Key(key, before));
    }

    /// The elements of these classes may have changed.
    pub fn forget(&mut self, classes: Classes) {
        for class in classes.iter() {
            self.undo.push(Undo::Version(class, self.versions[class as usize]));
            self.versions[class as usize] = self.next_version;
            self.next_version += 1;
        }
    }

    /// The name that an operand has now, by merging alone.
    pub fn name(&mut self, operand: Operand) -> Operand {
        self.renaming.resolve(operand)
    }

    /// Rewrites an operand to its name, and to the constant that it is known to be here.
    pub fn rewrite(&mut self, operand: &mut Operand, fuel: &mut Fuel) {
        *operand = self.renaming.resolve(*operand);
        if let Operand::Value(value) = *operand
            && let Some(constant) = self.constants.get(&value)
            && fuel.take()
        {
            *operand = *constant;
            self.changes += 1;
        }
    }

    /// Numbers the φs of a block, whose operands are given by `operands`.
    pub fn number_phis(
        &mut self,
        function: &mut Function,
        block: Block,
        mut operands: impl FnMut(&Function, usize) -> SmallVec<[Operand; 4]>,
        fuel: &mut Fuel,
    ) {
        for index in 0..function.blocks[block].params.len() {
            let phi = function.blocks[block].params[index];
            if self.name(phi.into()) != phi.into() {
                continue;
            }
            let mut read = operands(function, index);
            read.iter_mut().for_each(|operand| *operand = self.name(*operand));
            let key = Key::Phi(block, read);
            match self.table.get(&key).copied() {
                Some(known) if fuel.take() => {
                    self.renaming.replace(function, phi, known);
                    self.changes += 1;
                }
                Some(_) => {}
                None => self.insert(key, phi.into()),
            }
        }
    }

    /// Numbers an instruction: rewrites its operands, and tells whether it stays.
    pub fn number(&mut self, function: &mut Function, inst: Inst, fuel: &mut Fuel) -> bool {
        function.insts[inst].op.for_each_operand_mut(|operand| self.rewrite(operand, fuel));
        let data = &function.insts[inst];
        let (op, result) = (&data.op, data.result.expand());
        let key = match op {
            Op::Binary { op, ty, args: [a, b] } => {
                let (a, b) = if op.commutes() && a > b { (*b, *a) } else { (*a, *b) };
                Key::Binary(*op, *ty, a, b)
            }
            Op::Compare { op, args: [a, b] } => match compare_key(*op, *a, *b) {
                Ok(key) => key,
                Err(known) => return self.found(function, inst, Operand::Bool(known), fuel),
            },
            Op::Unary { op, arg } => Key::Unary(*op, *arg),
            Op::Select { cond, args: [a, b] } => Key::Select(*cond, *a, *b),
            Op::Len(array) => Key::Len(*array),
            Op::Bounds { index, len } => {
                let (index, len) = (*index, *len);
                let key = Key::Bounds(index, len);
                let known = self.table.contains_key(&key)
                    || (self.is_at_least(index, 0) && self.is_below(function, index, len));
                if known && fuel.take() {
                    self.changes += 1;
                    return false;
                }
                self.insert(key, Operand::Bool(true));
                self.learn_comparison(CompareOp::Le, Operand::Int(0), index);
                self.learn_comparison(CompareOp::Lt, index, len);
                return true;
            }
            Op::Load { array, index, .. } => {
                Key::Load(*array, *index, self.versions[self.memory.class(*array) as usize])
            }
            Op::Store { array, index, value, .. } => {
                let (array, index, value) = (*array, *index, *value);
                let class = self.memory.class(array);
                let version = self.versions[class as usize];
                if self.table.get(&Key::Load(array, index, version)) == Some(&value) && fuel.take() {
                    // The element already holds this value.
                    self.changes += 1;
                    return false;
                }
                self.forget(Classes::one(class));
                self.insert(Key::Load(array, index, self.versions[class as usize]), value);
                return true;
            }
            Op::Call { callee, args } => {
                let effects = self.summaries.effects(op);
                if effects.io || effects.writes || effects.allocates || result.is_none() {
                    let writes = self.memory.writes(function, self.summaries, op);
                    self.forget(writes);
                    return true;
                }
                let read = if effects.reads { self.memory.of_arguments(function, args) } else { Classes::NONE };
                let versions = read.iter().map(|class| self.versions[class as usize]).collect();
                Key::Call(*callee, SmallVec::from_slice(args), versions)
            }
            Op::Assert(cond) => {
                let cond = *cond;
                if cond == Operand::Bool(true) && fuel.take() {
                    self.changes += 1;
                    return false;
                }
                self.learn(function, cond, true);
                return true;
            }
            Op::Copy(source) => {
                let source = *source;
                return self.found(function, inst, source, fuel);
            }
            Op::Array { len, .. } => {
                // It has been made, so its length is not negative.
                let len = *len;
                self.learn_comparison(CompareOp::Le, Operand::Int(0), len);
                return true;
            }
            Op::Parallel(_) | Op::Free(_) | Op::Read | Op::Eof | Op::Print(_) => return true,
        };
        match self.table.get(&key).copied() {
            Some(known) => self.found(function, inst, known, fuel),
            None => {
                let result = result.expect("what computes a value defines one");
                self.insert(key, result.into());
                true
            }
        }
    }

    /// The instruction's result is already known: replaces it. Tells whether the instruction stays.
    fn found(&mut self, function: &mut Function, inst: Inst, known: Operand, fuel: &mut Fuel) -> bool {
        let result = function.insts[inst].result.expand().expect("what computes a value defines one");
        if !fuel.take() {
            return true;
        }
        self.renaming.replace(function, result, known);
        self.changes += 1;
        false
    }

    /// Does the comparison hold here? `None` if that is not known.
    fn holds(&self, op: CompareOp, a: Operand, b: Operand) -> Option<bool> {
        match compare_key(op, a, b) {
            Ok(key) => match self.table.get(&key) {
                Some(Operand::Bool(known)) => Some(*known),
                Some(Operand::Value(_) | Operand::Int(_)) | None => None,
            },
            Err(known) => Some(known),
        }
    }

    /// Is the operand known to be at least this constant here?
    fn is_at_least(&self, operand: Operand, constant: i64) -> bool {
        self.holds(CompareOp::Le, Operand::Int(constant), operand) == Some(true)
            || self.bounds.as_ref().is_some_and(|bounds| bounds.of(operand) >= constant)
    }

    /// Is the index known to be below the length here?
    fn is_below(&self, function: &Function, index: Operand, len: Operand) -> bool {
        if self.holds(CompareOp::Lt, index, len) == Some(true) {
            return true;
        }
        if self.bounds.is_none() {
            return false;
        }
        // `i - c < len` if `i < len`, or if `i <= len` and c is not 0; and i - c must not wrap.
        if let Some((i, c)) = self.sum(function, index)
            && c < 0
            && c != i64::MIN
            && self.is_at_least(i, -c)
            && (self.holds(CompareOp::Le, i, len) == Some(true))
        {
            return true;
        }
        // `i < m + 1` if `i <= m`; and m + 1 must not wrap, which it has not if it is not negative and m is at least -1 or
        // if it is more than the smallest int.
        let below_sum = |index: Operand| {
            self.sum(function, len).is_some_and(|(m, c)| {
                c == 1 && self.is_at_least(len, 0) && self.holds(CompareOp::Le, index, m) == Some(true)
            })
        };
        below_sum(index)
            || self
                .sum(function, index)
                .is_some_and(|(i, c)| c < 0 && c != i64::MIN && self.is_at_least(i, -c) && below_sum(i))
    }

    /// The operand as a sum of another and a constant.
    fn sum(&self, function: &Function, operand: Operand) -> Option<(Operand, i64)> {
        match &function.insts[self.defs[operand.value()?].expand()?].op {
            Op::Binary { op: BinaryOp::Add, args: [a, Operand::Int(c)], .. } => Some((*a, *c)),
            _ => None,
        }
    }

    /// From now on the condition is known to be `holds`.
    pub fn learn(&mut self, function: &Function, cond: Operand, holds: bool) {
        // Parts of a condition, of which at most 16 are looked into.
        let mut parts: SmallVec<[(Operand, bool); 16]> = SmallVec::new();
        parts.push((self.name(cond), holds));
        let mut next = 0;
        while let Some((part, holds)) = parts.get(next).copied() {
            next += 1;
            let Operand::Value(value) = part else { continue };
            self.know(value, Operand::Bool(holds));
            if parts.len() >= 16 {
                continue;
            }
            let Some(inst) = self.defs[value].expand() else { continue };
            match &function.insts[inst].op {
                Op::Unary { op: UnaryOp::Not, arg } => parts.push((self.name(*arg), !holds)),
                Op::Binary { op: BinaryOp::And, args, .. } if holds => {
                    parts.extend(args.map(|arg| (self.renaming.resolve(arg), true)));
                }
                Op::Binary { op: BinaryOp::Or, args, .. } if !holds => {
                    parts.extend(args.map(|arg| (self.renaming.resolve(arg), false)));
                }
                Op::Compare { op, args } => {
                    let op = if holds { *op } else { op.negate() };
                    let [a, b] = args.map(|arg| self.renaming.resolve(arg));
                    if matches!(function.type_of(a), Type::Scalar(_)) {
                        self.learn_comparison(op, a, b);
                    }
                }
                Op::Copy(_)
                | Op::Parallel(_)
                | Op::Binary { .. }
                | Op::Unary { .. }
                | Op::Select { .. }
                | Op::Array { .. }
                | Op::Free(_)
                | Op::Len(_)
                | Op::Bounds { .. }
                | Op::Load { .. }
                | Op::Store { .. }
                | Op::Call { .. }
                | Op::Read
                | Op::Eof
                | Op::Print(_)
                | Op::Assert(_) => {}
            }
        }
    }

    /// From now on the value is known to be this constant.
    fn know(&mut self, value: Value, constant: Operand) {
        let before = self.constants.insert(value, constant);
        self.undo.push(Undo::Constant(value, before));
    }

    /// From now on the comparison holds, and with it all that it implies for the same operands.
    fn learn_comparison(&mut self, op: CompareOp, a: Operand, b: Operand) {
        match (op, a, b) {
            (CompareOp::Eq, Operand::Value(value), Operand::Int(_) | Operand::Bool(_)) => self.know(value, b),
            (CompareOp::Eq, Operand::Int(_) | Operand::Bool(_), Operand::Value(value)) => self.know(value, a),
            (CompareOp::Eq | CompareOp::Ne | CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge, ..) => {}
        }
        // Which of `<`, `==`, `>` are possible, and what each comparison then is.
        let possible = |op: CompareOp| [op.eval(0, 1), op.eval(0, 0), op.eval(1, 0)];
        let given = possible(op);
        for other in CompareOp::ALL {
            let holds = possible(other);
            let always = (0..3).all(|order| !given[order] || holds[order]);
            let never = (0..3).all(|order| !given[order] || !holds[order]);
            if (always || never)
                && let Ok(key) = compare_key(other, a, b)
            {
                self.insert(key, Operand::Bool(always));
            }
        }
    }
}

/// The key of a comparison, or its answer if the operands alone give it.
fn compare_key(op: CompareOp, a: Operand, b: Operand) -> Result<Key, bool> {
    if let (Some(a), Some(b)) = (a.constant(), b.constant()) {
        return Err(op.eval(a, b));
    }
    if a == b {
        return Err(op.eval(0, 0));
    }
    let (op, a, b) = match op {
        CompareOp::Gt | CompareOp::Ge => (op.swap(), b, a),
        CompareOp::Eq | CompareOp::Ne if a > b => (op, b, a),
        CompareOp::Eq | CompareOp::Ne | CompareOp::Lt | CompareOp::Le => (op, a, b),
    };
    // `x < c` is `x <= c - 1`, and `c < x` is `c + 1 <= x`, if the constant does not wrap.
    match (op, a, b) {
        (CompareOp::Lt, _, Operand::Int(i64::MIN)) | (CompareOp::Lt, Operand::Int(i64::MAX), _) => Err(false),
        (CompareOp::Lt, _, Operand::Int(c)) => Ok(Key::Compare(CompareOp::Le, a, Operand::Int(c - 1))),
        (CompareOp::Lt, Operand::Int(c), _) => Ok(Key::Compare(CompareOp::Le, Operand::Int(c + 1), b)),
        _ => Ok(Key::Compare(op, a, b)),
    }
}
