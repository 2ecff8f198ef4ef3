//! The ids that several languages of the compiler share: dense newtypes over `u32`, never reused (`cranelift-entity`).

use cranelift_entity::entity_impl;

/// A function of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "f");

/// A string literal of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(u32);
entity_impl!(StrId, "str");

/// A variable of the source, within its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(u32);
entity_impl!(Variable, "var");

/// An IR value, printed `%3`, within its function. In SSA forms it has one definition; in the others it may have many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "%");

/// An IR instruction (its record; listings show instructions by their results), within its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A basic block, printed `b3`, within its function. Machine code keeps the numbers of the IR's blocks and goes on from
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "b");
