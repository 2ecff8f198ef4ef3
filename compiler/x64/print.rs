//! Prints machine code, over virtual or physical registers, in a syntax like Intel's; `parse` reads it back.
//!
//! ```text
//! fn gcd symbol=atl_gcd {
//! b0:
//!   parallel v0 = v2{rdi}, v1 = v3{rsi}
//!   jmp b1
//! b1: depth=1 ; preds=b0,b2
//!   test v1, v1
//!   je b3 else b2
//! ```
//!
//! Destinations come first. A pinned register shows its physical one in braces. 32-bit operands are `v3d` or `eax`, and
//! `dword [...]` in memory; what reads or writes elements of arrays says `qword` or `byte`. Instructions whose registers
//! the hardware implies show them all (`idiv rdx:rax, rcx`), so that nothing of the data is hidden.
//! Cost: linear.

use super::registers::{PReg, Reg, VReg};
use super::types::*;
use crate::semantics::Scalar;
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::support::span::Source;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

/// A register that knows how to show itself.
pub trait Shown: Reg {
    /// Its text at a width (`v3`, `v3d`, `rax`, `eax`), with its pin if it has one, and what the text refers to.
    fn show(self, width: Width, vregs: &PrimaryMap<VReg, VRegData>) -> (String, Entity);
}

impl Shown for VReg {
    fn show(self, width: Width, vregs: &PrimaryMap<VReg, VRegData>) -> (String, Entity) {
        let suffix = match width {
            Width::W32 => "d",
            Width::W64 => "",
        };
        let pin = vregs.get(self).and_then(|data| data.pinned).map_or(String::new(), |reg| format!("{{{reg}}}"));
        (format!("{self}{suffix}{pin}"), Entity::VReg(self.index() as u32))
    }
}

impl Shown for PReg {
    fn show(self, width: Width, _: &PrimaryMap<VReg, VRegData>) -> (String, Entity) {
        let text = match width {
            Width::W32 => self.name_32(),
            Width::W64 => self.name(),
        };
        (text.to_string(), Entity::PReg(u32::from(self.number())))
    }
}

/// The whole program; with a source, each change of source line is announced by a comment that shows it.
pub fn print<R: Shown>(program: &Program<R>, source: Option<&Source>) -> Listing {
    let names = |id: FuncId| program.functions[id].name.clone();
    let sections = program.functions.values().map(|function| section(function, &names, source)).collect();
    Listing { sections }
}

/// One function; `names` gives the listing names of the functions that it calls.
pub fn print_function<R: Shown>(
    function: &Function<R>,
    names: &dyn Fn(FuncId) -> String,
    source: Option<&Source>,
) -> Listing {
    Listing { sections: vec![section(function, names, source)] }
}

/// One instruction of a function.
pub fn print_inst<R: Shown>(function: &Function<R>, names: &dyn Fn(FuncId) -> String, op: &Op<R>) -> String {
    Printer { function, names }.inst(op).text().trim().to_string()
}

fn section<R: Shown>(function: &Function<R>, names: &dyn Fn(FuncId) -> String, source: Option<&Source>) -> Section {
    let printer = Printer { function, names };
    let mut lines = vec![header(function)];
    if function.frame != Frame::default() {
        lines.push(frame(&function.frame));
    }
    let mut preds: SecondaryMap<Block, SmallVec<[Block; 4]>> = SecondaryMap::new();
    for &block in &function.layout {
        for target in function.blocks[block].term.successors() {
            if preds[target].last() != Some(&block) {
                preds[target].push(block);
            }
        }
    }
    let mut shown = None;
    for &block in &function.layout {
        let data = &function.blocks[block];
        lines.push(label(block, data.loop_depth, &preds[block]));
        let insts = data.insts.iter().map(|inst| {
            let mut line = printer.inst(&inst.op);
            line.entity = inst.origin.expand().map(|origin| Entity::Inst(origin.index() as u32));
            (inst.span, line)
        });
        for (span, mut line) in insts.chain([(data.term_span, printer.terminator(&data.term))]) {
            let number = source.filter(|_| !span.is_none()).map(|source| source.line_of(span.start));
            if number.is_some() && number != shown {
                shown = number;
                lines.extend(source.zip(number).map(|(source, number)| source_line(source, number)));
            }
            line.span = span;
            lines.push(line);
        }
    }
    let mut end = Line::new();
    end.put(Kind::Plain, "}");
    lines.push(end);
    Section { function: Some(function.name.clone()), lines }
}

fn header<R>(function: &Function<R>) -> Line {
    let mut line = Line::new();
    line.put(Kind::Keyword, "fn").put(Kind::Plain, " ").put(Kind::Name, &function.name);
    line.put(Kind::Plain, " symbol=").put(Kind::Name, &function.symbol);
    if function.incoming > 0 {
        line.put(Kind::Plain, " incoming=").put(Kind::Literal, function.incoming.to_string());
    }
    line.put(Kind::Plain, " {");
    line
}

fn frame(frame: &Frame) -> Line {
    let mut line = Line::new();
    line.put(Kind::Keyword, "frame");
    line.put(Kind::Plain, " spills=").put(Kind::Literal, frame.spill_slots.to_string());
    line.put(Kind::Plain, " outgoing=").put(Kind::Literal, frame.outgoing.to_string());
    line.put(Kind::Plain, " saved=");
    for (position, reg) in frame.saved.iter().enumerate() {
        line.put(Kind::Plain, if position == 0 { "" } else { "," });
        line.refer(Kind::Value, reg.name(), Entity::PReg(u32::from(reg.number())));
    }
    if frame.calls {
        line.put(Kind::Plain, " ").put(Kind::Keyword, "calls");
    }
    line
}

fn label(block: Block, depth: u32, preds: &[Block]) -> Line {
    let mut line = Line { entity: Some(Entity::Block(block.index() as u32)), ..Line::default() };
    line.refer(Kind::Block, block.to_string(), Entity::Block(block.index() as u32)).put(Kind::Plain, ":");
    if depth > 0 {
        line.put(Kind::Plain, " depth=").put(Kind::Literal, depth.to_string());
    }
    if !preds.is_empty() {
        let names: Vec<String> = preds.iter().map(Block::to_string).collect();
        line.put(Kind::Plain, " ").put(Kind::Comment, format!("; preds={}", names.join(",")));
    }
    line
}

fn source_line(source: &Source, number: u32) -> Line {
    let mut line = Line::new();
    line.put(Kind::Plain, "  ").put(Kind::Comment, format!("; {number}: {}", source.line(number).trim()));
    line
}

struct Printer<'a, R: Shown> {
    function: &'a Function<R>,
    names: &'a dyn Fn(FuncId) -> String,
}

impl<R: Shown> Printer<'_, R> {
    fn inst(&self, op: &Op<R>) -> Line {
        use Width::W64;
        let mut line = Line::new();
        line.put(Kind::Plain, "  ");
        let out = &mut line;
        match op {
            Op::Mov { dst, src } => {
                self.mnemonic(out, "mov");
                self.reg_mem(out, W64, dst);
                self.comma(out);
                self.reg_mem(out, W64, src);
            }
            Op::Imm { dst, value } => {
                self.mnemonic(out, "mov");
                self.reg_mem(out, W64, dst);
                self.comma(out);
                out.put(Kind::Literal, value.to_string());
            }
            Op::StrAddress { dst, string } => {
                self.mnemonic(out, "lea");
                self.reg(out, W64, *dst);
                self.comma(out);
                out.put(Kind::Name, string.to_string());
            }
            Op::Parallel { moves } => {
                out.put(Kind::Keyword, "parallel");
                for (position, (dst, src)) in moves.iter().enumerate() {
                    out.put(Kind::Plain, if position == 0 { " " } else { ", " });
                    self.reg_mem(out, W64, dst);
                    out.put(Kind::Plain, " = ");
                    self.reg_mem_imm(out, W64, src);
                }
            }
            Op::Load { ty, dst, src } => {
                self.mnemonic(out, if *ty == Scalar::Bool { "movzx" } else { "mov" });
                self.reg(out, W64, *dst);
                self.comma(out);
                self.element(out, *ty, src);
            }
            Op::Store { ty, dst, src } => {
                self.mnemonic(out, "mov");
                self.element(out, *ty, dst);
                self.comma(out);
                match src {
                    StoreSource::Reg(reg) => self.reg(out, W64, *reg),
                    StoreSource::Imm(value) => {
                        out.put(Kind::Literal, value.to_string());
                    }
                }
            }
            Op::Lea { width, dst, src } => {
                self.mnemonic(out, "lea");
                self.reg(out, *width, *dst);
                self.comma(out);
                self.address(out, src);
            }
            Op::Alu { op, width, dst, src } => {
                self.mnemonic(out, op.name());
                self.reg_mem(out, *width, dst);
                self.comma(out);
                self.reg_mem_imm(out, *width, src);
            }
            Op::Unary { op, width, dst } => {
                self.mnemonic(out, op.name());
                self.reg_mem(out, *width, dst);
            }
            Op::Shift { op, width, dst, count } => {
                self.mnemonic(out, op.name());
                self.reg_mem(out, *width, dst);
                self.comma(out);
                match count {
                    Count::Imm(count) => {
                        out.put(Kind::Literal, count.to_string());
                    }
                    Count::Cl(reg) => self.reg(out, W64, *reg),
                }
            }
            Op::Imul { dst, src } => {
                self.mnemonic(out, "imul");
                self.reg(out, W64, *dst);
                self.comma(out);
                self.reg_mem(out, W64, src);
            }
            Op::ImulImm { dst, src, imm } => {
                self.mnemonic(out, "imul");
                self.reg(out, W64, *dst);
                self.comma(out);
                self.reg_mem(out, W64, src);
                self.comma(out);
                out.put(Kind::Literal, imm.to_string());
            }
            Op::MulHigh { signed, lo, hi, src } => {
                self.mnemonic(out, if *signed { "imul" } else { "mul" });
                self.pair(out, W64, *hi, *lo);
                self.comma(out);
                self.reg_mem(out, W64, src);
            }
            Op::SignExtend { hi, lo } => {
                self.mnemonic(out, "cqo");
                self.pair(out, W64, *hi, *lo);
            }
            Op::Div { signed, width, lo, hi, src } => {
                self.mnemonic(out, if *signed { "idiv" } else { "div" });
                self.pair(out, *width, *hi, *lo);
                self.comma(out);
                self.reg_mem(out, *width, src);
            }
            Op::Cmp { width, lhs, rhs } => {
                self.mnemonic(out, "cmp");
                self.reg_mem(out, *width, lhs);
                self.comma(out);
                self.reg_mem_imm(out, *width, rhs);
            }
            Op::CmpByte { lhs, imm } => {
                self.mnemonic(out, "cmp");
                self.element(out, Scalar::Bool, lhs);
                self.comma(out);
                out.put(Kind::Literal, imm.to_string());
            }
            Op::Test { width, lhs, rhs } => {
                self.mnemonic(out, "test");
                self.reg_mem(out, *width, lhs);
                self.comma(out);
                self.reg_mem_imm(out, *width, rhs);
            }
            Op::Set { cond, dst } => {
                self.mnemonic(out, &format!("set{}", cond.name()));
                self.reg(out, W64, *dst);
            }
            Op::Cmov { cond, dst, src } => {
                self.mnemonic(out, &format!("cmov{}", cond.name()));
                self.reg(out, W64, *dst);
                self.comma(out);
                self.reg_mem(out, W64, src);
            }
            Op::Call { callee, args, stack_args, result } => {
                if let Some(result) = result {
                    self.reg(out, W64, *result);
                    out.put(Kind::Plain, " = ");
                }
                self.mnemonic(out, "call");
                match callee {
                    Callee::Function(id) => self.function_name(out, *id),
                    Callee::Runtime(function) => {
                        out.put(Kind::Name, function.symbol());
                    }
                }
                self.args(out, args);
                if *stack_args > 0 {
                    out.put(Kind::Plain, " stack=").put(Kind::Literal, stack_args.to_string());
                }
            }
            Op::Trap { cond, kind, args } => {
                self.mnemonic(out, &format!("trap{}", cond.map_or("", Cond::name)));
                out.put(Kind::Name, kind.name());
                for arg in args {
                    self.comma(out);
                    self.reg_mem_imm(out, W64, arg);
                }
            }
            Op::Push { src } => {
                self.mnemonic(out, "push");
                self.reg_mem(out, W64, src);
            }
            Op::Pop { dst } => {
                self.mnemonic(out, "pop");
                self.reg_mem(out, W64, dst);
            }
            Op::Xchg { a, b } => {
                self.mnemonic(out, "xchg");
                self.reg(out, W64, *a);
                self.comma(out);
                self.reg(out, W64, *b);
            }
        }
        line
    }

    fn terminator(&self, term: &Terminator<R>) -> Line {
        let mut line = Line::new();
        line.put(Kind::Plain, "  ");
        let out = &mut line;
        match term {
            Terminator::Jump(target) => {
                self.mnemonic(out, "jmp");
                self.block(out, *target);
            }
            Terminator::Branch { cond, then, els } => {
                self.mnemonic(out, &format!("j{}", cond.name()));
                self.block(out, *then);
                out.put(Kind::Plain, " ").put(Kind::Keyword, "else").put(Kind::Plain, " ");
                self.block(out, *els);
            }
            Terminator::Return { value } => {
                out.put(Kind::Keyword, "ret");
                if let Some(value) = value {
                    out.put(Kind::Plain, " ");
                    self.reg(out, Width::W64, *value);
                }
            }
            Terminator::TailCall { callee, args } => {
                self.mnemonic(out, "tailcall");
                self.function_name(out, *callee);
                self.args(out, args);
            }
            Terminator::Unreachable => {
                out.put(Kind::Keyword, "unreachable");
            }
        }
        line
    }

    fn mnemonic(&self, out: &mut Line, name: &str) {
        out.put(Kind::Keyword, name).put(Kind::Plain, " ");
    }

    fn comma(&self, out: &mut Line) {
        out.put(Kind::Plain, ", ");
    }

    fn block(&self, out: &mut Line, block: Block) {
        out.refer(Kind::Block, block.to_string(), Entity::Block(block.index() as u32));
    }

    fn function_name(&self, out: &mut Line, id: FuncId) {
        out.refer(Kind::Name, (self.names)(id), Entity::Function(id.index() as u32));
    }

    fn args(&self, out: &mut Line, args: &[R]) {
        out.put(Kind::Plain, "(");
        for (position, arg) in args.iter().enumerate() {
            if position > 0 {
                self.comma(out);
            }
            self.reg(out, Width::W64, *arg);
        }
        out.put(Kind::Plain, ")");
    }

    fn reg(&self, out: &mut Line, width: Width, reg: R) {
        let (text, entity) = reg.show(width, &self.function.vregs);
        out.refer(Kind::Value, text, entity);
    }

    fn pair(&self, out: &mut Line, width: Width, hi: R, lo: R) {
        self.reg(out, width, hi);
        out.put(Kind::Plain, ":");
        self.reg(out, width, lo);
    }

    fn reg_mem(&self, out: &mut Line, width: Width, operand: &RegMem<R>) {
        match operand {
            RegMem::Reg(reg) => self.reg(out, width, *reg),
            RegMem::Slot(slot) => {
                self.size(out, width);
                self.slot(out, *slot);
            }
            RegMem::Mem(address) => {
                self.size(out, width);
                self.address(out, address);
            }
        }
    }

    fn reg_mem_imm(&self, out: &mut Line, width: Width, operand: &RegMemImm<R>) {
        match operand {
            RegMemImm::Reg(reg) => self.reg_mem(out, width, &RegMem::Reg(*reg)),
            RegMemImm::Slot(slot) => self.reg_mem(out, width, &RegMem::Slot(*slot)),
            RegMemImm::Mem(address) => self.reg_mem(out, width, &RegMem::Mem(*address)),
            RegMemImm::Imm(value) => {
                out.put(Kind::Literal, value.to_string());
            }
        }
    }

    fn size(&self, out: &mut Line, width: Width) {
        if width == Width::W32 {
            out.put(Kind::Type, "dword").put(Kind::Plain, " ");
        }
    }

    fn element(&self, out: &mut Line, ty: Scalar, address: &Address<R>) {
        let size = match ty {
            Scalar::Int => "qword",
            Scalar::Bool => "byte",
        };
        out.put(Kind::Type, size).put(Kind::Plain, " ");
        self.address(out, address);
    }

    fn slot(&self, out: &mut Line, slot: Slot) {
        match slot {
            Slot::Spill(number) => out.refer(Kind::Value, format!("[spill{number}]"), Entity::Slot(number)),
            Slot::Incoming(number) => out.put(Kind::Value, format!("[in{number}]")),
            Slot::Outgoing(number) => out.put(Kind::Value, format!("[out{number}]")),
        };
    }

    fn address(&self, out: &mut Line, address: &Address<R>) {
        out.put(Kind::Plain, "[");
        let mut first = true;
        if let Some(base) = address.base {
            self.reg(out, Width::W64, base);
            first = false;
        }
        if let Some((index, scale)) = address.index {
            if !first {
                out.put(Kind::Plain, "+");
            }
            self.reg(out, Width::W64, index);
            // Without a base the factor 1 must show, or the index would read as the base.
            if scale > 1 || first {
                out.put(Kind::Plain, "*").put(Kind::Literal, scale.to_string());
            }
            first = false;
        }
        if first {
            out.put(Kind::Literal, address.disp.to_string());
        } else if address.disp != 0 {
            out.put(Kind::Plain, if address.disp < 0 { "-" } else { "+" });
            out.put(Kind::Literal, address.disp.unsigned_abs().to_string());
        }
        out.put(Kind::Plain, "]");
    }
}
