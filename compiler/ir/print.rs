//! Prints IR, in any form, into a neutral listing. `parse` reads the plain text back; docs/ir.md describes the notation.
//!
//! ```text
//! fn gcd(%0 a: int, %1 b: int) -> int {
//! b0: ; entry
//!   jump b1
//! b1: ; while.cond preds=b0,b2
//!   %2 = phi a [%0 from b0, %3 from b2]
//!   %3 = phi b [%1 from b0, %5 from b2]
//!   %4 = bool %3 != 0
//!   branch %4 ? b2 : b3
//! b2: ; while.body preds=b1
//!   %5 = int %2 % %3 @2:32 ; b
//!   jump b1
//! b3: ; while.end preds=b1
//!   return %2
//! }
//! ```
//!
//! **In**: any program, also one that the verifier would refuse. **Out**: text with `print(parse(text)) == text` for
//! every program that `parse` accepts. What the text leaves out: records of removed things, the spans of what cannot
//! trap, `replaced_by`, and the origins of copies. Cost: linear.

use super::effects::effects;
use super::types::*;
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::support::span::{Positions, Source, Span};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// The whole program, functions in the order of their ids.
pub fn print(program: &Program) -> Listing {
    print_with_source(program, None)
}

/// The whole program; given the source, a comment line shows each source line above the code that came from it.
pub fn print_with_source(program: &Program, source: Option<&Source>) -> Listing {
    let mut listing = Listing::default();
    let mut form = if inferable(program) { Some(Form::Ssa) } else { None };
    for (id, function) in &program.functions {
        if form != Some(function.form) {
            listing.sections.push(Section { function: None, lines: vec![header(function.form)] });
            form = Some(function.form);
        }
        let mut section = section(program, id, source);
        if id.index() + 1 < program.functions.len() {
            section.lines.push(Line::new());
        }
        listing.sections.push(section);
    }
    listing
}

/// One function alone, without the line that names its form.
pub fn print_function(program: &Program, function: FuncId) -> Listing {
    Listing { sections: vec![section(program, function, None)] }
}

/// An operand as listings show it.
pub fn operand_text(operand: Operand) -> String {
    match operand {
        Operand::Value(value) => value.to_string(),
        Operand::Int(value) => value.to_string(),
        Operand::Bool(value) => value.to_string(),
    }
}

/// A string as a literal of IR text: what is not printable ASCII or another visible character is escaped.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            c if c.is_control() => quoted.push_str(&format!("\\u{{{:X}}}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// May the instruction end the program at a place of the source, so that its position is part of its text?
pub fn shows_position(op: &Op) -> bool {
    match op {
        Op::Binary { .. } | Op::Bounds { .. } | Op::Array { .. } | Op::Read | Op::Assert(_) => effects(op).traps,
        Op::Copy(_)
        | Op::Parallel(_)
        | Op::Compare { .. }
        | Op::Unary { .. }
        | Op::Select { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Eof
        | Op::Print(_) => false,
    }
}

/// Can the parser see without a header that every function is in SSA form?
fn inferable(program: &Program) -> bool {
    program.functions.values().all(|function| function.form == Form::Ssa)
        && infer_form(program.functions.values()) == Form::Ssa
}

/// The form of functions that no header names: SSA if there is a φ or if each value has one definition, else over
/// variables.
pub(super) fn infer_form<'a>(functions: impl Iterator<Item = &'a Function>) -> Form {
    let mut single = true;
    for function in functions {
        if function.layout.iter().any(|block| !function.blocks[*block].params.is_empty()) {
            return Form::Ssa;
        }
        let mut defined: SecondaryMap<Value, bool> = SecondaryMap::new();
        let mut define = |value: Value| single &= !std::mem::replace(&mut defined[value], true);
        function.params.iter().for_each(|param| define(*param));
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                function.insts[*inst].for_each_def(&mut define);
            }
        }
    }
    if single { Form::Ssa } else { Form::Variables }
}

fn header(form: Form) -> Line {
    let mut line = Line::new();
    line.put(Kind::Keyword, "form").put(Kind::Plain, " ").put(Kind::Name, form.name());
    line
}

fn section(program: &Program, id: FuncId, source: Option<&Source>) -> Section {
    let function = &program.functions[id];
    let mut printer = Printer {
        program,
        function,
        positions: &program.positions,
        source,
        preds: predecessors(function),
        lines: Vec::new(),
    };
    printer.signature(id);
    for block in &function.layout {
        printer.block(*block);
    }
    let mut end = Line::new();
    end.put(Kind::Plain, "}");
    printer.lines.push(end);
    Section { function: Some(function.name.clone()), lines: printer.lines }
}

/// For each block the edges into it, as predecessor and edge number, in layout order.
fn predecessors(function: &Function) -> SecondaryMap<Block, SmallVec<[(Block, usize); 2]>> {
    let mut preds: SecondaryMap<Block, SmallVec<[(Block, usize); 2]>> = SecondaryMap::new();
    for block in &function.layout {
        for (number, edge) in function.blocks[*block].term.edges().enumerate() {
            preds[edge.target].push((*block, number));
        }
    }
    preds
}

struct Printer<'a> {
    program: &'a Program,
    function: &'a Function,
    positions: &'a Positions,
    source: Option<&'a Source>,
    preds: SecondaryMap<Block, SmallVec<[(Block, usize); 2]>>,
    lines: Vec<Line>,
}

impl Printer<'_> {
    fn signature(&mut self, id: FuncId) {
        let function = self.function;
        let mut line = Line { span: function.span, ..Line::new() };
        line.put(Kind::Keyword, "fn").put(Kind::Plain, " ");
        line.refer(Kind::Name, &function.name, Entity::Function(id.as_u32())).put(Kind::Plain, "(");
        for (n, param) in function.params.iter().enumerate() {
            comma(&mut line, n);
            value(&mut line, *param);
            if let Some(variable) = function.values[*param].variable.expand() {
                line.put(Kind::Plain, " ");
                self.variable(&mut line, variable);
            }
            line.put(Kind::Plain, ": ").put(Kind::Type, function.values[*param].ty.to_string());
        }
        line.put(Kind::Plain, ")");
        if let Some(result) = function.result {
            line.put(Kind::Plain, " -> ").put(Kind::Type, result.to_string());
        }
        line.put(Kind::Plain, " {");
        self.lines.push(line);
    }

    fn block(&mut self, block: Block) {
        let data = &self.function.blocks[block];
        let mut line = Line { entity: Some(Entity::Block(block.as_u32())), ..Line::new() };
        label(&mut line, block);
        line.put(Kind::Plain, ": ").put(Kind::Comment, format!("; {}", data.role.name()));
        let mut preds: SmallVec<[Block; 4]> = self.preds[block].iter().map(|(pred, _)| *pred).collect();
        // Both edges of one branch stand next to each other.
        preds.dedup();
        for (n, pred) in preds.iter().enumerate() {
            line.put(Kind::Comment, if n == 0 { " preds=" } else { "," });
            line.refer(Kind::Comment, pred.to_string(), Entity::Block(pred.as_u32()));
        }
        self.lines.push(line);

        for index in 0..data.params.len() {
            self.phi(block, index);
        }
        let mut last_line = 0;
        for inst in &data.insts {
            self.source_line(self.function.insts[*inst].span, &mut last_line);
            self.inst(*inst);
        }
        self.source_line(data.term_span, &mut last_line);
        self.terminator(block);
    }

    /// A comment with the source line, if it is another one than that of the instruction before.
    fn source_line(&mut self, span: Span, last: &mut u32) {
        let Some(source) = self.source else { return };
        if span.is_none() || span.start as usize > source.text.len() {
            return;
        }
        let number = source.line_of(span.start);
        if number != *last {
            *last = number;
            let mut line = Line { span, ..Line::new() };
            let text: String =
                source.line(number).trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            line.put(Kind::Plain, "  ").put(Kind::Comment, format!("; {number}: {text}"));
            self.lines.push(line);
        }
    }

    fn phi(&mut self, block: Block, index: usize) {
        let phi = self.function.blocks[block].params[index];
        let data = &self.function.values[phi];
        let mut line = Line { entity: Some(Entity::Value(phi.as_u32())), ..Line::new() };
        line.put(Kind::Plain, "  ");
        value(&mut line, phi);
        line.put(Kind::Plain, " = ").put(Kind::Keyword, "phi").put(Kind::Plain, " ");
        if let Some(variable) = data.variable.expand() {
            self.variable(&mut line, variable);
            line.put(Kind::Plain, if data.ty == Type::INT { " " } else { ": " });
        }
        if data.ty != Type::INT {
            line.put(Kind::Type, data.ty.to_string()).put(Kind::Plain, " ");
        }
        line.put(Kind::Plain, "[");
        let mut shown = 0;
        for (pred, number) in &self.preds[block] {
            let edge =
                self.function.blocks[*pred].term.edges().nth(*number).expect("the edge was found in the terminator");
            // In a broken program an operand may be missing; the listing leaves it out, the verifier complains.
            if let Some(arg) = edge.args.get(index) {
                comma(&mut line, shown);
                shown += 1;
                operand(&mut line, *arg);
                line.put(Kind::Plain, " from ");
                label(&mut line, *pred);
            }
        }
        line.put(Kind::Plain, "]");
        self.lines.push(line);
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        let mut line = Line { span: data.span, entity: Some(Entity::Inst(inst.as_u32())), ..Line::new() };
        line.put(Kind::Plain, "  ");
        if let Some(result) = data.result.expand() {
            value(&mut line, result);
            line.put(Kind::Plain, " = ");
        }
        self.op(&mut line, data);
        if shows_position(&data.op)
            && let Some(position) = self.positions.position(data.span)
        {
            line.put(Kind::Plain, " ").put(Kind::Plain, format!("@{position}"));
        }
        self.defined_variables(&mut line, data);
        self.lines.push(line);
    }

    /// The comment that names the variables of which the instruction defines versions.
    fn defined_variables(&self, line: &mut Line, data: &InstData) {
        let mut defs: SmallVec<[Value; 4]> = SmallVec::new();
        data.for_each_def(|value| defs.push(value));
        if defs.iter().all(|value| self.function.values[*value].variable.is_none()) {
            return;
        }
        line.put(Kind::Plain, " ").put(Kind::Comment, "; ");
        for (n, value) in defs.iter().enumerate() {
            if n > 0 {
                line.put(Kind::Comment, ", ");
            }
            match self.function.values[*value].variable.expand() {
                Some(variable) => {
                    let name = &self.function.variables[variable].name;
                    line.refer(Kind::Comment, name, Entity::Variable(variable.as_u32()));
                }
                None => {
                    line.put(Kind::Comment, "-");
                }
            }
        }
    }

    fn op(&self, line: &mut Line, data: &InstData) {
        match &data.op {
            Op::Copy(source) => {
                line.put(Kind::Keyword, "copy").put(Kind::Plain, " ");
                operand(line, *source);
            }
            Op::Parallel(copies) => {
                line.put(Kind::Keyword, "parallel");
                for (n, (destination, source)) in copies.iter().enumerate() {
                    line.put(Kind::Plain, if n == 0 { " " } else { ", " });
                    value(line, *destination);
                    line.put(Kind::Plain, " = ");
                    operand(line, *source);
                }
            }
            Op::Binary { op, ty, args } => {
                line.put(Kind::Type, ty.to_string()).put(Kind::Plain, " ");
                infix(line, args[0], op.symbol(), args[1]);
            }
            Op::Compare { op, args } => {
                line.put(Kind::Type, "bool").put(Kind::Plain, " ");
                infix(line, args[0], op.symbol(), args[1]);
            }
            Op::Unary { op, arg } => {
                let symbol = match op {
                    crate::semantics::UnaryOp::IntOfBool => "of",
                    other => other.symbol(),
                };
                line.put(Kind::Type, op.result().to_string()).put(Kind::Plain, " ");
                line.put(Kind::Keyword, symbol).put(Kind::Plain, " ");
                operand(line, *arg);
            }
            Op::Select { cond, args } => {
                line.put(Kind::Keyword, "select").put(Kind::Plain, " ");
                operand(line, *cond);
                line.put(Kind::Plain, " ? ");
                infix(line, args[0], ":", args[1]);
            }
            Op::Array { element, init, len } => {
                line.put(Kind::Keyword, "array").put(Kind::Plain, " ").put(Kind::Type, element.to_string());
                line.put(Kind::Plain, " [");
                operand(line, *init);
                line.put(Kind::Plain, "; ");
                operand(line, *len);
                line.put(Kind::Plain, "]");
            }
            Op::Free(array) => {
                line.put(Kind::Keyword, "free").put(Kind::Plain, " ");
                operand(line, *array);
            }
            Op::Len(array) => {
                line.put(Kind::Keyword, "len").put(Kind::Plain, " ");
                operand(line, *array);
            }
            Op::Bounds { index, len } => {
                line.put(Kind::Keyword, "bounds").put(Kind::Plain, " ");
                infix(line, *index, "<", *len);
            }
            Op::Load { element, array, index } => {
                line.put(Kind::Keyword, "load").put(Kind::Plain, " ").put(Kind::Type, element.to_string());
                self.element(line, *array, *index);
            }
            Op::Store { element, array, index, value } => {
                line.put(Kind::Keyword, "store").put(Kind::Plain, " ").put(Kind::Type, element.to_string());
                self.element(line, *array, *index);
                line.put(Kind::Plain, " = ");
                operand(line, *value);
            }
            Op::Call { callee, args } => {
                line.put(Kind::Keyword, "call").put(Kind::Plain, " ");
                let name = &self.program.functions[*callee].name;
                line.refer(Kind::Name, name, Entity::Function(callee.as_u32())).put(Kind::Plain, "(");
                for (n, arg) in args.iter().enumerate() {
                    comma(line, n);
                    operand(line, *arg);
                }
                line.put(Kind::Plain, ")");
            }
            Op::Read => {
                line.put(Kind::Keyword, "read");
            }
            Op::Eof => {
                line.put(Kind::Keyword, "eof");
            }
            Op::Print(args) => {
                line.put(Kind::Keyword, "print");
                for (n, arg) in args.iter().enumerate() {
                    line.put(Kind::Plain, if n == 0 { " " } else { ", " });
                    match arg {
                        PrintArg::Operand(arg) => operand(line, *arg),
                        PrintArg::Str(string) => {
                            line.put(Kind::Literal, quote(&self.program.strings[*string]));
                        }
                    }
                }
            }
            Op::Assert(cond) => {
                line.put(Kind::Keyword, "assert").put(Kind::Plain, " ");
                operand(line, *cond);
            }
        }
    }

    fn element(&self, line: &mut Line, array: Operand, index: Operand) {
        line.put(Kind::Plain, " ");
        operand(line, array);
        line.put(Kind::Plain, "[");
        operand(line, index);
        line.put(Kind::Plain, "]");
    }

    fn terminator(&mut self, block: Block) {
        let data = &self.function.blocks[block];
        let mut line = Line { span: data.term_span, ..Line::new() };
        line.put(Kind::Plain, "  ");
        match &data.term {
            Terminator::Jump(edge) => {
                line.put(Kind::Keyword, "jump").put(Kind::Plain, " ");
                label(&mut line, edge.target);
            }
            Terminator::Branch { cond, then, els } => {
                line.put(Kind::Keyword, "branch").put(Kind::Plain, " ");
                operand(&mut line, *cond);
                line.put(Kind::Plain, " ? ");
                label(&mut line, then.target);
                line.put(Kind::Plain, " : ");
                label(&mut line, els.target);
            }
            Terminator::Return(result) => {
                line.put(Kind::Keyword, "return");
                if let Some(result) = result {
                    line.put(Kind::Plain, " ");
                    operand(&mut line, *result);
                }
            }
            Terminator::Unreachable => {
                line.put(Kind::Keyword, "unreachable");
            }
        }
        self.lines.push(line);
    }

    fn variable(&self, line: &mut Line, variable: Variable) {
        line.refer(Kind::Name, &self.function.variables[variable].name, Entity::Variable(variable.as_u32()));
    }
}

fn comma(line: &mut Line, n: usize) {
    if n > 0 {
        line.put(Kind::Plain, ", ");
    }
}

fn value(line: &mut Line, value: Value) {
    line.refer(Kind::Value, value.to_string(), Entity::Value(value.as_u32()));
}

fn label(line: &mut Line, block: Block) {
    line.refer(Kind::Block, block.to_string(), Entity::Block(block.as_u32()));
}

fn operand(line: &mut Line, operand: Operand) {
    match operand {
        Operand::Value(v) => value(line, v),
        Operand::Int(_) | Operand::Bool(_) => {
            line.put(Kind::Literal, operand_text(operand));
        }
    }
}

fn infix(line: &mut Line, left: Operand, symbol: &str, right: Operand) {
    operand(line, left);
    line.put(Kind::Plain, " ").put(Kind::Keyword, symbol).put(Kind::Plain, " ");
    operand(line, right);
}
