//! Allocated machine code → bytes.
//!
//! Walks the blocks in their order and appends each instruction's bytes; jumps to the block that comes next are left out.
//! What a trap does stands behind the last block: code that brings the arguments of the run-time error into place and
//! calls the runtime; traps that do the same share it.
//!
//! ```text
//!   cmp rsi, [rdi-8]              48 3B 77 F8
//!   trapae index, rsi, [rdi-8]    73 ..              jae stub
//!   …
//!                              stub: push [rdi-8] · push rsi · pop rdi · pop rsi · mov edx, 3 · mov ecx, 9
//!                                    call atlrt_trap_index
//! ```
//!
//! **in** allocated code that passes its verifier · **out** bytes and relocations; what cannot be said in bytes is an
//! internal error. Cost: linear.

mod buffer;
mod frame;
mod instruction;
#[cfg(test)]
mod tests;

use super::code::{FunctionCode, ProgramCode, Target};
use super::shrink_wrap::Frames;
use crate::graph::postorder;
use crate::support::internal::Internal;
use crate::support::span::{Position, Positions, Span};
use crate::x64::*;
use buffer::{Buffer, Label};
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use frame::Layout;
use instruction::Context;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Encodes the whole program.
pub fn run(program: &Program<PReg>) -> Result<ProgramCode, Internal> {
    let functions = program.functions.values().map(|function| encode(function, &program.positions));
    Ok(ProgramCode {
        functions: functions.collect::<Result<_, _>>()?,
        entry: program.entry,
        strings: program.strings.clone(),
        source_name: program.source_name.clone(),
    })
}

/// Encodes one function; `positions` gives the lines and columns that run-time errors show.
pub fn encode(function: &Function<PReg>, positions: &Positions) -> Result<FunctionCode, Internal> {
    encode_function(function, positions).map_err(|error| error.in_function(&function.name))
}

fn encode_function(function: &Function<PReg>, positions: &Positions) -> Result<FunctionCode, Internal> {
    let layout = Layout::of(function)?;
    let frames = Frames::compute(function);
    let mut encoder = Encoder {
        function,
        positions,
        layout: &layout,
        frames: &frames,
        buffer: Buffer::default(),
        labels: SecondaryMap::new(),
        stubs: Vec::new(),
        stub_labels: FxHashMap::default(),
    };
    for &block in &function.layout {
        encoder.labels[block] = Some(encoder.buffer.label());
    }
    let heads = loop_heads(function);
    for (position, &block) in function.layout.iter().enumerate() {
        let next = function.layout.get(position + 1).copied();
        if heads.contains(block) {
            encoder.buffer.align(LOOP_ALIGNMENT, LOOP_PADDING);
        }
        encoder.block(block, next)?;
    }
    encoder.stubs()?;
    let Encoder { buffer, labels, .. } = encoder;
    let finished = buffer.finish()?;
    let mut blocks = vec![None; function.blocks.len()];
    for &block in &function.layout {
        blocks[block.index()] = labels[block].and_then(|label| finished.labels[label]);
    }
    Ok(FunctionCode {
        name: function.name.clone(),
        symbol: function.symbol.clone(),
        bytes: finished.bytes,
        relocs: finished.relocs,
        marks: finished.marks,
        blocks,
    })
}

/// The first block of a loop starts at a multiple of this, unless more than [`LOOP_PADDING`] bytes would be lost: the
/// processor fetches code in pieces of this size.
const LOOP_ALIGNMENT: u32 = 16;
const LOOP_PADDING: u32 = 10;

/// The blocks at which loops start over and that are jumped to from below: those that only fall through gain nothing.
fn loop_heads(function: &Function<PReg>) -> EntitySet<Block> {
    let postorder =
        postorder::compute(function.layout[0], |block| function.blocks[block].term.successors().into_iter());
    // An edge to a block that comes later in postorder, or to itself, closes a loop.
    let mut numbers: SecondaryMap<Block, usize> = SecondaryMap::with_default(usize::MAX);
    for (number, &block) in postorder.iter().enumerate() {
        numbers[block] = number;
    }
    let mut heads = EntitySet::new();
    let mut above = EntitySet::new();
    for &block in &function.layout {
        above.insert(block);
        for target in function.blocks[block].term.successors() {
            if above.contains(target) && numbers[target] >= numbers[block] && numbers[block] != usize::MAX {
                heads.insert(target);
            }
        }
    }
    heads
}

/// What a stub does: stubs that do the same are one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Stub {
    kind: TrapKind,
    args: SmallVec<[RegMemImm<PReg>; 2]>,
    /// Arguments in slots are reached through the frame.
    framed: bool,
    position: Option<Position>,
}

struct Encoder<'a> {
    function: &'a Function<PReg>,
    positions: &'a Positions,
    layout: &'a Layout,
    frames: &'a Frames,
    buffer: Buffer,
    labels: SecondaryMap<Block, Option<Label>>,
    /// Code out of line, in the order of first use, with the span of its first user.
    stubs: Vec<(Stub, Label, Span)>,
    stub_labels: FxHashMap<Stub, Label>,
}

impl Encoder<'_> {
    fn block(&mut self, block: Block, next: Option<Block>) -> Result<(), Internal> {
        let function = self.function;
        let data = &function.blocks[block];
        let label = self.label(block)?;
        self.buffer.bind(label);
        let framed = self.frames.has(block);
        if self.frames.made_at == Some(block) {
            instruction::prologue(&mut self.buffer, self.layout);
        }
        let live = flags_live(data);
        let mut pushed = 0;
        for (inst, flags_live) in data.insts.iter().zip(live) {
            self.buffer.mark(inst.span);
            let context = Context { layout: self.layout, framed, pushed, flags_live };
            match &inst.op {
                Op::Call { callee, .. } => {
                    if pushed != 0 {
                        return Err(Internal::new(block, "a call stands between a push and its pop"));
                    }
                    instruction::call(&mut self.buffer, target(*callee));
                }
                Op::Trap { cond, kind, args } => {
                    if pushed != 0 {
                        return Err(Internal::new(block, "a trap stands between a push and its pop"));
                    }
                    let position = self.positions.position(inst.span);
                    let stub = Stub { kind: *kind, args: args.clone(), framed, position };
                    let label = self.stub(stub, inst.span);
                    self.buffer.jump(*cond, label);
                }
                Op::Push { .. } => {
                    context.encode(&mut self.buffer, &inst.op)?;
                    pushed += 8;
                }
                Op::Pop { .. } => {
                    context.encode(&mut self.buffer, &inst.op)?;
                    pushed -= 8;
                }
                op => context.encode(&mut self.buffer, op).map_err(|error| error_in(error, block, op))?,
            }
        }
        if pushed != 0 {
            return Err(Internal::new(block, "what a block pushes it must pop"));
        }
        self.buffer.mark(data.term_span);
        self.terminator(block, &data.term, next)
    }

    fn label(&self, block: Block) -> Result<Label, Internal> {
        self.labels[block].ok_or_else(|| Internal::new(block, "a block that is jumped to is not in the layout"))
    }

    fn terminator(&mut self, block: Block, term: &Terminator<PReg>, next: Option<Block>) -> Result<(), Internal> {
        match term {
            Terminator::Jump(target) => self.go(None, *target, next)?,
            Terminator::Branch { then, els, .. } if then == els => self.go(None, *then, next)?,
            Terminator::Branch { cond, then, els } if Some(*then) == next => {
                self.go(Some(cond.negate()), *els, next)?
            }
            Terminator::Branch { cond, then, els } => {
                self.go(Some(*cond), *then, next)?;
                self.go(None, *els, next)?;
            }
            Terminator::Return { value } => {
                if value.is_some_and(|value| value != RESULT) {
                    return Err(Internal::new(block, "a result is returned in rax"));
                }
                self.epilogue(block);
                instruction::ret(&mut self.buffer);
            }
            Terminator::TailCall { callee, .. } => {
                self.epilogue(block);
                instruction::jump_to_function(&mut self.buffer, Target::Function(*callee));
            }
            Terminator::Unreachable => instruction::undefined(&mut self.buffer),
        }
        Ok(())
    }

    fn epilogue(&mut self, block: Block) {
        if self.frames.has(block) {
            instruction::epilogue(&mut self.buffer, self.layout);
        }
    }

    /// A jump, unless the target comes next.
    fn go(&mut self, cond: Option<Cond>, target: Block, next: Option<Block>) -> Result<(), Internal> {
        if Some(target) != next {
            let label = self.label(target)?;
            self.buffer.jump(cond, label);
        }
        Ok(())
    }

    fn stub(&mut self, stub: Stub, span: Span) -> Label {
        if let Some(label) = self.stub_labels.get(&stub) {
            return *label;
        }
        let label = self.buffer.label();
        self.stubs.push((stub.clone(), label, span));
        self.stub_labels.insert(stub, label);
        label
    }

    fn stubs(&mut self) -> Result<(), Internal> {
        for (stub, label, span) in std::mem::take(&mut self.stubs) {
            self.buffer.mark(span);
            self.buffer.bind(label);
            let context = Context { layout: self.layout, framed: stub.framed, pushed: 0, flags_live: false };
            self.stub_args(&stub.args, context)?;
            let (line, column) = stub.position.map_or((0, 0), |position| (position.line, position.column));
            let count = stub.args.len();
            context.load_constant(&mut self.buffer, ARGUMENTS[count], i64::from(line));
            context.load_constant(&mut self.buffer, ARGUMENTS[count + 1], i64::from(column));
            instruction::call(&mut self.buffer, Target::Runtime(stub.kind.handler()));
        }
        Ok(())
    }

    /// Brings the arguments into the first argument registers, all at once: through the stack if there are several, which
    /// is shorter than the moves and asks nothing of the order. Nobody comes back to miss what stays pushed.
    fn stub_args(&mut self, args: &[RegMemImm<PReg>], context: Context<'_>) -> Result<(), Internal> {
        let is_wide = |arg: &RegMemImm<PReg>| matches!(arg, RegMemImm::Imm(value) if i32::try_from(*value).is_err());
        let places = args.iter().zip(ARGUMENTS).filter(|(arg, place)| **arg != RegMemImm::Reg(*place));
        let (wide, moved): (Vec<_>, Vec<_>) = places.partition(|(arg, _)| is_wide(arg));
        if let [(arg, place)] = moved.as_slice() {
            match RegMem::try_from(**arg) {
                Ok(src) => context.encode(&mut self.buffer, &Op::Mov { dst: RegMem::Reg(*place), src })?,
                Err(value) => context.load_constant(&mut self.buffer, *place, value),
            }
        } else {
            let mut pushed = 0;
            for (arg, _) in moved.iter().rev() {
                Context { pushed, ..context }.push(&mut self.buffer, arg)?;
                pushed += 8;
            }
            for (_, place) in &moved {
                Context { pushed, ..context }.encode(&mut self.buffer, &Op::Pop { dst: RegMem::Reg(*place) })?;
                pushed -= 8;
            }
        }
        for (arg, place) in wide {
            if let RegMemImm::Imm(value) = arg {
                context.load_constant(&mut self.buffer, place, *value);
            }
        }
        Ok(())
    }
}

/// For each instruction: does something behind it read the flags as they are before it?
fn flags_live(data: &BlockData<PReg>) -> Vec<bool> {
    let mut live = matches!(data.term, Terminator::Branch { .. });
    let mut result = vec![false; data.insts.len()];
    for (inst, entry) in data.insts.iter().zip(&mut result).rev() {
        *entry = live;
        live = inst.op.reads_flags() || live && !inst.op.writes_flags();
    }
    result
}

fn target(callee: Callee) -> Target {
    match callee {
        Callee::Function(id) => Target::Function(id),
        Callee::Runtime(function) => Target::Runtime(function),
    }
}

fn error_in(error: Internal, block: Block, op: &Op<PReg>) -> Internal {
    let entity = if error.entity.is_empty() { format!("{op:?} in {block}") } else { error.entity };
    Internal { entity, ..error }
}
