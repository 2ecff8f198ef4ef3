//! Where the stack frame is made: as late as possible, so that ways out that need none do not pay for one.
//!
//! The frame is made at the start of one block, which dominates everything that needs it and is in no cycle; whatever that
//! block reaches has the frame, and so must be reached through it alone. What needs the frame: calls, slots other than the
//! caller's, callee-saved registers.
//!
//! Parameters that live across calls are copied to callee-saved registers right at the start, which would make the entry
//! need the frame. Such copies are first sunk over the branch, where the test can as well read the argument's register:
//!
//! ```text
//! b0: mov rbx, rdi                     b0: cmp rdi, 2
//!     cmp rbx, 2                           jl b1 else b2
//!     jl b1 else b2             →      b1: mov rax, rdi · ret
//! b1: mov rax, rbx · ret               b2: mov rbx, rdi           (the frame is made here)
//! b2: …                                    …
//! ```
//!
//! Source: F. Chow, "Minimizing Register Usage Penalty at Procedure Calls" (1988); one region instead of several.
//! **in** allocated code · **out** the same code, copies sunk where that lets the frame come later. Cost: near-linear.

use crate::graph::{dominators, postorder};
use crate::x64::*;
use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

/// Where a function has its frame.
pub struct Frames {
    /// The block at whose start the frame is made; `None` if nothing needs it.
    pub made_at: Option<Block>,
    /// The blocks without it.
    bare: EntitySet<Block>,
}

impl Frames {
    /// Finds the latest place for the frame.
    pub fn compute(function: &Function<PReg>) -> Frames {
        let entry = function.layout[0];
        let successors = |block: Block| function.blocks[block].term.successors().into_iter();
        if needs_frame(function, entry) {
            return Frames { made_at: Some(entry), bare: EntitySet::new() };
        }
        let postorder = postorder::compute(entry, successors);
        let mut preds: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
        for &block in &postorder {
            for target in successors(block) {
                preds[target].push(block);
            }
        }
        let tree = dominators::compute(&postorder, successors, |block| preds[block].iter().copied());
        let needing = postorder.iter().copied().filter(|block| needs_frame(function, *block));
        let mut place = needing.reduce(|a, b| tree.common(a, b));
        // Mostly the first place is good or the next one above it; where neither is, little is lost.
        for _ in 0..8 {
            let Some(block) = place.filter(|block| *block != entry) else { break };
            if let Some(framed) = reached_through(block, &tree, successors) {
                return Frames { made_at: place, bare: without(&postorder, &framed) };
            }
            place = tree.idom(block);
        }
        match place {
            Some(_) => Frames { made_at: Some(entry), bare: EntitySet::new() },
            None => Frames { made_at: None, bare: without(&postorder, &EntitySet::new()) },
        }
    }

    /// Does the block have the frame, behind its making?
    pub fn has(&self, block: Block) -> bool {
        !self.bare.contains(block)
    }
}

fn without(blocks: &[Block], framed: &EntitySet<Block>) -> EntitySet<Block> {
    let mut result = EntitySet::new();
    for &block in blocks {
        if !framed.contains(block) {
            result.insert(block);
        }
    }
    result
}

/// What the place reaches, if it is in no cycle and dominates all of it.
fn reached_through<I: Iterator<Item = Block>>(
    place: Block,
    tree: &dominators::Tree<Block>,
    successors: impl Fn(Block) -> I,
) -> Option<EntitySet<Block>> {
    let mut reached = EntitySet::new();
    reached.insert(place);
    let mut work = vec![place];
    while let Some(block) = work.pop() {
        for target in successors(block) {
            if target == place || !tree.dominates(place, target) {
                return None;
            }
            if reached.insert(target) {
                work.push(target);
            }
        }
    }
    Some(reached)
}

fn needs_frame(function: &Function<PReg>, block: Block) -> bool {
    function.blocks[block].insts.iter().any(|inst| {
        let mut needs = matches!(inst.op, Op::Call { .. });
        inst.op.for_each_reg(|reg, _, _| needs |= RegSet::CALLEE_SAVED.contains(reg));
        inst.op.for_each_slot(|slot| needs |= !matches!(slot, Slot::Incoming(_)));
        needs
    })
}

/// Sinks copies where that lets the frame come later; how many were sunk.
pub fn run(function: &mut Function<PReg>) -> usize {
    let mut preds: SecondaryMap<Block, u32> = SecondaryMap::new();
    for &block in &function.layout {
        for target in function.blocks[block].term.successors() {
            preds[target] += 1;
        }
    }
    let mut block = function.layout[0];
    let mut sunk = 0;
    // Each round goes one block down; a function asks only so many questions before it makes its frame.
    for _ in 0..8 {
        let Terminator::Branch { then, els, .. } = function.blocks[block].term else { break };
        if then == els || preds[then] != 1 || preds[els] != 1 {
            break;
        }
        let copies = sinkable(&function.blocks[block]);
        let saved = [block, then, els].map(|block| (block, function.blocks[block].insts.clone()));
        sink(function, block, &copies, [then, els]);
        let needs = [block, then, els].map(|block| needs_frame(function, block));
        let next = match needs {
            [false, true, false] => then,
            [false, false, true] => els,
            // Without a way out that needs no frame, the copies are better made once.
            [true, _, _] | [_, true, true] | [_, false, false] => {
                for (block, insts) in saved {
                    function.blocks[block].insts = insts;
                }
                break;
            }
        };
        sunk += copies.len();
        block = next;
    }
    sunk
}

/// A copy `to ← from` from a register that calls do not keep to one that they do.
#[derive(Clone, Copy)]
struct Copied {
    position: usize,
    to: PReg,
    from: PReg,
}

/// The copies of a block that could as well stand behind it: nothing behind them in the block changes either register.
fn sinkable(data: &BlockData<PReg>) -> SmallVec<[Copied; 4]> {
    let mut written = RegSet::EMPTY;
    let mut result = SmallVec::new();
    for (position, inst) in data.insts.iter().enumerate().rev() {
        if let Op::Mov { dst: RegMem::Reg(to), src: RegMem::Reg(from) } = inst.op
            && RegSet::CALLEE_SAVED.contains(to)
            && RegSet::CALLER_SAVED.contains(from)
            && !written.contains(to)
            && !written.contains(from)
        {
            result.push(Copied { position, to, from });
        }
        written = written.union(changed(&inst.op));
    }
    result
}

/// The registers that the instruction changes.
fn changed(op: &Op<PReg>) -> RegSet {
    let mut result = op.clobbers();
    op.for_each_reg(|reg, role, _| {
        if role != Role::Use {
            result = result.with(reg);
        }
    });
    result
}

/// The instruction, reading the sources of copies instead of the copies.
fn read_sources(op: &Op<PReg>, copies: &[Copied]) -> Op<PReg> {
    op.map(|reg, role, _| {
        let copy = copies.iter().find(|copy| copy.to == reg && role == Role::Use);
        RegMem::Reg(copy.map_or(reg, |copy| copy.from))
    })
}

fn sink(function: &mut Function<PReg>, block: Block, copies: &[Copied], targets: [Block; 2]) {
    let data = &mut function.blocks[block];
    let removed: Vec<Inst<PReg>> = copies.iter().map(|copy| data.insts[copy.position].clone()).collect();
    let mut insts = Vec::with_capacity(data.insts.len());
    for (position, inst) in data.insts.iter().enumerate() {
        if copies.iter().all(|copy| copy.position != position) {
            // Only what stands behind a copy reads it.
            let made: SmallVec<[Copied; 4]> = copies.iter().copied().filter(|copy| copy.position < position).collect();
            insts.push(Inst { op: read_sources(&inst.op, &made), ..inst.clone() });
        }
    }
    data.insts = insts;
    for target in targets {
        let data = &mut function.blocks[target];
        if !leaves(data) || !read_throughout(data, copies) {
            let rest = std::mem::take(&mut data.insts);
            // In the order in which they stood, which is the reverse of that in which they were found.
            data.insts = removed.iter().rev().cloned().chain(rest).collect();
        }
    }
}

/// Does the block end the function, so that nothing behind it reads a copy?
fn leaves(data: &BlockData<PReg>) -> bool {
    matches!(data.term, Terminator::Return { .. } | Terminator::TailCall { .. })
}

/// Lets all reads of the copies in the block read their sources, if those are there as long as they are read.
fn read_throughout(data: &mut BlockData<PReg>, copies: &[Copied]) -> bool {
    let mut written = RegSet::EMPTY;
    for inst in &data.insts {
        let mut lost = false;
        inst.op.for_each_reg(|reg, role, _| {
            if let Some(copy) = copies.iter().find(|copy| copy.to == reg) {
                // To change the copy, it must be there.
                lost |= role != Role::Use || written.contains(copy.from);
            }
        });
        if lost {
            return false;
        }
        written = written.union(changed(&inst.op));
    }
    for inst in &mut data.insts {
        inst.op = read_sources(&inst.op, copies);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::span::Span;
    use cranelift_entity::{EntityRef, PrimaryMap};

    fn b(number: usize) -> Block {
        Block::new(number)
    }

    fn branch(then: usize, els: usize) -> Terminator<PReg> {
        Terminator::Branch { cond: Cond::L, then: b(then), els: b(els) }
    }

    fn mov(dst: PReg, src: PReg) -> Op<PReg> {
        Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
    }

    fn cmp(reg: PReg) -> Op<PReg> {
        Op::Cmp { width: Width::W64, lhs: RegMem::Reg(reg), rhs: RegMemImm::Imm(2) }
    }

    fn call() -> Op<PReg> {
        let callee = Callee::Runtime(runtime::RuntimeFn::Eof);
        Op::Call { callee, args: SmallVec::new(), stack_args: 0, result: None }
    }

    const RETURN: Terminator<PReg> = Terminator::Return { value: Some(PReg::RAX) };

    fn function(blocks: Vec<(Vec<Op<PReg>>, Terminator<PReg>)>) -> Function<PReg> {
        let mut function = Function {
            name: "f".to_string(),
            symbol: "atl_f".to_string(),
            incoming: 0,
            layout: Vec::new(),
            blocks: PrimaryMap::new(),
            vregs: PrimaryMap::new(),
            frame: Frame::default(),
        };
        for (ops, term) in blocks {
            let insts = ops.into_iter().map(|op| Inst { op, span: Span::NONE, origin: None.into() }).collect();
            let block = function.blocks.push(BlockData { insts, term, term_span: Span::NONE, loop_depth: 0 });
            function.layout.push(block);
        }
        function
    }

    fn place(function: &Function<PReg>) -> (Option<usize>, Vec<usize>) {
        let frames = Frames::compute(function);
        let framed = function.layout.iter().filter(|block| frames.has(**block)).map(|block| block.index()).collect();
        (frames.made_at.map(|block| block.index()), framed)
    }

    #[test]
    fn a_parameter_is_kept_only_where_the_frame_is() {
        let (n, kept) = (PReg::RDI, PReg::RBX);
        let mut f = function(vec![
            (vec![mov(kept, n), cmp(kept)], branch(1, 2)),
            (vec![mov(PReg::RAX, kept)], RETURN),
            (vec![call(), mov(PReg::RAX, kept)], RETURN),
        ]);
        assert_eq!(place(&f), (Some(0), vec![0, 1, 2]));
        assert_eq!(run(&mut f), 1);
        let ops = |block: usize| f.blocks[b(block)].insts.iter().map(|inst| inst.op.clone()).collect::<Vec<_>>();
        assert_eq!(ops(0), [cmp(n)]);
        assert_eq!(ops(1), [mov(PReg::RAX, n)]);
        assert_eq!(ops(2), [mov(kept, n), call(), mov(PReg::RAX, kept)]);
        assert_eq!(place(&f), (Some(2), vec![2]));
    }

    #[test]
    fn copies_stay_where_nothing_is_gained() {
        let (n, kept) = (PReg::RDI, PReg::RBX);
        // Both ways call; or the argument's register is lost before its copy is read.
        let both = vec![
            (vec![mov(kept, n), cmp(kept)], branch(1, 2)),
            (vec![call(), mov(PReg::RAX, kept)], RETURN),
            (vec![call(), mov(PReg::RAX, kept)], RETURN),
        ];
        let lost = vec![
            (vec![mov(kept, n), cmp(kept)], branch(1, 2)),
            (vec![mov(n, PReg::RSI), mov(PReg::RAX, kept)], RETURN),
            (vec![call(), mov(PReg::RAX, kept)], RETURN),
        ];
        let overwritten = vec![
            (vec![mov(kept, n), mov(n, PReg::RSI), cmp(kept)], branch(1, 2)),
            (vec![mov(PReg::RAX, kept)], RETURN),
            (vec![call(), mov(PReg::RAX, kept)], RETURN),
        ];
        for blocks in [both, lost, overwritten] {
            let mut f = function(blocks);
            let before = f.clone();
            assert_eq!(run(&mut f), 0);
            assert_eq!(f, before);
        }
    }

    #[test]
    fn the_frame_is_not_made_in_a_loop_nor_where_ways_meet() {
        // b1 is a loop that calls; b2 follows it.
        let round = function(vec![
            (vec![cmp(PReg::RDI)], branch(3, 1)),
            (vec![call(), cmp(PReg::RAX)], branch(1, 2)),
            (vec![], RETURN),
            (vec![], RETURN),
        ]);
        assert_eq!(place(&round), (Some(0), vec![0, 1, 2, 3]));
        // Both ways meet in b3: it would be reached with and without the frame.
        let meeting = function(vec![
            (vec![cmp(PReg::RDI)], branch(1, 2)),
            (vec![call()], Terminator::Jump(b(3))),
            (vec![], Terminator::Jump(b(3))),
            (vec![], RETURN),
        ]);
        assert_eq!(place(&meeting), (Some(0), vec![0, 1, 2, 3]));
        let none = function(vec![(vec![cmp(PReg::RDI)], branch(1, 2)), (vec![], RETURN), (vec![], RETURN)]);
        assert_eq!(place(&none), (None, vec![]));
    }
}
