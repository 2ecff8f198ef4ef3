//! Judges an allocation: does every instruction of the allocated code read, in its registers and slots, what the original
//! reads in its virtual registers, on every path?
//!
//! Both codes are run side by side, symbolically. The state is a partition: which virtual registers, physical registers,
//! slots and constants are known to be equal here. Moves put their destination into their source's class, other
//! instructions make a new class for the pair of the virtual register that they define and the place where it is; calls
//! take the caller-saved registers out. Where paths meet, only what is equal on both stays equal. An operand is right if
//! its place and its virtual register are in one class. Since both sides of a move are followed, it does not matter which
//! moves the allocator made, dropped by coalescing or made again from a constant, nor how it sequenced a parallel move.
//!
//! The idea of an allocation checker by dataflow over symbolic values: Silvain Rideau and Xavier Leroy, Validating Register
//! Allocation and Spilling, 2010; Chris Fallin's checker of regalloc2, 2021. Partitions as facts: Gary Kildall, A Unified
//! Approach to Global Program Optimization, 1973. It shares no code with the allocator, its liveness included.
//!
//! ```text
//! v2 = mov v1          (coalesced away: v1, v2 and rax are one class)
//! v1 = add v1, 1       add rax, 1      → v1 and rax are a new class; v2 is in no place
//! print v2             mov rdi, rax    → error: v2 is read in rdi, which holds v1
//! ```
//!
//! **in**: the original, which `verify` accepts, and the allocated function. Both have the same instructions in the same
//! order in each block, but for moves (`mov`, `imm` and string addresses between registers and slots, `parallel`, `push`,
//! `pop`, `xchg`), and the same blocks, but for blocks with a number that the original does not have: those hold moves
//! only, jump, and stand on edges. **out**: `Ok` if the allocation is right; that the allocated code keeps the machine's
//! own rules is for `verify`. Cost: linear in instructions, plus, for each block, the values that it needs from its
//! predecessors and the places in use, times the rounds until nothing changes (few: loops are passed twice).

use super::places::{Constant, Place, Source, constants_of, is_move, moves_of, operands, place_of};
use crate::support::internal::Internal;
use crate::x64::*;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Checks that `allocated` does what `original` does.
pub fn check(original: &Function<VReg>, allocated: &Function<PReg>) -> Result<(), Internal> {
    Checker::new(original, allocated).run().map_err(|error| error.in_function(&original.name))
}

/// A set of equal things. Constants have a class for the whole check; the others mean something in one state only.
type Class = u32;

/// Nothing is known to be equal to it.
const UNKNOWN: Class = u32::MAX;

/// The known equalities at a block's start: elements with their classes, in order of elements. Elements that are equal to
/// nothing do not stand here.
#[derive(Clone, Default)]
struct State(Vec<(u32, Class)>);

struct Checker<'a> {
    original: &'a Function<VReg>,
    allocated: &'a Function<PReg>,
    /// Elements are numbered: the original's virtual registers, its incoming and outgoing slots; then the allocated
    /// code's registers, its incoming, outgoing and spill slots. These are the borders between them.
    incoming: u32,
    outgoing: u32,
    places: u32,
    /// Outgoing slots, of both codes: the most that either names.
    outgoing_count: u32,
    /// The class of each element at the point in hand.
    class: Vec<Class>,
    /// Elements that may have a class, each once (`listed` says which are in it).
    present: Vec<u32>,
    listed: Vec<bool>,
    /// For each block of the original the virtual registers that it needs from its predecessors, in order.
    needs: SecondaryMap<Block, Vec<u32>>,
    constants: FxHashMap<Constant, Class>,
    /// Classes below are constants'.
    first_class: Class,
    next_class: Class,
    /// What is pushed, within a block.
    pushed: Vec<Class>,
}

impl<'a> Checker<'a> {
    fn new(original: &'a Function<VReg>, allocated: &'a Function<PReg>) -> Checker<'a> {
        let incoming = original.vregs.len() as u32;
        let outgoing = incoming + original.incoming;
        let outgoing_count = allocated.frame.outgoing.max(most_outgoing(original));
        let places = outgoing + outgoing_count;
        let count = places + 16 + original.incoming + outgoing_count + allocated.frame.spill_slots;
        let mut checker = Checker {
            original,
            allocated,
            incoming,
            outgoing,
            places,
            outgoing_count,
            class: vec![UNKNOWN; count as usize],
            present: Vec::new(),
            listed: vec![false; count as usize],
            needs: SecondaryMap::new(),
            constants: FxHashMap::default(),
            first_class: 0,
            next_class: 0,
            pushed: Vec::new(),
        };
        checker.number_constants();
        checker.find_needs();
        checker
    }

    fn run(&mut self) -> Result<(), Internal> {
        self.check_graph()?;
        let order = self.reverse_postorder();
        let mut rank: SecondaryMap<Block, usize> = SecondaryMap::new();
        order.iter().enumerate().for_each(|(index, block)| rank[*block] = index);
        let mut states: Vec<Option<State>> = vec![None; order.len()];
        states[0] = Some(self.entry_state());
        // Blocks in order, again and again while something that they start from has changed.
        let mut dirty = vec![false; order.len()];
        dirty[0] = true;
        let mut next = Some(0);
        while let Some(index) = next {
            dirty[index] = false;
            let block = order[index];
            self.enter(states[index].as_ref().expect("a block is visited after one of its predecessors"));
            self.block(block)?;
            let mut earliest = index + 1;
            for target in self.allocated.blocks[block].term.successors() {
                let out = self.leave(target);
                let target = rank[target];
                let changed = match &mut states[target] {
                    Some(state) => meet(state, &out, self.first_class, &mut self.next_class),
                    empty => {
                        *empty = Some(out);
                        true
                    }
                };
                if changed {
                    dirty[target] = true;
                    earliest = earliest.min(target);
                }
            }
            next = (earliest..order.len()).find(|index| dirty[*index]);
        }
        Ok(())
    }

    // ---- preparation ----

    /// Gives each constant of either code its class.
    fn number_constants(&mut self) {
        let mut constants = Vec::new();
        for block in &self.original.layout {
            for inst in &self.original.blocks[*block].insts {
                constants_of(&inst.op, &mut constants);
            }
        }
        for block in &self.allocated.layout {
            for inst in &self.allocated.blocks[*block].insts {
                constants_of(&inst.op, &mut constants);
            }
        }
        for constant in constants {
            let next = self.constants.len() as Class;
            self.constants.entry(constant).or_insert(next);
        }
        self.first_class = self.constants.len() as Class;
        self.next_class = self.first_class;
    }

    /// Finds what each block of the original needs from its predecessors: from each read that no write of its block comes
    /// before, back over the edges to the blocks that write the register. Cost: linear in what is found.
    fn find_needs(&mut self) {
        // The block that last wrote a register, by number from 1.
        let mut written = vec![0; self.original.vregs.len()];
        let mut writes: FxHashSet<(Block, VReg)> = FxHashSet::default();
        let mut needs: FxHashSet<(Block, VReg)> = FxHashSet::default();
        let mut preds: SecondaryMap<Block, SmallVec<[Block; 4]>> = SecondaryMap::new();
        let mut work: Vec<(Block, VReg)> = Vec::new();
        for (number, block) in self.original.layout.iter().enumerate() {
            let data = &self.original.blocks[*block];
            for target in data.term.successors() {
                preds[target].push(*block);
            }
            let mut exposed: SmallVec<[VReg; 8]> = SmallVec::new();
            for inst in &data.insts {
                inst.op.for_each_reg(|vreg, role, _| match role {
                    Role::Use | Role::Mod if written[vreg.index()] != number + 1 => exposed.push(vreg),
                    Role::Use | Role::Mod | Role::Def => {}
                });
                inst.op.for_each_reg(|vreg, role, _| match role {
                    Role::Def | Role::Mod => {
                        written[vreg.index()] = number + 1;
                        writes.insert((*block, vreg));
                    }
                    Role::Use => {}
                });
            }
            data.term.for_each_reg(|vreg, _, _| {
                if written[vreg.index()] != number + 1 {
                    exposed.push(vreg);
                }
            });
            work.extend(exposed.into_iter().filter(|vreg| needs.insert((*block, *vreg))).map(|vreg| (*block, vreg)));
        }
        while let Some((block, vreg)) = work.pop() {
            self.needs[block].push(vreg.index() as u32);
            for pred in &preds[block] {
                if !writes.contains(&(*pred, vreg)) && needs.insert((*pred, vreg)) {
                    work.push((*pred, vreg));
                }
            }
        }
        self.original.layout.iter().for_each(|block| self.needs[*block].sort_unstable());
    }

    /// The graphs must be the same, but for new blocks on edges.
    fn check_graph(&self) -> Result<(), Internal> {
        let (original, allocated) = (self.original, self.allocated);
        if original.layout.first() != allocated.layout.first() {
            return Err(Internal::new(allocated.layout[0], "the allocated code has another entry"));
        }
        for block in &allocated.layout {
            let data = &allocated.blocks[*block];
            if self.is_new(*block) {
                if !matches!(data.term, Terminator::Jump(_)) {
                    return Err(Internal::new(block, "a block that the allocator made does not jump"));
                }
                continue;
            }
            let before = original.blocks[*block].term.successors();
            let after: SmallVec<[Block; 2]> =
                data.term.successors().iter().map(|target| self.through(*target)).collect();
            if before != after {
                let error = format!("its edges led to {before:?} and lead to {after:?}");
                return Err(Internal::new(block, error));
            }
        }
        Ok(())
    }

    fn is_new(&self, block: Block) -> bool {
        block.index() >= self.original.blocks.len()
    }

    /// The first block of the original on the way from a block through new ones.
    fn through(&self, block: Block) -> Block {
        let mut at = block;
        for _ in 0..self.allocated.blocks.len() {
            match self.allocated.blocks[at].term {
                Terminator::Jump(target) if self.is_new(at) => at = target,
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Return { .. }
                | Terminator::TailCall { .. }
                | Terminator::Unreachable => break,
            }
        }
        at
    }

    fn reverse_postorder(&self) -> Vec<Block> {
        let entry = self.allocated.layout[0];
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        seen[entry] = true;
        let mut order = Vec::new();
        let mut work = vec![(entry, 0)];
        while let Some((block, next)) = work.pop() {
            if let Some(target) = self.allocated.blocks[block].term.successors().get(next).copied() {
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
        order
    }

    /// On entry, an argument's register holds what the virtual registers that are pinned there and read first will read,
    /// and the caller's slots are the caller's slots.
    fn entry_state(&mut self) -> State {
        let mut elements = Vec::new();
        let mut classes = [UNKNOWN; 16];
        for register in ARGUMENTS {
            let class = self.fresh();
            classes[register.number() as usize] = class;
            elements.push((self.place(Place::Reg(register)), class));
        }
        for (vreg, data) in self.original.vregs.iter() {
            if let Some(register) = data.pinned
                && self.needs[self.original.layout[0]].binary_search(&vreg.as_u32()).is_ok()
                && classes[register.number() as usize] != UNKNOWN
            {
                elements.push((vreg.as_u32(), classes[register.number() as usize]));
            }
        }
        for number in 0..self.original.incoming {
            let class = self.fresh();
            elements.push((self.name(Place::Slot(Slot::Incoming(number))), class));
            elements.push((self.place(Place::Slot(Slot::Incoming(number))), class));
        }
        elements.sort_unstable();
        State(elements)
    }

    // ---- elements and classes ----

    /// The element of a virtual register or slot of the original.
    fn name(&self, place: Place<VReg>) -> u32 {
        match place {
            Place::Reg(vreg) => vreg.as_u32(),
            Place::Slot(Slot::Incoming(number)) => self.incoming + number,
            Place::Slot(Slot::Outgoing(number)) => self.outgoing + number,
            Place::Slot(Slot::Spill(_)) => panic!("code before allocation has no spill slots"),
        }
    }

    /// The element of a register or slot of the allocated code.
    fn place(&self, place: Place<PReg>) -> u32 {
        let incoming = self.places + 16;
        let outgoing = incoming + self.original.incoming;
        let spills = outgoing + self.outgoing_count;
        match place {
            Place::Reg(register) => self.places + u32::from(register.number()),
            Place::Slot(Slot::Incoming(number)) => incoming + number,
            Place::Slot(Slot::Outgoing(number)) => outgoing + number,
            Place::Slot(Slot::Spill(number)) => spills + number,
        }
    }

    fn fresh(&mut self) -> Class {
        self.next_class += 1;
        self.next_class - 1
    }

    fn put(&mut self, element: u32, class: Class) {
        self.class[element as usize] = class;
        if !self.listed[element as usize] {
            self.listed[element as usize] = true;
            self.present.push(element);
        }
    }

    fn get(&self, element: u32) -> Class {
        self.class[element as usize]
    }

    /// Makes the state the one in hand.
    fn enter(&mut self, state: &State) {
        for element in self.present.drain(..) {
            self.class[element as usize] = UNKNOWN;
            self.listed[element as usize] = false;
        }
        for (element, class) in &state.0 {
            self.put(*element, *class);
        }
        self.pushed.clear();
    }

    /// What of the state in hand matters to a block that comes next: the names that it needs, and the places that hold one
    /// of them or a constant.
    fn leave(&self, target: Block) -> State {
        let target = if self.is_new(target) { self.through(target) } else { target };
        let needs = &self.needs[target];
        let mut named: FxHashSet<Class> = FxHashSet::default();
        let mut elements = Vec::new();
        for element in needs.iter().copied().chain(self.incoming..self.places) {
            let class = self.get(element);
            if class != UNKNOWN {
                named.insert(class);
                elements.push((element, class));
            }
        }
        for element in self.present.iter().copied().filter(|element| *element >= self.places) {
            let class = self.get(element);
            if class != UNKNOWN && (class < self.first_class || named.contains(&class)) {
                elements.push((element, class));
            }
        }
        elements.sort_unstable();
        State(elements)
    }

    // ---- blocks ----

    fn block(&mut self, block: Block) -> Result<(), Internal> {
        let after = &self.allocated.blocks[block];
        if self.is_new(block) {
            for (index, inst) in after.insts.iter().enumerate() {
                if !is_move(&inst.op) {
                    let error = "a block that the allocator made has an instruction that is no move";
                    return Err(Internal::new(place(block, index), error));
                }
                self.allocated_move(&inst.op).map_err(|message| Internal::new(place(block, index), message))?;
            }
            return self.check_pushed(block);
        }
        let before = &self.original.blocks[block];
        let mut rest = before.insts.iter();
        let mut originals = std::iter::from_fn(|| rest.next());
        let mut at = 0;
        loop {
            // Moves of the original up to the next other instruction, then those of the allocated code.
            let original = loop {
                match originals.next() {
                    Some(inst) if is_move(&inst.op) => self.original_move(&inst.op),
                    other => break other,
                }
            };
            let allocated = loop {
                match after.insts.get(at) {
                    Some(inst) if is_move(&inst.op) => {
                        self.allocated_move(&inst.op).map_err(|message| Internal::new(place(block, at), message))?;
                        at += 1;
                    }
                    other => break other,
                }
            };
            match (original, allocated) {
                (Some(original), Some(allocated)) => {
                    self.instruction(&original.op, &allocated.op)
                        .map_err(|message| Internal::new(place(block, at), message))?;
                    at += 1;
                }
                (None, None) => break,
                (Some(original), None) => {
                    let error = format!("an instruction is missing: {:?}", original.op);
                    return Err(Internal::new(block, error));
                }
                (None, Some(allocated)) => {
                    let error = format!("an instruction has no original: {:?}", allocated.op);
                    return Err(Internal::new(place(block, at), error));
                }
            }
        }
        self.check_pushed(block)?;
        self.terminator(&before.term, &after.term)
            .map_err(|message| Internal::new(format!("{block}, terminator"), message))
    }

    fn check_pushed(&self, block: Block) -> Result<(), Internal> {
        if self.pushed.is_empty() { Ok(()) } else { Err(Internal::new(block, "a block ends with something pushed")) }
    }

    /// A move of the original: names change their classes.
    fn original_move(&mut self, op: &Op<VReg>) {
        let mut moves: SmallVec<[(u32, Class); 8]> = SmallVec::new();
        for (dst, src) in moves_of(op) {
            let class = match src {
                Source::Place(place) => self.get(self.name(place)),
                Source::Constant(constant) => self.constants[&constant],
            };
            moves.push((self.name(dst), class));
        }
        moves.into_iter().for_each(|(element, class)| self.put(element, class));
    }

    /// A move of the allocated code: places change their classes.
    fn allocated_move(&mut self, op: &Op<PReg>) -> Result<(), String> {
        match op {
            Op::Push { src } => {
                let source = place_of(src).ok_or("an array is pushed")?;
                self.pushed.push(self.get(self.place(source)));
                return Ok(());
            }
            Op::Pop { dst } => {
                let class = self.pushed.pop().ok_or("nothing is pushed")?;
                let destination = place_of(dst).ok_or("an array is popped")?;
                self.put(self.place(destination), class);
                return Ok(());
            }
            Op::Xchg { a, b } => {
                let (a, b) = (self.place(Place::Reg(*a)), self.place(Place::Reg(*b)));
                let (first, second) = (self.get(a), self.get(b));
                self.put(a, second);
                self.put(b, first);
                return Ok(());
            }
            Op::Mov { .. }
            | Op::Imm { .. }
            | Op::StrAddress { .. }
            | Op::Parallel { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Lea { .. }
            | Op::Alu { .. }
            | Op::Unary { .. }
            | Op::Shift { .. }
            | Op::Imul { .. }
            | Op::ImulImm { .. }
            | Op::MulHigh { .. }
            | Op::SignExtend { .. }
            | Op::Div { .. }
            | Op::Cmp { .. }
            | Op::CmpByte { .. }
            | Op::Test { .. }
            | Op::Set { .. }
            | Op::Cmov { .. }
            | Op::Call { .. }
            | Op::Trap { .. } => {}
        }
        let mut moves: SmallVec<[(u32, Class); 8]> = SmallVec::new();
        for (dst, src) in moves_of(op) {
            self.check_exists(dst)?;
            let class = match src {
                Source::Place(place) => {
                    self.check_exists(place)?;
                    self.get(self.place(place))
                }
                Source::Constant(constant) => self.constants[&constant],
            };
            moves.push((self.place(dst), class));
        }
        moves.into_iter().for_each(|(element, class)| self.put(element, class));
        Ok(())
    }

    fn check_exists(&self, place: Place<PReg>) -> Result<(), String> {
        let frame = &self.allocated.frame;
        let exists = match place {
            Place::Reg(register) => register.is_allocatable(),
            Place::Slot(Slot::Spill(number)) => number < frame.spill_slots,
            Place::Slot(Slot::Incoming(number)) => number < self.original.incoming,
            Place::Slot(Slot::Outgoing(number)) => number < frame.outgoing,
        };
        if exists { Ok(()) } else { Err(format!("{place} cannot hold a value")) }
    }

    /// An instruction that is no move, with the one that was made of it.
    fn instruction(&mut self, before: &Op<VReg>, after: &Op<PReg>) -> Result<(), String> {
        let (names, places) = (operands(before), operands(after));
        if names.len() != places.len() {
            return Err(format!("an instruction has changed: {before:?} has become {after:?}"));
        }
        for (_, place) in &places {
            self.check_exists(*place)?;
        }
        // The original with its registers replaced must be the allocated instruction.
        let mut replacements = names.iter().zip(&places).filter_map(|((_, name), (_, place))| match name {
            Place::Reg(_) => Some(*place),
            Place::Slot(_) => None,
        });
        let mut in_slot = None;
        let replaced = before.map(|vreg, _, constraint| match (replacements.next(), constraint) {
            (Some(Place::Reg(register)), Constraint::Reg | Constraint::Any) => RegMem::Reg(register),
            (Some(Place::Slot(slot)), Constraint::Any) => RegMem::Slot(slot),
            (Some(Place::Slot(_)) | None, Constraint::Reg | Constraint::Any) => {
                in_slot = Some(vreg);
                RegMem::Reg(PReg::RSP)
            }
        });
        if let Some(vreg) = in_slot {
            return Err(format!("{vreg} must be in a register"));
        }
        if replaced != *after {
            return Err(format!("an instruction has changed: {before:?} has become {after:?}"));
        }
        for ((_, name), (_, place)) in names.iter().zip(&places) {
            self.check_pinned(*name, *place)?;
        }
        for ((role, name), (_, place)) in names.iter().zip(&places) {
            match role {
                Role::Use | Role::Mod => self.check_use(*name, *place)?,
                Role::Def => {}
            }
        }
        if let Op::Call { stack_args, .. } = before {
            for number in 0..*stack_args {
                let slot = Slot::Outgoing(number);
                self.check_exists(Place::Slot(slot))?;
                self.check_use(Place::Slot(slot), Place::Slot(slot))?;
            }
            for number in 0..self.outgoing_count {
                let slot = Slot::Outgoing(number);
                self.put(self.place(Place::Slot(slot)), UNKNOWN);
                self.put(self.name(Place::Slot(slot)), UNKNOWN);
            }
        }
        for register in before.clobbers().iter() {
            self.put(self.place(Place::Reg(register)), UNKNOWN);
        }
        let mut defined: SmallVec<[u32; 2]> = SmallVec::new();
        for ((role, name), (_, place)) in names.iter().zip(&places) {
            match role {
                Role::Def | Role::Mod => {
                    let element = self.place(*place);
                    if defined.contains(&element) {
                        return Err(format!("two results are in {place}"));
                    }
                    defined.push(element);
                    let class = self.fresh();
                    self.put(self.name(*name), class);
                    self.put(element, class);
                }
                Role::Use => {}
            }
        }
        Ok(())
    }

    fn check_pinned(&self, name: Place<VReg>, place: Place<PReg>) -> Result<(), String> {
        match name {
            Place::Reg(vreg) => match self.original.vregs[vreg].pinned {
                Some(register) if place != Place::Reg(register) => {
                    Err(format!("{vreg} must be in {register} and is in {place}"))
                }
                Some(_) | None => Ok(()),
            },
            Place::Slot(_) => Ok(()),
        }
    }

    /// The place must hold what the name stands for.
    fn check_use(&self, name: Place<VReg>, place: Place<PReg>) -> Result<(), String> {
        let wanted = self.get(self.name(name));
        let found = self.get(self.place(place));
        if wanted != UNKNOWN && wanted == found {
            return Ok(());
        }
        // Where is it, and what is here? Only for the message.
        let equal = |class: Class, from: u32, to: u32| {
            let same = |element: &u32| class != UNKNOWN && self.get(*element) == class;
            let text: Vec<String> = (from..to).filter(same).take(4).map(|element| self.describe(element)).collect();
            if text.is_empty() { "nothing".to_string() } else { text.join(", ") }
        };
        let held = equal(found, 0, self.places);
        let home = equal(wanted, self.places, self.class.len() as u32);
        Err(format!("{name} is read in {place}, which holds {held}; {name} is in {home}"))
    }

    fn describe(&self, element: u32) -> String {
        let names = |number: u32, base: u32, kind: &str| format!("{kind} slot {}", number - base);
        if element < self.incoming {
            return VReg::from_u32(element).to_string();
        }
        if element < self.places {
            return names(element, self.incoming, "argument");
        }
        let incoming = self.places + 16;
        let outgoing = incoming + self.original.incoming;
        let spills = outgoing + self.outgoing_count;
        if element < incoming {
            PReg::new((element - self.places) as u8).to_string()
        } else if element < outgoing {
            names(element, incoming, "incoming")
        } else if element < spills {
            names(element, outgoing, "outgoing")
        } else {
            names(element, spills, "spill")
        }
    }

    fn terminator(&mut self, before: &Terminator<VReg>, after: &Terminator<PReg>) -> Result<(), String> {
        let mut names: SmallVec<[VReg; 6]> = SmallVec::new();
        let mut places: SmallVec<[PReg; 6]> = SmallVec::new();
        before.for_each_reg(|vreg, _, _| names.push(vreg));
        after.for_each_reg(|register, _, _| places.push(register));
        // Targets were compared with the graph.
        let same = match (before, after) {
            (Terminator::Jump(_), Terminator::Jump(_)) | (Terminator::Unreachable, Terminator::Unreachable) => true,
            (Terminator::Branch { cond: a, .. }, Terminator::Branch { cond: b, .. }) => a == b,
            (Terminator::Return { .. }, Terminator::Return { .. }) => true,
            (Terminator::TailCall { callee: a, .. }, Terminator::TailCall { callee: b, .. }) => a == b,
            (
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Return { .. }
                | Terminator::TailCall { .. }
                | Terminator::Unreachable,
                _,
            ) => false,
        };
        if !same || names.len() != places.len() {
            return Err(format!("a block's end has changed: {before:?} has become {after:?}"));
        }
        for (vreg, register) in names.into_iter().zip(places) {
            self.check_pinned(Place::Reg(vreg), Place::Reg(register))?;
            self.check_use(Place::Reg(vreg), Place::Reg(register))?;
        }
        Ok(())
    }
}

/// Keeps in `state` only the equalities that `incoming` has too. Says whether that took any away.
fn meet(state: &mut State, incoming: &State, first_class: Class, next_class: &mut Class) -> bool {
    let mut changed = false;
    let mut pairs: FxHashMap<(Class, Class), Class> = FxHashMap::default();
    // The class with which each class of the state was first seen: it keeps the number.
    let mut firsts: FxHashMap<Class, Class> = FxHashMap::default();
    let mut others = incoming.0.iter().peekable();
    let mut kept = Vec::with_capacity(state.0.len());
    for &(element, class) in &state.0 {
        while others.next_if(|(other, _)| *other < element).is_some() {}
        let Some(&(_, other)) = others.next_if(|(other, _)| *other == element) else {
            changed = true;
            continue;
        };
        let is_constant = class < first_class;
        let class = *pairs.entry((class, other)).or_insert_with(|| {
            let keeps = if is_constant { class == other } else { *firsts.entry(class).or_insert(other) == other };
            if keeps {
                return class;
            }
            changed = true;
            *next_class += 1;
            *next_class - 1
        });
        kept.push((element, class));
    }
    state.0 = kept;
    changed
}

/// How many outgoing slots the code names.
fn most_outgoing(function: &Function<VReg>) -> u32 {
    let mut most = 0;
    let mut see = |slot: Slot| match slot {
        Slot::Outgoing(number) => most = most.max(number + 1),
        Slot::Incoming(_) | Slot::Spill(_) => {}
    };
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            if let Op::Call { stack_args: count @ 1.., .. } = &inst.op {
                see(Slot::Outgoing(count - 1));
            }
            for (dst, src) in moves_of(&inst.op) {
                for place in [Some(dst), src.place()].into_iter().flatten() {
                    if let Place::Slot(slot) = place {
                        see(slot);
                    }
                }
            }
            for (_, place) in operands(&inst.op) {
                if let Place::Slot(slot) = place {
                    see(slot);
                }
            }
        }
    }
    most
}

/// A place within a function, for errors.
fn place(block: Block, index: usize) -> String {
    format!("{block}, instruction {index}")
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
