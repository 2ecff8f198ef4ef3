//! Exports a program as C (C11 with `_Noreturn` and gcc's attributes), for gcc and clang to compile and to judge.
//!
//! Every value becomes a local variable, every block a label: the IR must be out of SSA form (over variables, or
//! sequenced), where a value may be assigned many times.
//!
//! ```text
//! b1: ; while.cond           b1:;
//!   %6 = bool %5 < 3            v6 = i_5 < INT64_C(3);
//!   branch %6 ? b2 : b3         if (v6) goto b2; else goto b3;
//! ```
//!
//! In: a verified program in [`Form::Variables`] or [`Form::Sequenced`]. Out: a translation unit that needs only the C
//! library; without undefined behaviour, so that any level of optimization gives the same program. Not exported: the
//! stack overflow error, which is the C implementation's own. Cost: linear.

use super::{plain_name, position};
use crate::ir::{Block, Form, FuncId, Function, Inst, Op, Operand, PrintArg, Program, Terminator, Type, Value};
use crate::semantics::{BinaryOp, Scalar, UnaryOp};
use cranelift_entity::{EntityRef, EntitySet};
use std::fmt::Write;

/// The program as C. `source_name` is what run-time errors show.
///
/// # Panics
/// When a function is in an SSA form or holds parallel copies: the caller picks the stage.
pub fn run(program: &Program, source_name: &str) -> String {
    let mut c = String::new();
    writeln!(c, "/* {} as C. */", source_name.replace("*/", "* /")).expect("a string takes all");
    writeln!(c, "static const char source_name[] = {};", literal(source_name)).expect("a string takes all");
    c.push_str(include_str!("prelude.c"));
    for (id, function) in program.functions.iter() {
        if !function.layout.is_empty() {
            writeln!(c, "{};", signature(id, function)).expect("a string takes all");
        }
    }
    for (id, function) in program.functions.iter() {
        if !function.layout.is_empty() {
            assert!(matches!(function.form, Form::Variables | Form::Sequenced), "C is made from code out of SSA form");
            Writer { program, function, c: &mut c }.function(id);
        }
    }
    writeln!(
        c,
        "\nint main(void)\n{{\n    {}();\n    if (fflush(stdout) != 0) {{\n        \
         fprintf(stderr, \"error: cannot write to standard output\\n\");\n        return 101;\n    }}\n    return 0;\n}}",
        function_name(program.entry, &program.functions[program.entry])
    )
    .expect("a string takes all");
    c
}

fn function_name(id: FuncId, function: &Function) -> String {
    format!("f{}_{}", id.index(), plain_name(&function.name))
}

fn c_type(ty: Type) -> &'static str {
    match ty {
        Type::Scalar(Scalar::Int) => "int64_t ",
        Type::Scalar(Scalar::Bool) => "bool ",
        Type::Array(Scalar::Int) => "int64_t *",
        Type::Array(Scalar::Bool) => "bool *",
    }
}

fn signature(id: FuncId, function: &Function) -> String {
    let result = function.result.map_or("void ", |scalar| c_type(Type::Scalar(scalar)));
    let params: Vec<String> = function
        .params
        .iter()
        .map(|param| format!("{}{}", c_type(function.values[*param].ty), value_name(function, *param)))
        .collect();
    let params = if params.is_empty() { "void".to_string() } else { params.join(", ") };
    format!("static {result}{}({params})", function_name(id, function))
}

/// A value's name: its variable's, if it has one, with the value's number, which makes it unique and no keyword.
fn value_name(function: &Function, value: Value) -> String {
    let variable = function.variable_of(value).map_or("v".to_string(), |variable| plain_name(&variable.name) + "_");
    format!("{variable}{}", value.index())
}

/// A string literal of C. Octal escapes have three digits, so that a digit behind one is not taken in.
fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' if byte != b'?' => quoted.push(char::from(byte)),
            _ => write!(quoted, "\\{byte:03o}").expect("a string takes all"),
        }
    }
    quoted.push('"');
    quoted
}

struct Writer<'a> {
    program: &'a Program,
    function: &'a Function,
    c: &'a mut String,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.c.push_str("    ");
        self.c.push_str(text);
        self.c.push('\n');
    }

    fn function(&mut self, id: FuncId) {
        let function = self.function;
        writeln!(self.c, "\n{}\n{{", signature(id, function)).expect("a string takes all");
        let mut declared: EntitySet<Value> = EntitySet::new();
        for param in &function.params {
            declared.insert(*param);
        }
        let mut targets: EntitySet<Block> = EntitySet::new();
        for (position, block) in function.layout.iter().enumerate() {
            let data = &function.blocks[*block];
            for inst in &data.insts {
                function.insts[*inst].for_each_def(|value| {
                    if declared.insert(value) {
                        let ty = c_type(function.values[value].ty);
                        writeln!(self.c, "    {ty}{};", value_name(function, value)).expect("a string takes all");
                    }
                });
            }
            let next = function.layout.get(position + 1).copied();
            match &data.term {
                Terminator::Jump(edge) => {
                    if Some(edge.target) != next {
                        targets.insert(edge.target);
                    }
                }
                Terminator::Branch { then, els, .. } => {
                    targets.insert(then.target);
                    if Some(els.target) != next {
                        targets.insert(els.target);
                    }
                }
                Terminator::Return(_) | Terminator::Unreachable => {}
            }
        }
        for (position, block) in function.layout.iter().enumerate() {
            if targets.contains(*block) {
                writeln!(self.c, "b{}:;", block.index()).expect("a string takes all");
            }
            for inst in &function.blocks[*block].insts {
                self.inst(*inst);
            }
            self.terminator(*block, function.layout.get(position + 1).copied());
        }
        self.c.push_str("}\n");
    }

    fn value(&self, value: Value) -> String {
        value_name(self.function, value)
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Value(value) => self.value(value),
            Operand::Int(i64::MIN) => "INT64_MIN".to_string(),
            Operand::Int(value) => format!("INT64_C({value})"),
            Operand::Bool(value) => value.to_string(),
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        let at = position(self.program, data.span);
        let place = format!("{}, {}", at.line, at.column);
        let operand = |operand: &Operand| self.operand(*operand);
        let expression = match &data.op {
            Op::Copy(source) => operand(source),
            Op::Parallel(_) => panic!("{inst}: C is made from code whose parallel copies are sequenced"),
            Op::Binary { op, ty: Scalar::Bool, args } => {
                format!("{} {} {}", operand(&args[0]), op.symbol(), operand(&args[1]))
            }
            Op::Binary { op, ty: Scalar::Int, args } => {
                let (a, b) = (operand(&args[0]), operand(&args[1]));
                match op {
                    BinaryOp::Add => format!("add({a}, {b})"),
                    BinaryOp::Sub => format!("sub({a}, {b})"),
                    BinaryOp::Mul => format!("mul({a}, {b})"),
                    BinaryOp::Div => format!("quotient({a}, {b}, {place})"),
                    BinaryOp::Rem => format!("remainder_of({a}, {b}, {place})"),
                    BinaryOp::Shl => format!("shl({a}, {b})"),
                    BinaryOp::Shr => format!("shr({a}, {b})"),
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => format!("{a} {} {b}", op.symbol()),
                }
            }
            Op::Compare { op, args } => format!("{} {} {}", operand(&args[0]), op.symbol(), operand(&args[1])),
            Op::Unary { op, arg } => match op {
                UnaryOp::Neg => format!("neg({})", operand(arg)),
                UnaryOp::BitNot => format!("~{}", operand(arg)),
                UnaryOp::Not => format!("!{}", operand(arg)),
                UnaryOp::IntOfBool => operand(arg),
            },
            Op::Select { cond, args } => {
                format!("{} ? {} : {}", operand(cond), operand(&args[0]), operand(&args[1]))
            }
            Op::Array { element, init, len } => {
                format!("array_{element}({}, {}, {place})", operand(len), operand(init))
            }
            Op::Free(array) => format!("free_array({})", operand(array)),
            Op::Len(array) => format!("length({})", operand(array)),
            Op::Bounds { index, len } => format!("bounds({}, {}, {place})", operand(index), operand(len)),
            Op::Load { array, index, .. } => format!("{}[{}]", operand(array), operand(index)),
            Op::Store { array, index, value, .. } => {
                format!("{}[{}] = {}", operand(array), operand(index), operand(value))
            }
            Op::Call { callee, args } => {
                let args: Vec<String> = args.iter().map(operand).collect();
                format!("{}({})", function_name(*callee, &self.program.functions[*callee]), args.join(", "))
            }
            Op::Read => format!("read_int({place})"),
            Op::Eof => "at_end()".to_string(),
            Op::Print(args) => {
                let text = self.print(args);
                return self.line(&text);
            }
            Op::Assert(cond) => format!("if (!{}) fail(\"assertion failed\", {place})", operand(cond)),
        };
        let text = match data.result.expand() {
            Some(result) => format!("{} = {expression};", self.value(result)),
            None => format!("{expression};"),
        };
        self.line(&text);
    }

    fn print(&self, args: &[PrintArg]) -> String {
        if args.is_empty() {
            return "putchar('\\n');".to_string();
        }
        let mut calls = Vec::with_capacity(args.len());
        for (position, arg) in args.iter().enumerate() {
            let end = if position + 1 == args.len() { "'\\n'" } else { "' '" };
            calls.push(match arg {
                PrintArg::Str(string) => {
                    let text = &self.program.strings[*string];
                    format!("put_text({}, {}, {end});", literal(text), text.len())
                }
                PrintArg::Operand(operand) => {
                    let put = if self.function.type_of(*operand) == Type::BOOL { "put_bool" } else { "put_int" };
                    format!("{put}({}, {end});", self.operand(*operand))
                }
            });
        }
        calls.join(" ")
    }

    fn terminator(&mut self, block: Block, next: Option<Block>) {
        let text = match &self.function.blocks[block].term {
            Terminator::Jump(edge) if Some(edge.target) == next => return,
            Terminator::Jump(edge) => format!("goto b{};", edge.target.index()),
            Terminator::Branch { cond, then, els } => {
                let mut text = format!("if ({}) goto b{};", self.operand(*cond), then.target.index());
                if Some(els.target) != next {
                    write!(text, " else goto b{};", els.target.index()).expect("a string takes all");
                }
                text
            }
            Terminator::Return(None) => "return;".to_string(),
            Terminator::Return(Some(operand)) => format!("return {};", self.operand(*operand)),
            Terminator::Unreachable => "__builtin_unreachable();".to_string(),
        };
        self.line(&text);
    }
}
