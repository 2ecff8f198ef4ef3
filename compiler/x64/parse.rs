//! Reads machine code as `print` writes it: the two are exact mirrors, over virtual and over physical registers.
//!
//! A line is a function's head, its frame, a block's label, an instruction or the closing brace; comments (`; …`) and empty
//! lines are skipped. Names of callees may stand before their functions do. What the text does not show comes back empty:
//! spans, origins, the values of registers, strings and positions.
//!
//! **in** text · **out** functions, or the first mistake with its place. Cost: linear.

use super::registers::{PReg, Reg, VReg};
use super::runtime::RuntimeFn;
use super::types::*;
use crate::semantics::Scalar;
use crate::support::diagnostics::{Code as ErrorCode, Diagnostic};
use crate::support::span::{Positions, Source, Span};
use cranelift_entity::{EntityRef, EntitySet, PrimaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The code of every mistake in text of machine code.
pub const MALFORMED: ErrorCode = ErrorCode(951);

/// A register that can be read from text.
pub trait Read: Reg {
    /// The register, its width, and its pin, from the text that `print` gives it.
    fn read(text: &str) -> Option<(Self, Width, Option<PReg>)>;

    /// Notes what the text says of a register.
    fn note(self, pin: Option<PReg>, vregs: &mut PrimaryMap<VReg, VRegData>);
}

impl Read for VReg {
    fn read(text: &str) -> Option<(VReg, Width, Option<PReg>)> {
        let (name, pin) = match text.split_once('{') {
            Some((name, rest)) => (name, Some(preg(rest.strip_suffix('}')?)?)),
            None => (text, None),
        };
        let (name, width) = match name.strip_suffix('d') {
            Some(name) => (name, Width::W32),
            None => (name, Width::W64),
        };
        Some((VReg::new(number(name.strip_prefix('v')?)? as usize), width, pin))
    }

    fn note(self, pin: Option<PReg>, vregs: &mut PrimaryMap<VReg, VRegData>) {
        while vregs.len() <= self.index() {
            vregs.push(VRegData { pinned: None, value: None.into() });
        }
        vregs[self].pinned = vregs[self].pinned.or(pin);
    }
}

impl Read for PReg {
    fn read(text: &str) -> Option<(PReg, Width, Option<PReg>)> {
        let narrow = (0..16).map(PReg::new).find(|reg| reg.name_32() == text);
        preg(text).map(|reg| (reg, Width::W64, None)).or(narrow.map(|reg| (reg, Width::W32, None)))
    }

    fn note(self, _: Option<PReg>, _: &mut PrimaryMap<VReg, VRegData>) {}
}

fn preg(text: &str) -> Option<PReg> {
    (0..16).map(PReg::new).find(|reg| reg.name() == text)
}

/// A number without a sign, of at most 7 digits: all that names are numbered with.
fn number(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 7 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads a program; its body is the function `main`, or the first one.
pub fn parse<R: Read>(source: &Source) -> Result<Program<R>, Box<Diagnostic>> {
    let mut ids = FxHashMap::default();
    for line in source.text.lines() {
        if let Some(rest) = line.strip_prefix("fn ") {
            let id = FuncId::new(ids.len());
            ids.entry(rest.split_whitespace().next().unwrap_or("").to_string()).or_insert(id);
        }
    }
    let mut parser = Parser { ids, functions: PrimaryMap::new(), current: None, seen: EntitySet::new() };
    let mut offset = 0;
    for line in source.text.split_inclusive('\n') {
        let span = Span::new(offset, offset + line.trim_end().len());
        parser.line(line).map_err(|message| Box::new(Diagnostic::error(MALFORMED, span, message)))?;
        offset += line.len();
    }
    let end = Span::new(offset, offset);
    if parser.current.is_some() || parser.functions.is_empty() {
        return Err(Box::new(Diagnostic::error(MALFORMED, end, "a function ends in `}`")));
    }
    Ok(Program {
        entry: parser.ids.get("main").copied().unwrap_or_else(|| FuncId::new(0)),
        functions: parser.functions,
        strings: PrimaryMap::new(),
        source_name: source.name.clone(),
        positions: Positions::unknown(),
    })
}

type Parsed<T> = Result<T, String>;

struct Parser<R: Read> {
    ids: FxHashMap<String, FuncId>,
    functions: PrimaryMap<FuncId, Function<R>>,
    /// The function that is being read, and whether its last block has its terminator.
    current: Option<(Function<R>, bool)>,
    /// The blocks of that function so far.
    seen: EntitySet<Block>,
}

/// What an operand may be in any position.
enum Operand<R> {
    Place(RegMem<R>),
    Imm(i64),
    Str(StrId),
}

impl<R: Read> Parser<R> {
    fn line(&mut self, line: &str) -> Parsed<()> {
        let line = line.split(';').next().unwrap_or("").trim();
        if line.is_empty() {
            return Ok(());
        }
        let Some((function, ended)) = &mut self.current else { return self.head(line) };
        if line == "}" {
            if !*ended {
                return Err("a block ends in a jump, a return or `unreachable`".to_string());
            }
            let (function, _) = self.current.take().expect("a function is open");
            self.functions.push(function);
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("frame ") {
            function.frame = frame(rest)?;
            return Ok(());
        }
        if let Some((name, rest)) = line.split_once(':').filter(|(name, _)| !name.contains([' ', ','])) {
            if !*ended {
                return Err("the block before has no end".to_string());
            }
            let block = block(name)?;
            let depth = rest.trim();
            let loop_depth = match depth.strip_prefix("depth=") {
                Some(depth) => number(depth).ok_or("a depth is a number")?,
                None if depth.is_empty() => 0,
                None => return Err(format!("`{depth}` is not known of a block")),
            };
            while function.blocks.len() <= block.index() {
                let (term, term_span) = (Terminator::Unreachable, Span::NONE);
                function.blocks.push(BlockData { insts: Vec::new(), term, term_span, loop_depth: 0 });
            }
            if !self.seen.insert(block) {
                return Err(format!("{block} stands twice"));
            }
            function.blocks[block].loop_depth = loop_depth;
            function.layout.push(block);
            *ended = false;
            return Ok(());
        }
        if *ended {
            return Err("an instruction stands in a block".to_string());
        }
        let at = *function.layout.last().expect("an open block is in the layout");
        let mut vregs = std::mem::take(&mut function.vregs);
        let read = self.code(line, &mut vregs);
        let (function, ended) = self.current.as_mut().expect("a function is open");
        function.vregs = vregs;
        match read? {
            Code::Inst(op) => function.blocks[at].insts.push(Inst { op, span: Span::NONE, origin: None.into() }),
            Code::Term(term) => {
                function.blocks[at].term = term;
                *ended = true;
            }
        }
        Ok(())
    }

    fn head(&mut self, line: &str) -> Parsed<()> {
        let rest =
            line.strip_prefix("fn ").and_then(|rest| rest.strip_suffix('{')).ok_or("a function starts with `fn`")?;
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or("a function has a name")?.to_string();
        if self.ids.get(&name) != Some(&self.functions.next_key()) {
            return Err(format!("the function {name} stands twice"));
        }
        let (mut symbol, mut incoming) = (String::new(), 0);
        for word in words {
            match word.split_once('=') {
                Some(("symbol", text)) => symbol = text.to_string(),
                Some(("incoming", text)) => incoming = number(text).ok_or("`incoming` is a number")?,
                _ => return Err(format!("`{word}` is not known of a function")),
            }
        }
        let (blocks, vregs) = (PrimaryMap::new(), PrimaryMap::new());
        let function = Function { name, symbol, incoming, layout: Vec::new(), blocks, vregs, frame: Frame::default() };
        self.seen.clear();
        self.current = Some((function, true));
        Ok(())
    }

    fn code(&self, line: &str, vregs: &mut PrimaryMap<VReg, VRegData>) -> Parsed<Code<R>> {
        let mut reader = Reader { vregs, width: Width::W64, element: None };
        if let Some((result, call)) = line.split_once(" = call ") {
            let result = reader.reg(result)?;
            return self.call(&mut reader, call, Some(result));
        }
        let (mnemonic, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match mnemonic {
            "call" => return self.call(&mut reader, rest, None),
            "tailcall" => {
                let (callee, args, _) = self.callee(&mut reader, rest)?;
                let Callee::Function(callee) = callee else { return Err("a tail call is of a function".to_string()) };
                return Ok(Code::Term(Terminator::TailCall { callee, args }));
            }
            "ret" => {
                let value = if rest.is_empty() { None } else { Some(reader.reg(rest)?) };
                return Ok(Code::Term(Terminator::Return { value }));
            }
            "unreachable" => return Ok(Code::Term(Terminator::Unreachable)),
            "jmp" => return Ok(Code::Term(Terminator::Jump(block(rest)?))),
            "parallel" => return Ok(Code::Inst(reader.parallel(rest)?)),
            _ => {}
        }
        if let Some(cond) = mnemonic.strip_prefix('j') {
            let (then, els) = rest.split_once(" else ").ok_or("a branch has two targets")?;
            return Ok(Code::Term(Terminator::Branch { cond: condition(cond)?, then: block(then)?, els: block(els)? }));
        }
        if let Some(cond) = mnemonic.strip_prefix("trap") {
            let mut parts = rest.split(", ");
            let name = parts.next().unwrap_or("");
            let kind = TrapKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("there is no such trap")?;
            let cond = if cond.is_empty() { None } else { Some(condition(cond)?) };
            let args = parts.map(|part| reader.source(part)).collect::<Parsed<_>>()?;
            return Ok(Code::Inst(Op::Trap { cond, kind, args }));
        }
        reader.inst(mnemonic, rest).map(Code::Inst)
    }

    fn call(&self, reader: &mut Reader<'_>, text: &str, result: Option<R>) -> Parsed<Code<R>> {
        let (callee, args, rest) = self.callee(reader, text)?;
        let stack_args = match rest.trim().strip_prefix("stack=") {
            Some(count) => number(count).ok_or("`stack` is a number")?,
            None => 0,
        };
        Ok(Code::Inst(Op::Call { callee, args, stack_args, result }))
    }

    fn callee<'t>(&self, reader: &mut Reader<'_>, text: &'t str) -> Parsed<(Callee, SmallVec<[R; 6]>, &'t str)> {
        let (name, rest) = text.split_once('(').ok_or("a call has arguments in parentheses")?;
        let (list, rest) = rest.split_once(')').ok_or("a call has arguments in parentheses")?;
        let runtime = RuntimeFn::ALL.into_iter().find(|function| function.symbol() == name);
        let callee = match (runtime, self.ids.get(name)) {
            (Some(function), _) => Callee::Runtime(function),
            (None, Some(id)) => Callee::Function(*id),
            (None, None) => return Err(format!("there is no function {name}")),
        };
        let args = list.split(", ").filter(|arg| !arg.is_empty()).map(|arg| reader.reg(arg)).collect::<Parsed<_>>()?;
        Ok((callee, args, rest))
    }
}

enum Code<R> {
    Inst(Op<R>),
    Term(Terminator<R>),
}

/// Reads the operands of one instruction.
struct Reader<'a> {
    vregs: &'a mut PrimaryMap<VReg, VRegData>,
    /// The narrowest operand so far.
    width: Width,
    /// The element of an array that an operand said it is.
    element: Option<Scalar>,
}

impl Reader<'_> {
    /// A register of 64 bits.
    fn reg<R: Read>(&mut self, text: &str) -> Parsed<R> {
        let (reg, width, pin) = R::read(text.trim()).ok_or_else(|| format!("`{text}` is no register"))?;
        reg.note(pin, self.vregs);
        if width == Width::W32 {
            self.width = Width::W32;
        }
        Ok(reg)
    }

    fn operand<R: Read>(&mut self, text: &str) -> Parsed<Operand<R>> {
        let text = text.trim();
        if let Ok(value) = text.parse() {
            return Ok(Operand::Imm(value));
        }
        if let Some(string) = text.strip_prefix("str").and_then(number) {
            return Ok(Operand::Str(StrId::new(string as usize)));
        }
        let memory = match text.split_once(" [") {
            Some((size, rest)) => {
                match size {
                    "dword" => self.width = Width::W32,
                    "qword" => self.element = Some(Scalar::Int),
                    "byte" => self.element = Some(Scalar::Bool),
                    _ => return Err(format!("`{size}` is no size")),
                }
                Some(rest)
            }
            None => text.strip_prefix('['),
        };
        let place = match memory {
            Some(memory) => self.memory(memory.strip_suffix(']').ok_or("an address ends in `]`")?)?,
            None => RegMem::Reg(self.reg(text)?),
        };
        Ok(Operand::Place(place))
    }

    fn memory<R: Read>(&mut self, text: &str) -> Parsed<RegMem<R>> {
        type Make = fn(u32) -> Slot;
        let slots: [(&str, Make); 3] = [("spill", Slot::Spill), ("in", Slot::Incoming), ("out", Slot::Outgoing)];
        for (prefix, make) in slots {
            if let Some(count) = text.strip_prefix(prefix).and_then(number) {
                return Ok(RegMem::Slot(make(count)));
            }
        }
        let mut address = Address { base: None, index: None, disp: 0 };
        // The terms, each with its sign in front.
        let mut rest = text;
        while !rest.is_empty() {
            let (negative, term) = match rest.strip_prefix('-') {
                Some(term) => (true, term),
                None => (false, rest.strip_prefix('+').unwrap_or(rest)),
            };
            let end = term.find(['+', '-']).unwrap_or(term.len());
            let (term, left) = term.split_at(end);
            rest = left;
            if term.bytes().all(|byte| byte.is_ascii_digit()) {
                let value: i64 = term.parse().map_err(|_| format!("`{term}` is no displacement"))?;
                let value = if negative { -value } else { value };
                address.disp = i32::try_from(value).map_err(|_| format!("`{term}` does not fit 32 bits"))?;
            } else if let Some((index, scale)) = term.split_once('*') {
                let scale =
                    number(scale).and_then(|scale| u8::try_from(scale).ok()).ok_or("a factor is 1, 2, 4 or 8")?;
                address.index = Some((self.reg(index)?, scale));
            } else if address.base.is_none() {
                address.base = Some(self.reg(term)?);
            } else {
                address.index = Some((self.reg(term)?, 1));
            }
        }
        Ok(RegMem::Mem(address))
    }

    fn place<R: Read>(&mut self, text: &str) -> Parsed<RegMem<R>> {
        match self.operand(text)? {
            Operand::Place(place) => Ok(place),
            Operand::Imm(_) | Operand::Str(_) => Err(format!("`{text}` is no place")),
        }
    }

    fn source<R: Read>(&mut self, text: &str) -> Parsed<RegMemImm<R>> {
        match self.operand(text)? {
            Operand::Place(place) => Ok(place.into()),
            Operand::Imm(value) => Ok(RegMemImm::Imm(value)),
            Operand::Str(_) => Err(format!("`{text}` is no operand here")),
        }
    }

    fn address<R: Read>(&mut self, text: &str) -> Parsed<Address<R>> {
        match self.place(text)? {
            RegMem::Mem(address) => Ok(address),
            RegMem::Reg(_) | RegMem::Slot(_) => Err(format!("`{text}` is no address")),
        }
    }

    fn pair<R: Read>(&mut self, text: &str) -> Parsed<(R, R)> {
        let (hi, lo) = text.split_once(':').ok_or("the operand is a pair of registers")?;
        Ok((self.reg(hi)?, self.reg(lo)?))
    }

    fn parallel<R: Read>(&mut self, text: &str) -> Parsed<Op<R>> {
        let mut moves = Vec::new();
        for part in text.split(", ").filter(|part| !part.is_empty()) {
            let (dst, src) = part.split_once(" = ").ok_or("a move has two sides")?;
            moves.push((self.place(dst)?, self.source(src)?));
        }
        Ok(Op::Parallel { moves })
    }

    fn inst<R: Read>(&mut self, mnemonic: &str, rest: &str) -> Parsed<Op<R>> {
        let parts: SmallVec<[&str; 3]> = rest.split(", ").collect();
        if let Some(cond) = mnemonic.strip_prefix("set") {
            return Ok(Op::Set { cond: condition(cond)?, dst: self.reg(parts[0])? });
        }
        if let Some(cond) = mnemonic.strip_prefix("cmov") {
            let [dst, src] = two(&parts)?;
            return Ok(Op::Cmov { cond: condition(cond)?, dst: self.reg(dst)?, src: self.place(src)? });
        }
        match mnemonic {
            "neg" | "not" => {
                let op = if mnemonic == "neg" { UnaryOp::Neg } else { UnaryOp::Not };
                let dst = self.place(parts[0])?;
                return Ok(Op::Unary { op, width: self.width, dst });
            }
            "push" => return Ok(Op::Push { src: self.place(parts[0])? }),
            "pop" => return Ok(Op::Pop { dst: self.place(parts[0])? }),
            "cqo" => {
                let (hi, lo) = self.pair(parts[0])?;
                return Ok(Op::SignExtend { hi, lo });
            }
            "imul" if parts.len() == 3 => {
                let imm = parts[2].parse().map_err(|_| "a factor has 32 bits")?;
                return Ok(Op::ImulImm { dst: self.reg(parts[0])?, src: self.place(parts[1])?, imm });
            }
            _ => {}
        }
        let [left, right] = two(&parts)?;
        match mnemonic {
            "mov" => self.mov(left, right),
            "movzx" => {
                let (dst, src) = (self.reg(left)?, self.address(right)?);
                Ok(Op::Load { ty: Scalar::Bool, dst, src })
            }
            "lea" => {
                let dst = self.reg(left)?;
                match self.operand(right)? {
                    Operand::Str(string) => Ok(Op::StrAddress { dst, string }),
                    Operand::Place(RegMem::Mem(src)) => Ok(Op::Lea { width: self.width, dst, src }),
                    Operand::Place(_) | Operand::Imm(_) => Err(format!("`{right}` is no address")),
                }
            }
            "imul" | "mul" if left.contains(':') => {
                let (hi, lo) = self.pair(left)?;
                Ok(Op::MulHigh { signed: mnemonic == "imul", lo, hi, src: self.place(right)? })
            }
            "imul" => Ok(Op::Imul { dst: self.reg(left)?, src: self.place(right)? }),
            "idiv" | "div" => {
                let (hi, lo) = self.pair(left)?;
                let src = self.place(right)?;
                Ok(Op::Div { signed: mnemonic == "idiv", width: self.width, lo, hi, src })
            }
            "cmp" => {
                let (lhs, rhs) = (self.place(left)?, self.source(right)?);
                match (self.element, lhs, rhs) {
                    (None, lhs, rhs) => Ok(Op::Cmp { width: self.width, lhs, rhs }),
                    (Some(Scalar::Bool), RegMem::Mem(lhs), RegMemImm::Imm(imm)) => {
                        Ok(Op::CmpByte { lhs, imm: i8::try_from(imm).map_err(|_| "a byte is compared with a byte")? })
                    }
                    _ => Err("only a byte in memory says its size in a comparison".to_string()),
                }
            }
            "test" => {
                let (lhs, rhs) = (self.place(left)?, self.source(right)?);
                Ok(Op::Test { width: self.width, lhs, rhs })
            }
            "xchg" => Ok(Op::Xchg { a: self.reg(left)?, b: self.reg(right)? }),
            _ => self.arithmetic(mnemonic, left, right),
        }
    }

    fn mov<R: Read>(&mut self, left: &str, right: &str) -> Parsed<Op<R>> {
        let dst = self.place(left)?;
        let stored = self.element.take();
        let src = self.operand(right)?;
        match (stored, dst, self.element, src) {
            (None, dst, None, Operand::Imm(value)) => Ok(Op::Imm { dst, value }),
            (None, dst, None, Operand::Place(src)) => Ok(Op::Mov { dst, src }),
            (None, RegMem::Reg(dst), Some(Scalar::Int), Operand::Place(RegMem::Mem(src))) => {
                Ok(Op::Load { ty: Scalar::Int, dst, src })
            }
            (Some(ty), RegMem::Mem(dst), None, Operand::Place(RegMem::Reg(src))) => {
                Ok(Op::Store { ty, dst, src: StoreSource::Reg(src) })
            }
            (Some(ty), RegMem::Mem(dst), None, Operand::Imm(value)) => {
                let value = i32::try_from(value).map_err(|_| "a stored immediate has 32 bits")?;
                Ok(Op::Store { ty, dst, src: StoreSource::Imm(value) })
            }
            _ => Err("there is no such move".to_string()),
        }
    }

    fn arithmetic<R: Read>(&mut self, mnemonic: &str, left: &str, right: &str) -> Parsed<Op<R>> {
        let alu = [AluOp::Add, AluOp::Sub, AluOp::And, AluOp::Or, AluOp::Xor];
        if let Some(op) = alu.into_iter().find(|op| op.name() == mnemonic) {
            let (dst, src) = (self.place(left)?, self.source(right)?);
            return Ok(Op::Alu { op, width: self.width, dst, src });
        }
        let shifts = [ShiftOp::Shl, ShiftOp::Shr, ShiftOp::Sar, ShiftOp::Rol, ShiftOp::Ror];
        let op = shifts.into_iter().find(|op| op.name() == mnemonic);
        let op = op.ok_or_else(|| format!("`{mnemonic}` is no instruction"))?;
        let dst = self.place(left)?;
        let width = self.width;
        let count = match number(right) {
            Some(count) => Count::Imm(u8::try_from(count).map_err(|_| "a shift count is small")?),
            None => Count::Cl(self.reg(right)?),
        };
        Ok(Op::Shift { op, width, dst, count })
    }
}

fn two<'t>(parts: &[&'t str]) -> Parsed<[&'t str; 2]> {
    <[&str; 2]>::try_from(parts).map_err(|_| "the instruction has two operands".to_string())
}

fn condition(text: &str) -> Parsed<Cond> {
    Cond::ALL.into_iter().find(|cond| cond.name() == text).ok_or_else(|| format!("`{text}` is no condition"))
}

fn block(text: &str) -> Parsed<Block> {
    let found = text.trim().strip_prefix('b').and_then(number);
    found.map(|number| Block::new(number as usize)).ok_or_else(|| format!("`{text}` is no block"))
}

fn frame(text: &str) -> Parsed<Frame> {
    let mut frame = Frame::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("spills", count)) => frame.spill_slots = number(count).ok_or("`spills` is a number")?,
            Some(("outgoing", count)) => frame.outgoing = number(count).ok_or("`outgoing` is a number")?,
            Some(("saved", list)) => {
                for name in list.split(',').filter(|name| !name.is_empty()) {
                    frame.saved = frame.saved.with(preg(name).ok_or_else(|| format!("`{name}` is no register"))?);
                }
            }
            None if word == "calls" => frame.calls = true,
            _ => return Err(format!("`{word}` is not known of a frame")),
        }
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x64::print::{Shown, print};
    use crate::x64::random;

    /// What is printed is read back and printed the same, and every instruction is the same.
    fn round<R: Read + Shown>(program: &Program<R>) {
        let text = print(program, None).to_string();
        let source = Source::new("random", text.clone());
        let read: Program<R> = parse(&source).unwrap_or_else(|error| {
            panic!("{}: {}", source.position(error.primary.span.start), error.message);
        });
        assert_eq!(print(&read, None).to_string(), text);
        for (id, function) in &program.functions {
            let other = &read.functions[id];
            assert_eq!((&other.layout, &other.frame), (&function.layout, &function.frame));
            for block in &function.layout {
                let (data, other) = (&function.blocks[*block], &other.blocks[*block]);
                let ops = |data: &BlockData<R>| data.insts.iter().map(|inst| inst.op.clone()).collect::<Vec<_>>();
                assert_eq!((ops(data), &data.term), (ops(other), &other.term));
            }
        }
    }

    #[test]
    fn random_code_comes_back() {
        for seed in 0..100 {
            round(&random::generate(seed, &random::Shape::default()));
        }
    }

    #[test]
    fn every_form_comes_back() {
        let text = "\
fn f symbol=atl_f incoming=2 {
frame spills=3 outgoing=1 saved=rbx,r15 calls
b0:
  mov rax, 5
  mov [spill2], -1
  mov [out0], rax
  mov rbx, [in1]
  mov rcx, [rax+rbx*8-8]
  mov rcx, qword [rax+rbx*8-8]
  movzx rdx, byte [rax+rbx]
  mov qword [rax], -7
  mov byte [rax+rbx+1], rdx
  lea rsi, str3
  lea rsi, [rax*2+5]
  lea esi, [rax*1]
  add rax, 7
  and eax, 1
  xor [spill0], rax
  sub rax, [rbx]
  neg rax
  not ecx
  shl rax, 3
  sar [spill1], rcx
  imul rax, [spill0]
  imul rax, rbx, -3
  imul rdx:rax, rbx
  mul rdx:rax, [spill0]
  cqo rdx:rax
  idiv rdx:rax, rbx
  div edx:eax, ebx
  cmp rax, -1
  cmp dword [spill0], 1
  cmp byte [rax-1], 0
  test eax, eax
  setle rax
  cmovae rax, [spill0]
  trapae index, rax, [rbx-8]
  trap assert
  rax = call f(rdi, rsi) stack=1
  call atlrt_print_int(rdi, rsi)
  push [spill0]
  pop rax
  xchg rax, r15
  parallel rdi = 9223372036854775807, [out0] = [spill1]
  jl b1 else b2
b2: depth=2 ; preds=b0
  tailcall f(rdi)
b1: ; preds=b0
  ret rax
}
";
        let source = Source::new("f", text);
        let program: Program<PReg> = parse(&source).unwrap_or_else(|error| {
            panic!("{}: {}", source.position(error.primary.span.start), error.message);
        });
        assert_eq!(print(&program, None).to_string(), text);
        round(&program);
    }

    #[test]
    fn mistakes_are_told() {
        let function = |line: &str| format!("fn f symbol=atl_f {{\nb0:\n  {line}\n  ret\n}}\n");
        for line in
            ["mov rax", "add rax, rzx", "mov eax, [rax", "call g()", "jl b1", "lea rax, 7", "shl rax, 256", "b1:"]
        {
            let source = Source::new("f", function(line));
            let found = parse::<PReg>(&source).expect_err(line);
            assert_eq!(source.position(found.primary.span.start).line, 3, "{line}");
        }
        assert!(parse::<PReg>(&Source::new("f", "")).is_err());
        assert!(parse::<PReg>(&Source::new("f", "fn f symbol=x {\nb0:\n  ret\n")).is_err());
    }
}
