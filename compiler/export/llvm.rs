//! Exports a program in SSA form as LLVM IR, φs and all, for `opt -passes=verify`, `lli` and `llc` to judge.
//!
//! Written for LLVM 14, with typed pointers, which later versions up to 16 read as well. A block keeps its number, a value
//! too; what can trap is a call of an inlined function of the prelude, so that no block has to be cut and every φ names the
//! same predecessors as ours.
//!
//! ```text
//! b1: ; while.cond preds=b0,b2         b1:
//!   %3 = phi x [1 from b0, %4 from b2]   %v3 = phi i64 [ 1, %b0 ], [ %v4, %b2 ]
//!   %6 = bool %5 < 3                     %v6 = icmp slt i64 %v5, 3
//!   branch %6 ? b2 : b3                  br i1 %v6, label %b2, label %b3
//! ```
//!
//! In: a verified program in SSA form (`Form::is_ssa`). Out: a module that needs only the C library. Not exported: the
//! stack overflow error. Cost: linear.

use super::{has_twin_edges, incoming, plain_name, position};
use crate::ir::{Block, FuncId, Function, Inst, Op, Operand, PrintArg, Program, StrId, Terminator, Type};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::EntityRef;
use std::fmt::Write;

/// The program as LLVM IR. `source_name` is what run-time errors show.
///
/// # Panics
/// When a function is not in an SSA form: the caller picks the stage.
pub fn run(program: &Program, source_name: &str) -> String {
    let mut out = format!(
        "source_filename = \"{}\"\n@source_name = private constant [{} x i8] c\"{}\\00\"\n",
        escape(source_name),
        source_name.len() + 1,
        escape(source_name)
    );
    for (id, text) in program.strings.iter() {
        put(&mut out, &format!("@s{} = private constant {} c\"{}\"", id.index(), text_type(text), escape(text)));
    }
    let prelude = include_str!("prelude.ll").replace("SOURCE_BYTES", &(source_name.len() + 1).to_string());
    out.push_str(&prelude);
    for (id, function) in program.functions.iter() {
        if !function.layout.is_empty() {
            assert!(function.form.is_ssa(), "LLVM IR is made from SSA form");
            Writer { program, function, out: &mut out }.function(id);
        }
    }
    let entry = function_name(program.entry, &program.functions[program.entry]);
    put(
        &mut out,
        &format!("\ndefine i32 @main() {{\n  call void @{entry}()\n  call void @finish_output()\n  ret i32 0\n}}"),
    );
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => escaped.push(char::from(byte)),
            _ => write!(escaped, "\\{byte:02X}").expect("a string takes all"),
        }
    }
    escaped
}

fn text_type(text: &str) -> String {
    format!("[{} x i8]", text.len())
}

fn function_name(id: FuncId, function: &Function) -> String {
    format!("f{}_{}", id.index(), plain_name(&function.name))
}

fn llvm_type(ty: Type) -> &'static str {
    match ty {
        Type::Scalar(Scalar::Int) => "i64",
        Type::Scalar(Scalar::Bool) => "i1",
        Type::Array(Scalar::Int) => "i64*",
        Type::Array(Scalar::Bool) => "i8*",
    }
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Value(value) => format!("%v{}", value.index()),
        Operand::Int(value) => value.to_string(),
        Operand::Bool(value) => value.to_string(),
    }
}

struct Writer<'a> {
    program: &'a Program,
    function: &'a Function,
    out: &'a mut String,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str("  ");
        put(self.out, text);
    }

    /// An operand with its type before it.
    fn typed(&self, value: Operand) -> String {
        format!("{} {}", llvm_type(self.function.type_of(value)), operand(value))
    }

    fn function(&mut self, id: FuncId) {
        let function = self.function;
        let params: Vec<String> = function.params.iter().map(|param| self.typed(Operand::Value(*param))).collect();
        let result = function.result.map_or("void", |scalar| llvm_type(Type::Scalar(scalar)));
        put(
            self.out,
            &format!("\ndefine internal {result} @{}({}) {{", function_name(id, function), params.join(", ")),
        );
        let incoming = incoming(function, |block| format!("b{}", block.index()));
        for block in &function.layout {
            put(self.out, &format!("b{}:", block.index()));
            for (position, param) in function.blocks[*block].params.iter().enumerate() {
                let operands: Vec<String> = incoming[*block]
                    .iter()
                    .map(|(edge, from)| format!("[ {}, %{from} ]", operand(edge.args[position])))
                    .collect();
                let ty = llvm_type(function.values[*param].ty);
                self.line(&format!("%v{} = phi {ty} {}", param.index(), operands.join(", ")));
            }
            for inst in &function.blocks[*block].insts {
                self.inst(*inst);
            }
            self.terminator(*block);
        }
        put(self.out, "}");
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        let at = position(self.program, data.span);
        let place = format!("i32 {}, i32 {}", at.line, at.column);
        let element_of = |array: &Operand| match self.function.type_of(*array) {
            Type::Array(element) => element,
            Type::Scalar(_) => panic!("{inst} takes an array"),
        };
        let name = data.result.expand().map(|result| format!("%v{}", result.index())).unwrap_or_default();
        let typed = |value: &Operand| self.typed(*value);
        let mut before = Vec::new();
        let expression = match &data.op {
            Op::Copy(source) => match self.function.type_of(*source) {
                Type::INT => format!("add {}, 0", typed(source)),
                Type::BOOL => format!("or {}, false", typed(source)),
                ty @ Type::Array(_) => format!("bitcast {} to {}", typed(source), llvm_type(ty)),
            },
            Op::Parallel(_) => panic!("{inst}: LLVM IR is made from SSA form"),
            Op::Binary { op, args, .. } => {
                let instruction = match op {
                    BinaryOp::Add => "add",
                    BinaryOp::Sub => "sub",
                    BinaryOp::Mul => "mul",
                    BinaryOp::And => "and",
                    BinaryOp::Or => "or",
                    BinaryOp::Xor => "xor",
                    BinaryOp::Shl => "shl",
                    BinaryOp::Shr => "ashr",
                    BinaryOp::Div => "quotient",
                    BinaryOp::Rem => "remainder_of",
                };
                match op {
                    BinaryOp::Div | BinaryOp::Rem => {
                        format!("call i64 @{instruction}({}, {}, {place})", typed(&args[0]), typed(&args[1]))
                    }
                    BinaryOp::Shl | BinaryOp::Shr => {
                        before.push(format!("{name}.count = and {}, 63", typed(&args[1])));
                        format!("{instruction} {}, {name}.count", typed(&args[0]))
                    }
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                        format!("{instruction} {}, {}", typed(&args[0]), operand(args[1]))
                    }
                }
            }
            Op::Compare { op, args } => {
                let condition = match op {
                    CompareOp::Eq => "eq",
                    CompareOp::Ne => "ne",
                    CompareOp::Lt => "slt",
                    CompareOp::Le => "sle",
                    CompareOp::Gt => "sgt",
                    CompareOp::Ge => "sge",
                };
                format!("icmp {condition} {}, {}", typed(&args[0]), operand(args[1]))
            }
            Op::Unary { op, arg } => match op {
                UnaryOp::Neg => format!("sub i64 0, {}", operand(*arg)),
                UnaryOp::BitNot => format!("xor {}, -1", typed(arg)),
                UnaryOp::Not => format!("xor {}, true", typed(arg)),
                UnaryOp::IntOfBool => format!("zext {} to i64", typed(arg)),
            },
            Op::Select { cond, args } => {
                format!("select {}, {}, {}", typed(cond), typed(&args[0]), typed(&args[1]))
            }
            Op::Array { element, init, len } => {
                let ty = llvm_type(Type::Array(*element));
                format!("call {ty} @array_{element}({}, {}, {place})", typed(len), typed(init))
            }
            Op::Free(array) => format!("call void @free_{}({})", element_of(array), typed(array)),
            Op::Len(array) => format!("call i64 @length_{}({})", element_of(array), typed(array)),
            Op::Bounds { index, len } => format!("call void @bounds({}, {}, {place})", typed(index), typed(len)),
            Op::Load { element, array, index } => {
                let cell = if *element == Scalar::Int { "i64" } else { "i8" };
                before.push(format!("{name}.place = getelementptr {cell}, {}, {}", typed(array), typed(index)));
                match element {
                    Scalar::Int => format!("load i64, i64* {name}.place"),
                    Scalar::Bool => {
                        before.push(format!("{name}.byte = load i8, i8* {name}.place"));
                        format!("icmp ne i8 {name}.byte, 0")
                    }
                }
            }
            Op::Store { element, array, index, value } => {
                let cell = if *element == Scalar::Int { "i64" } else { "i8" };
                let temporary = format!("%store{}", inst.index());
                before.push(format!("{temporary}.place = getelementptr {cell}, {}, {}", typed(array), typed(index)));
                match element {
                    Scalar::Int => format!("store {}, i64* {temporary}.place", typed(value)),
                    Scalar::Bool => {
                        before.push(format!("{temporary}.byte = zext {} to i8", typed(value)));
                        format!("store i8 {temporary}.byte, i8* {temporary}.place")
                    }
                }
            }
            Op::Call { callee, args } => {
                let target = &self.program.functions[*callee];
                let result = target.result.map_or("void", |scalar| llvm_type(Type::Scalar(scalar)));
                let args: Vec<String> = args.iter().map(typed).collect();
                format!("call {result} @{}({})", function_name(*callee, target), args.join(", "))
            }
            Op::Read => format!("call i64 @read_int({place})"),
            Op::Eof => "call i1 @at_end()".to_string(),
            Op::Print(args) => return self.print(args),
            Op::Assert(cond) => format!("call void @assert({}, {place})", typed(cond)),
        };
        before.iter().for_each(|line| self.line(line));
        if name.is_empty() {
            self.line(&expression);
        } else {
            self.line(&format!("{name} = {expression}"));
        }
    }

    fn print(&mut self, args: &[PrintArg]) {
        if args.is_empty() {
            self.line("call void @put_text(i8* null, i64 0, i32 10)");
        }
        for (position, arg) in args.iter().enumerate() {
            let end = if position + 1 == args.len() { 10 } else { 32 };
            let call = match arg {
                PrintArg::Str(string) => self.put_text(*string, end),
                PrintArg::Operand(value) => {
                    let put = if self.function.type_of(*value) == Type::BOOL { "put_bool" } else { "put_int" };
                    format!("call void @{put}({}, i32 {end})", self.typed(*value))
                }
            };
            self.line(&call);
        }
    }

    fn put_text(&self, string: StrId, end: u8) -> String {
        let text = &self.program.strings[string];
        let ty = text_type(text);
        let bytes = text.len();
        format!("call void @put_text(i8* bitcast ({ty}* @s{} to i8*), i64 {bytes}, i32 {end})", string.index())
    }

    fn terminator(&mut self, block: Block) {
        let number = block.index();
        match &self.function.blocks[block].term {
            Terminator::Jump(edge) => self.line(&format!("br label %b{}", edge.target.index())),
            Terminator::Branch { cond, then, els } => {
                let twin = has_twin_edges(self.function, block);
                let els_label = if twin { format!("b{number}.else") } else { format!("b{}", els.target.index()) };
                let cond = self.typed(*cond);
                self.line(&format!("br {cond}, label %b{}, label %{els_label}", then.target.index()));
                if twin {
                    put(self.out, &format!("b{number}.else:"));
                    self.line(&format!("br label %b{}", els.target.index()));
                }
            }
            Terminator::Return(None) => self.line("ret void"),
            Terminator::Return(Some(value)) => {
                let value = self.typed(*value);
                self.line(&format!("ret {value}"));
            }
            Terminator::Unreachable => self.line("unreachable"),
        }
    }
}
