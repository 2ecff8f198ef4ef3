//! Exports a program in SSA form as QBE's intermediate language, φs and all.
//!
//! A value keeps its number. QBE does not inline, so checks are written out: they cut a block in pieces `@b3`, `@b3.1` …,
//! and a φ names the last piece of its predecessor.
//!
//! ```text
//! b1: ; while.cond preds=b0,b2         @b1
//!   %3 = phi x [1 from b0, %4 from b2]     %v3 =l phi @b0 1, @b2 %v4
//!   %6 = bool %5 < 3                       %v6 =w csltl %v5, 3
//!   branch %6 ? b2 : b3                    jnz %v6, @b2, @b3
//! ```
//!
//! In: a verified program in SSA form (`Form::is_ssa`). Out: text for `qbe`, whose assembly needs only the C library.
//! Not exported: the stack overflow error. Cost: linear.

use super::{has_twin_edges, incoming, plain_name, position};
use crate::ir::{Block, FuncId, Function, Inst, Op, Operand, PrintArg, Program, Terminator, Type, Value};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::EntityRef;
use std::fmt::Write;

/// The program in QBE's language. `source_name` is what run-time errors show.
///
/// # Panics
/// When a function is not in an SSA form: the caller picks the stage.
pub fn run(program: &Program, source_name: &str) -> String {
    let mut out = format!("data $source_name = {{ {}b 0 }}\n", bytes(source_name));
    for (id, text) in program.strings.iter() {
        writeln!(out, "data $s{} = {{ {}b 0 }}", id.index(), bytes(text)).expect("a string takes all");
    }
    out.push_str(include_str!("prelude.qbe"));
    for (id, function) in program.functions.iter() {
        if !function.layout.is_empty() {
            assert!(function.form.is_ssa(), "QBE's language is made from SSA form");
            Writer { program, function, out: &mut out, block: function.entry(), cuts: 0 }.function(id);
        }
    }
    let entry = function_name(program.entry, &program.functions[program.entry]);
    write!(out, "\nexport function w $main() {{\n@start\n\tcall ${entry}()\n\tcall $finish_output()\n\tret 0\n}}\n")
        .expect("a string takes all");
    out
}

/// The bytes of a text as data items, each followed by a comma.
fn bytes(text: &str) -> String {
    let mut items = String::new();
    let mut open = false;
    for byte in text.bytes() {
        let plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if plain != open {
            items.push_str(if plain { "b \"" } else { "\", " });
            open = plain;
        }
        if plain {
            items.push(char::from(byte));
        } else {
            write!(items, "b {byte}, ").expect("a string takes all");
        }
    }
    if open {
        items.push_str("\", ");
    }
    items
}

fn function_name(id: FuncId, function: &Function) -> String {
    format!("f{}_{}", id.index(), plain_name(&function.name))
}

/// QBE's class: a word for a bool, a long for an int or an address.
fn class(ty: Type) -> char {
    match ty {
        Type::Scalar(Scalar::Bool) => 'w',
        Type::Scalar(Scalar::Int) | Type::Array(_) => 'l',
    }
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Value(value) => format!("%v{}", value.index()),
        Operand::Int(value) => value.to_string(),
        Operand::Bool(value) => i64::from(value).to_string(),
    }
}

struct Writer<'a> {
    program: &'a Program,
    function: &'a Function,
    out: &'a mut String,
    /// The block being written.
    block: Block,
    /// How many times it has been cut.
    cuts: u32,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        writeln!(self.out, "\t{text}").expect("a string takes all");
    }

    fn label(&mut self, label: &str) {
        writeln!(self.out, "@{label}").expect("a string takes all");
    }

    fn typed(&self, value: Operand) -> String {
        format!("{} {}", class(self.function.type_of(value)), operand(value))
    }

    fn function(mut self, id: FuncId) {
        let function = self.function;
        let params: Vec<String> = function.params.iter().map(|param| self.typed(Operand::Value(*param))).collect();
        let result = function.result.map_or(String::new(), |scalar| format!("{} ", class(Type::Scalar(scalar))));
        writeln!(self.out, "\nfunction {result}${}({}) {{", function_name(id, function), params.join(", "))
            .expect("a string takes all");
        let incoming = incoming(function, |block| {
            piece(block, function.blocks[block].insts.iter().map(|inst| cuts(&function.insts[*inst].op)).sum())
        });
        for block in &function.layout {
            self.block = *block;
            self.cuts = 0;
            self.label(&piece(*block, 0));
            for (position, param) in function.blocks[*block].params.iter().enumerate() {
                let operands: Vec<String> = incoming[*block]
                    .iter()
                    .map(|(edge, from)| format!("@{from} {}", operand(edge.args[position])))
                    .collect();
                let class = class(function.values[*param].ty);
                self.line(&format!("%v{} ={class} phi {}", param.index(), operands.join(", ")));
            }
            for inst in &function.blocks[*block].insts {
                self.inst(*inst);
            }
            self.terminator(*block);
        }
        self.out.push_str("}\n");
    }

    /// Ends the current piece with a jump to the next piece if the condition holds, else to code that fails.
    fn check(&mut self, condition: &str, fail: &str) {
        self.cuts += 1;
        let next = piece(self.block, self.cuts);
        self.line(&format!("jnz {condition}, @{next}, @{next}.bad"));
        self.label(&format!("{next}.bad"));
        self.line(fail);
        self.line("hlt");
        self.label(&next);
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        let at = position(self.program, data.span);
        let place = format!("w {}, w {}", at.line, at.column);
        let t = format!("%t{}", inst.index());
        let typed = |value: &Operand| self.typed(*value);
        let expression = match &data.op {
            Op::Copy(source) => format!("copy {}", operand(*source)),
            Op::Parallel(_) => panic!("{inst}: QBE's language is made from SSA form"),
            Op::Binary { op, args, .. } => {
                let (a, b) = (operand(args[0]), operand(args[1]));
                match op {
                    BinaryOp::Add => format!("add {a}, {b}"),
                    BinaryOp::Sub => format!("sub {a}, {b}"),
                    BinaryOp::Mul => format!("mul {a}, {b}"),
                    BinaryOp::And => format!("and {a}, {b}"),
                    BinaryOp::Or => format!("or {a}, {b}"),
                    BinaryOp::Xor => format!("xor {a}, {b}"),
                    BinaryOp::Shl | BinaryOp::Shr => {
                        self.line(&format!("{t}.count =l and {b}, 63"));
                        format!("{} {a}, {t}.count", if *op == BinaryOp::Shl { "shl" } else { "sar" })
                    }
                    BinaryOp::Div | BinaryOp::Rem => {
                        let result = data.result.expand().expect("a division has a result");
                        return self.divide(*op, result, args, &t, &place);
                    }
                }
            }
            Op::Compare { op, args } => {
                let class = class(self.function.type_of(args[0]));
                let condition = match op {
                    CompareOp::Eq => "ceq",
                    CompareOp::Ne => "cne",
                    CompareOp::Lt => "cslt",
                    CompareOp::Le => "csle",
                    CompareOp::Gt => "csgt",
                    CompareOp::Ge => "csge",
                };
                format!("{condition}{class} {}, {}", operand(args[0]), operand(args[1]))
            }
            Op::Unary { op, arg } => match op {
                UnaryOp::Neg => format!("neg {}", operand(*arg)),
                UnaryOp::BitNot => format!("xor {}, -1", operand(*arg)),
                UnaryOp::Not => format!("xor {}, 1", operand(*arg)),
                UnaryOp::IntOfBool => format!("extuw {}", operand(*arg)),
            },
            // QBE has no select: the second operand, changed where the condition's mask lets the difference through.
            Op::Select { cond, args } => {
                let class = class(self.function.type_of(args[0]));
                if class == 'l' {
                    self.line(&format!("{t}.wide =l extuw {}", operand(*cond)));
                } else {
                    self.line(&format!("{t}.wide =w copy {}", operand(*cond)));
                }
                self.line(&format!("{t}.mask ={class} neg {t}.wide"));
                self.line(&format!("{t}.both ={class} xor {}, {}", operand(args[0]), operand(args[1])));
                self.line(&format!("{t}.diff ={class} and {t}.both, {t}.mask"));
                format!("xor {t}.diff, {}", operand(args[1]))
            }
            Op::Array { element, init, len } => {
                format!("call $array_{element}({}, {}, {place})", typed(len), typed(init))
            }
            Op::Free(array) => format!("call $free_array({})", typed(array)),
            Op::Len(array) => {
                self.line(&format!("{t}.place =l sub {}, 8", operand(*array)));
                format!("loadl {t}.place")
            }
            Op::Bounds { index, len } => {
                let fail = format!("call $fail_index({}, {}, {place})", typed(index), typed(len));
                self.line(&format!("{t}.good =w cultl {}, {}", operand(*index), operand(*len)));
                return self.check(&format!("{t}.good"), &fail);
            }
            Op::Load { element, array, index } => {
                self.place(&t, *element, *array, *index);
                match element {
                    Scalar::Int => format!("loadl {t}.place"),
                    Scalar::Bool => format!("loadub {t}.place"),
                }
            }
            Op::Store { element, array, index, value } => {
                self.place(&t, *element, *array, *index);
                match element {
                    Scalar::Int => format!("storel {}, {t}.place", operand(*value)),
                    Scalar::Bool => format!("storeb {}, {t}.place", operand(*value)),
                }
            }
            Op::Call { callee, args } => {
                let args: Vec<String> = args.iter().map(typed).collect();
                let name = function_name(*callee, &self.program.functions[*callee]);
                format!("call ${name}({})", args.join(", "))
            }
            Op::Read => format!("call $read_int({place})"),
            Op::Eof => "call $at_end()".to_string(),
            Op::Print(args) => return self.print(args),
            Op::Assert(cond) => {
                let fail = format!("call $fail(l $text_assert, {place})");
                return self.check(&operand(*cond), &fail);
            }
        };
        match data.result.expand() {
            Some(result) => {
                let class = class(self.function.values[result].ty);
                self.line(&format!("%v{} ={class} {expression}", result.index()));
            }
            // A call whose result nobody wants needs none in QBE either.
            None => self.line(&expression),
        }
    }

    /// Computes the address of an element.
    fn place(&mut self, t: &str, element: Scalar, array: Operand, index: Operand) {
        match element {
            Scalar::Int => {
                self.line(&format!("{t}.offset =l shl {}, 3", operand(index)));
                self.line(&format!("{t}.place =l add {}, {t}.offset", operand(array)));
            }
            Scalar::Bool => self.line(&format!("{t}.place =l add {}, {}", operand(array), operand(index))),
        }
    }

    /// A division with its checks: by zero an error, by -1 a negation (so that the smallest int wraps).
    fn divide(&mut self, op: BinaryOp, result: Value, args: &[Operand; 2], t: &str, place: &str) {
        let (a, b) = (operand(args[0]), operand(args[1]));
        let name = if op == BinaryOp::Div { "div" } else { "rem" };
        let by_minus_one = if op == BinaryOp::Div { format!("neg {a}") } else { "copy 0".to_string() };
        let result = format!("%v{}", result.index());
        match args[1].constant() {
            Some(-1) => return self.line(&format!("{result} =l {by_minus_one}")),
            Some(divisor) if divisor != 0 => return self.line(&format!("{result} =l {name} {a}, {b}")),
            Some(_) | None => {}
        }
        self.line(&format!("{t}.good =w cnel {b}, 0"));
        self.check(&format!("{t}.good"), &format!("call $fail(l $text_division, {place})"));
        self.cuts += 1;
        let next = piece(self.block, self.cuts);
        self.line(&format!("{t}.minus =w ceql {b}, -1"));
        self.line(&format!("jnz {t}.minus, @{next}.minus, @{next}.plain"));
        self.label(&format!("{next}.minus"));
        self.line(&format!("{t}.a =l {by_minus_one}"));
        self.line(&format!("jmp @{next}"));
        self.label(&format!("{next}.plain"));
        self.line(&format!("{t}.b =l {name} {a}, {b}"));
        self.label(&next);
        self.line(&format!("{result} =l phi @{next}.minus {t}.a, @{next}.plain {t}.b"));
    }

    fn print(&mut self, args: &[PrintArg]) {
        if args.is_empty() {
            self.line("call $put_text(l 0, l 0, w 10)");
        }
        for (position, arg) in args.iter().enumerate() {
            let end = if position + 1 == args.len() { 10 } else { 32 };
            let call = match arg {
                PrintArg::Str(string) => {
                    let bytes = self.program.strings[*string].len();
                    format!("call $put_text(l $s{}, l {bytes}, w {end})", string.index())
                }
                PrintArg::Operand(value) => {
                    let put = if self.function.type_of(*value) == Type::BOOL { "put_bool" } else { "put_int" };
                    format!("call ${put}({}, w {end})", self.typed(*value))
                }
            };
            self.line(&call);
        }
    }

    fn terminator(&mut self, block: Block) {
        let function = self.function;
        match &function.blocks[block].term {
            Terminator::Jump(edge) => self.line(&format!("jmp @b{}", edge.target.index())),
            Terminator::Branch { cond, then, els } => {
                let (then, els) = (then.target.index(), els.target.index());
                let cond = operand(*cond);
                if has_twin_edges(function, block) {
                    let number = block.index();
                    self.line(&format!("jnz {cond}, @b{then}, @b{number}.else"));
                    self.label(&format!("b{number}.else"));
                    self.line(&format!("jmp @b{els}"));
                } else {
                    self.line(&format!("jnz {cond}, @b{then}, @b{els}"));
                }
            }
            Terminator::Return(None) => self.line("ret"),
            Terminator::Return(Some(value)) => self.line(&format!("ret {}", operand(*value))),
            Terminator::Unreachable => self.line("hlt"),
        }
    }
}

/// The label of piece number `cut` of a block.
fn piece(block: Block, cut: u32) -> String {
    if cut == 0 { format!("b{}", block.index()) } else { format!("b{}.{cut}", block.index()) }
}

/// How many times an instruction cuts its block: once for a check, twice for a division that has two.
fn cuts(op: &Op) -> u32 {
    match op {
        Op::Bounds { .. } | Op::Assert(_) => 1,
        Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, args, .. } => match args[1].constant() {
            Some(divisor) if divisor != 0 => 0,
            Some(_) | None => 2,
        },
        Op::Binary { .. }
        | Op::Copy(_)
        | Op::Parallel(_)
        | Op::Compare { .. }
        | Op::Unary { .. }
        | Op::Select { .. }
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_) => 0,
    }
}
