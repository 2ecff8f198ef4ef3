//! Memory classes: which arrays an instruction may read or write, as a set of at most 64 classes.
//!
//! Arrays of ints and of bools never alias. An array that the function makes itself is a class of its own: no parameter
//! can refer to it, and a callee reaches only arrays that it is passed, as there are no global ones. All other arrays of
//! one element type (parameters, φs, and fresh arrays that a φ, copy or select passes on, or that are too many) share the
//! class of that type.
//!
//! **In**: SSA. **Out**: a class for each array value. Cost: linear.

use super::summaries::Summaries;
use crate::ir::{Function, Op, Operand, Type, Value};
use crate::semantics::Scalar;
use cranelift_entity::{EntitySet, SecondaryMap};

/// How many classes there are at most.
pub const CLASSES: usize = 64;

/// A set of classes, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Classes(u64);

impl Classes {
    /// No class.
    pub const NONE: Classes = Classes(0);

    /// The set of one class.
    pub fn one(class: u8) -> Classes {
        Classes(1 << class)
    }

    /// Is no class in it?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both sets together.
    pub fn union(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    /// Is there a class in both?
    pub fn meets(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// The classes, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..CLASSES as u8).filter(move |class| self.0 >> class & 1 == 1)
    }
}

/// The class of each array.
pub struct Memory {
    class: SecondaryMap<Value, u8>,
}

impl Memory {
    /// Finds the classes of a function's arrays.
    pub fn compute(function: &Function) -> Memory {
        let mut passed_on: EntitySet<Value> = EntitySet::new();
        let mut pass = |operand: Operand| {
            if let Operand::Value(value) = operand
                && matches!(function.values[value].ty, Type::Array(_))
            {
                passed_on.insert(value);
            }
        };
        for block in &function.layout {
            let data = &function.blocks[*block];
            for inst in &data.insts {
                let op = &function.insts[*inst].op;
                if let Op::Copy(_) | Op::Select { .. } | Op::Parallel(_) = op {
                    op.for_each_operand(&mut pass);
                }
            }
            data.term.edges().for_each(|edge| edge.args.iter().for_each(|arg| pass(*arg)));
        }
        let mut class: SecondaryMap<Value, u8> = SecondaryMap::with_capacity(function.values.len());
        for (value, data) in function.values.iter() {
            class[value] = match data.ty {
                Type::Array(Scalar::Bool) => 1,
                Type::Array(Scalar::Int) | Type::Scalar(_) => 0,
            };
        }
        let mut next = 2;
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                let data = &function.insts[*inst];
                if let (Op::Array { .. }, Some(array)) = (&data.op, data.result.expand())
                    && next < CLASSES
                    && !passed_on.contains(array)
                {
                    class[array] = next as u8;
                    next += 1;
                }
            }
        }
        Memory { class }
    }

    /// The class of an array.
    pub fn class(&self, array: Operand) -> u8 {
        self.class[array.value().expect("an array is a value")]
    }

    /// The classes whose elements an instruction may change.
    pub fn writes(&self, function: &Function, summaries: &Summaries, op: &Op) -> Classes {
        match op {
            Op::Store { array, .. } => Classes::one(self.class(*array)),
            Op::Call { args, .. } if summaries.effects(op).writes => self.of_arguments(function, args),
            // What is freed is not read again, and what is made has a name that nothing was known of.
            Op::Free(_) | Op::Array { .. } => Classes::NONE,
            Op::Copy(_)
            | Op::Parallel(_)
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Unary { .. }
            | Op::Select { .. }
            | Op::Len(_)
            | Op::Bounds { .. }
            | Op::Load { .. }
            | Op::Call { .. }
            | Op::Read
            | Op::Eof
            | Op::Print(_)
            | Op::Assert(_) => Classes::NONE,
        }
    }

    /// The classes of the arrays among a call's arguments.
    pub fn of_arguments(&self, function: &Function, args: &[Operand]) -> Classes {
        args.iter()
            .filter(|arg| matches!(function.type_of(**arg), Type::Array(_)))
            .fold(Classes::NONE, |all, arg| all.union(Classes::one(self.class(*arg))))
    }
}
