//! Physical and virtual registers, sets of physical ones, and the calling convention (System V AMD64 ABI, section 3.2).
//!
//! `Code<VReg>` and `Code<PReg>` are different types (see `types`), so a virtual register cannot reach the encoder.

use super::types::VRegData;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use std::fmt;
use std::hash::Hash;

/// A register of machine code: virtual before allocation, physical after it.
pub trait Reg: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display {
    /// Are registers of this kind the machine's own?
    const PHYSICAL: bool;

    /// Its number, dense from 0, as an index into tables.
    fn dense_index(self) -> usize;

    /// The physical register that it is, or that it is pinned to; `vregs` are those of its function.
    fn fixed(self, vregs: &PrimaryMap<VReg, VRegData>) -> Option<PReg>;
}

/// A virtual register, printed `v3`. May be assigned many times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VReg(u32);
entity_impl!(VReg, "v");
impl Reg for VReg {
    const PHYSICAL: bool = false;

    fn dense_index(self) -> usize {
        self.index()
    }

    fn fixed(self, vregs: &PrimaryMap<VReg, VRegData>) -> Option<PReg> {
        vregs[self].pinned
    }
}

/// A general-purpose register by its hardware number, 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PReg(u8);
impl Reg for PReg {
    const PHYSICAL: bool = true;

    fn dense_index(self) -> usize {
        self.0 as usize
    }

    fn fixed(self, _vregs: &PrimaryMap<VReg, VRegData>) -> Option<PReg> {
        Some(self)
    }
}

const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

const NAMES_32: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d",
    "r15d",
];

impl PReg {
    pub const RAX: PReg = PReg(0);
    pub const RCX: PReg = PReg(1);
    pub const RDX: PReg = PReg(2);
    pub const RBX: PReg = PReg(3);
    pub const RSP: PReg = PReg(4);
    pub const RBP: PReg = PReg(5);
    pub const RSI: PReg = PReg(6);
    pub const RDI: PReg = PReg(7);
    pub const R8: PReg = PReg(8);
    pub const R9: PReg = PReg(9);
    pub const R10: PReg = PReg(10);
    pub const R11: PReg = PReg(11);
    pub const R12: PReg = PReg(12);
    pub const R13: PReg = PReg(13);
    pub const R14: PReg = PReg(14);
    pub const R15: PReg = PReg(15);

    /// The register with a hardware number below 16.
    pub fn new(number: u8) -> PReg {
        assert!(number < 16, "x86-64 has 16 general-purpose registers");
        PReg(number)
    }

    /// Its hardware number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its 64-bit name.
    pub fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    /// The name of its lower half.
    pub fn name_32(self) -> &'static str {
        NAMES_32[self.0 as usize]
    }

    /// All but the stack pointer can hold values.
    pub fn is_allocatable(self) -> bool {
        self != PReg::RSP
    }
}

impl fmt::Display for PReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for PReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of physical registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct RegSet(pub u16);

impl RegSet {
    /// The empty set.
    pub const EMPTY: RegSet = RegSet(0);
    /// All registers that may hold values: all but `rsp`.
    pub const ALLOCATABLE: RegSet = RegSet(!(1 << 4));
    /// What a call may change: rax, rcx, rdx, rsi, rdi, r8 to r11.
    pub const CALLER_SAVED: RegSet = RegSet(0b0000_1111_1100_0111);
    /// What a function must give back as it got it: rbx, rbp, r12 to r15 (and rsp).
    pub const CALLEE_SAVED: RegSet = RegSet(0b1111_0000_0010_1000);

    /// The set of these registers.
    pub fn of(registers: &[PReg]) -> RegSet {
        registers.iter().fold(RegSet::EMPTY, |set, register| set.with(*register))
    }

    /// Is the register in the set?
    pub fn contains(self, register: PReg) -> bool {
        self.0 & 1 << register.0 != 0
    }

    /// The set with the register.
    pub fn with(self, register: PReg) -> RegSet {
        RegSet(self.0 | 1 << register.0)
    }

    /// The set without the register.
    pub fn without(self, register: PReg) -> RegSet {
        RegSet(self.0 & !(1 << register.0))
    }

    /// The registers that are in either set.
    pub fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// The registers that are in both sets.
    pub fn intersection(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }

    /// How many.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Is it empty?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The registers, by number.
    pub fn iter(self) -> impl Iterator<Item = PReg> {
        (0..16).filter(move |number| self.0 & 1 << number != 0).map(PReg)
    }
}

/// Registers of the first six integer arguments.
pub const ARGUMENTS: [PReg; 6] = [PReg::RDI, PReg::RSI, PReg::RDX, PReg::RCX, PReg::R8, PReg::R9];

/// The register of an integer result.
pub const RESULT: PReg = PReg::RAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_convention_covers_every_register_once() {
        assert_eq!(RegSet::CALLER_SAVED.intersection(RegSet::CALLEE_SAVED), RegSet::EMPTY);
        assert_eq!(RegSet::CALLER_SAVED.union(RegSet::CALLEE_SAVED), RegSet::ALLOCATABLE);
        let names: Vec<&str> = RegSet::CALLEE_SAVED.iter().map(PReg::name).collect();
        assert_eq!(names, ["rbx", "rbp", "r12", "r13", "r14", "r15"]);
    }
}
