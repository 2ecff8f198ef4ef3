//! Reads IR text: the mirror of `print`. docs/ir.md describes the notation.
//!
//! Each line stands for itself, so the reader goes line by line and recovers at the next line after a mistake. What a
//! line can only name before it is known (callees, the edges that a φ's operands belong to, the types of copies) is
//! resolved at the end of the function or of the text. Numbers of values and blocks are kept, gaps included.
//!
//! **In**: any text. **Out**: a program whose edges go to blocks that exist and have one argument for each φ, with an
//! entry function `main`; or diagnostics. Whether it obeys the rules of its form is the verifier's business: text may
//! well name values that nothing defines. Spans are into the IR text, and the program's positions are those written in
//! it. Cost: linear.

use super::lex::{Token, tokens};
use super::print::infer_form;
use super::resolve::{Draft, Phi, complete};
use super::types::*;
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use crate::support::diagnostics::{Code, Diagnostic};
use crate::support::span::{Position, Positions, Source, Span};
use cranelift_entity::{EntityRef, EntitySet, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A line that is not IR.
pub const MALFORMED: Code = Code(901);
/// A name or number that stands for nothing.
pub const UNKNOWN: Code = Code(902);
/// Something defined twice.
pub const DUPLICATE: Code = Code(903);
/// A φ whose operands are not those of the edges into its block.
pub const PHI_OPERANDS: Code = Code(904);
/// A function without blocks, a block without an end, a program without a body.
pub const INCOMPLETE: Code = Code(905);

/// After so many mistakes the reader gives up.
pub(super) const MAX_DIAGNOSTICS: usize = 50;

/// Numbers of values and blocks may leave gaps (removed things keep theirs), but no more than this plus the length of
/// the text, so that a few bytes of text cannot ask for all memory.
const MAX_GAPS: usize = 1 << 22;

/// Reads a program.
pub fn parse(source: &Source) -> Result<Program, Vec<Diagnostic>> {
    let mut parser = Parser {
        functions: Vec::new(),
        open: false,
        form: None,
        headless: 0,
        strings: PrimaryMap::new(),
        string_ids: FxHashMap::default(),
        pairs: Vec::new(),
        diagnostics: Vec::new(),
        budget: MAX_GAPS + source.text.len(),
    };
    let mut offset = 0;
    for line in source.text.split_inclusive('\n') {
        if let Err(diagnostic) = parser.line(line, offset) {
            parser.diagnostics.push(*diagnostic);
        }
        if parser.diagnostics.len() >= MAX_DIAGNOSTICS {
            return Err(parser.diagnostics);
        }
        offset += line.len();
    }
    parser.finish(Span::new(offset, offset))
}

/// Boxed, as it is rare and large.
type Outcome<T> = Result<T, Box<Diagnostic>>;

fn mistake(code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, span, message))
}

struct Parser<'a> {
    functions: Vec<Draft<'a>>,
    /// The last function has not ended yet.
    open: bool,
    /// What the last header said.
    form: Option<Form>,
    /// How many functions stand before the first header.
    headless: usize,
    strings: PrimaryMap<StrId, String>,
    string_ids: FxHashMap<String, StrId>,
    pairs: Vec<(u32, Position)>,
    diagnostics: Vec<Diagnostic>,
    /// How many more records of values and blocks may be made.
    budget: usize,
}

/// The tokens of a line, read from left to right.
struct Tokens<'t, 'a> {
    tokens: &'t [(Token<'a>, Span)],
    at: usize,
    end: Span,
}

impl<'t, 'a> Tokens<'t, 'a> {
    fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.end, |(_, span)| *span)
    }

    fn expected<T>(&self, what: &str) -> Outcome<T> {
        Err(mistake(MALFORMED, self.span(), format!("expected {what}")))
    }

    /// Takes the sign if it is next.
    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> Outcome<()> {
        if self.accept(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    fn name(&mut self, what: &str) -> Outcome<(&'a str, Span)> {
        let span = self.span();
        match self.peek() {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok((name, span))
            }
            _ => self.expected(what),
        }
    }

    /// Is the next token this name?
    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(next)) if *next == name)
    }

    fn scalar(&mut self) -> Outcome<Scalar> {
        let scalar = match self.peek() {
            Some(Token::Name("int")) => Scalar::Int,
            Some(Token::Name("bool")) => Scalar::Bool,
            _ => return self.expected("`int` or `bool`"),
        };
        self.at += 1;
        Ok(scalar)
    }

    fn ty(&mut self) -> Outcome<Type> {
        if self.accept("[") {
            let element = self.scalar()?;
            self.sign("]")?;
            return Ok(Type::Array(element));
        }
        if self.is_name("int") || self.is_name("bool") {
            self.scalar().map(Type::Scalar)
        } else {
            self.expected("a type")
        }
    }

    /// Is the next thing a type? A `[` may also open a φ's operands, of which none is called like a type.
    fn at_type(&self) -> bool {
        let name = |at: usize| matches!(self.tokens.get(at), Some((Token::Name("int" | "bool"), _)));
        name(self.at) || (matches!(self.peek(), Some(Token::Sign("["))) && name(self.at + 1))
    }
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &'a str, offset: usize) -> Outcome<()> {
        let mut cut = tokens(line, offset).map_err(|(span, why)| mistake(MALFORMED, span, why))?;
        let comment = match cut.last() {
            Some((Token::Comment(text), _)) => Some(*text),
            _ => None,
        };
        if comment.is_some() {
            cut.pop();
        }
        let Some((_, last)) = cut.last() else { return Ok(()) };
        let span = cut[0].1.to(*last);
        let tokens = &mut Tokens { tokens: &cut, at: 0, end: last.after() };
        match tokens.peek() {
            Some(Token::Sign("}")) => {
                tokens.at += 1;
                self.close(span)?;
            }
            Some(Token::Name("fn")) => self.signature(tokens)?,
            Some(Token::Name("form")) => self.header(tokens)?,
            Some(Token::Name(_)) if matches!(cut.get(1), Some((Token::Sign(":"), _))) => self.label(tokens, comment)?,
            _ => self.instruction(tokens, span, comment)?,
        }
        if tokens.at < tokens.tokens.len() { tokens.expected("the end of the line") } else { Ok(()) }
    }

    fn header(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<()> {
        let start = tokens.span();
        tokens.at += 1;
        let (name, span) = tokens.name("the name of a form")?;
        if self.open {
            return Err(mistake(MALFORMED, start, "a form cannot be named within a function"));
        }
        match Form::ALL.iter().find(|form| form.name() == name) {
            Some(form) => self.form = Some(*form),
            None => {
                let names = Form::ALL.map(Form::name).join("`, `");
                let error = Diagnostic::error(UNKNOWN, span, format!("there is no form `{name}`"));
                return Err(Box::new(error.help(format!("the forms are `{names}`"))));
            }
        }
        Ok(())
    }

    fn signature(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<()> {
        let start = tokens.span();
        tokens.at += 1;
        if self.open {
            self.open = false;
            self.diagnostics.push(Diagnostic::error(INCOMPLETE, start, "the function before this one has no `}`"));
        }
        let (name, span) = tokens.name("the function's name")?;
        // Until the header says otherwise; `finish` infers the form where none does.
        let mut function = Function::new(name, self.form.unwrap_or(Form::Variables));
        function.span = span;
        self.functions.push(Draft {
            function,
            name_span: span,
            current: None,
            ended: false,
            labelled: EntitySet::new(),
            mentioned: Vec::new(),
            phis: Vec::new(),
            calls: Vec::new(),
            types: SecondaryMap::new(),
            same: Vec::new(),
            names: Vec::new(),
        });
        self.headless += usize::from(self.form.is_none());
        self.open = true;
        tokens.sign("(")?;
        let mut params = Vec::new();
        while !tokens.accept(")") {
            if !params.is_empty() {
                tokens.sign(",")?;
            }
            let param = self.value(tokens)?;
            if !tokens.accept(":") {
                let (name, _) = tokens.name("the parameter's name or `:`")?;
                self.draft().names.push((param, name));
                tokens.sign(":")?;
            }
            let ty = tokens.ty()?;
            self.draft().types[param] = Some(ty);
            params.push(param);
        }
        self.draft().function.params = params;
        if tokens.accept("->") {
            self.draft().function.result = Some(tokens.scalar()?);
        }
        tokens.sign("{")
    }

    /// The function that is being read.
    fn draft(&mut self) -> &mut Draft<'a> {
        self.functions.last_mut().expect("only called within a function")
    }

    fn close(&mut self, span: Span) -> Outcome<()> {
        if !self.open {
            return Err(mistake(MALFORMED, span, "this `}` closes nothing"));
        }
        self.open = false;
        self.block_must_have_ended(span)
    }

    fn block_must_have_ended(&mut self, span: Span) -> Outcome<()> {
        let draft = self.draft();
        match draft.current {
            Some(block) if !draft.ended => {
                draft.ended = true;
                let message = format!("{block} does not end in `jump`, `branch`, `return` or `unreachable`");
                Err(mistake(INCOMPLETE, span, message))
            }
            _ => Ok(()),
        }
    }

    fn label(&mut self, tokens: &mut Tokens<'_, 'a>, comment: Option<&'a str>) -> Outcome<()> {
        let span = tokens.span();
        if !self.open {
            return Err(mistake(MALFORMED, span, "a block must stand in a function"));
        }
        let unended = self.block_must_have_ended(span);
        let block = self.block(tokens)?;
        tokens.sign(":")?;
        let draft = self.draft();
        if !draft.labelled.insert(block) {
            // What follows goes into the block all the same: one mistake, one diagnostic.
            draft.ended = false;
            draft.current = Some(block);
            return Err(mistake(DUPLICATE, span, format!("{block} stands here a second time")));
        }
        let role = comment.and_then(|text| text.split_whitespace().next());
        let role = role.and_then(|name| Role::ALL.iter().find(|role| role.name() == name));
        draft.function.blocks[block].role = role.copied().unwrap_or(Role::Other);
        draft.function.layout.push(block);
        draft.current = Some(block);
        draft.ended = false;
        unended
    }

    fn block(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<Block> {
        let span = tokens.span();
        let number = match tokens.peek() {
            Some(Token::Name(name)) => name.strip_prefix('b').filter(|digits| {
                digits.bytes().all(|b| b.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'))
            }),
            _ => None,
        };
        let Some(number) = number.filter(|digits| !digits.is_empty()) else {
            return tokens.expected("a block, as in `b3`");
        };
        tokens.at += 1;
        let number: usize = number.parse().unwrap_or(usize::MAX);
        let made = self.draft().function.blocks.len();
        self.spend(number, made, span)?;
        let blocks = &mut self.draft().function.blocks;
        while blocks.len() <= number {
            blocks.push(BlockData {
                params: Vec::new(),
                insts: Vec::new(),
                term: Terminator::Unreachable,
                term_span: Span::NONE,
                role: Role::Other,
            });
        }
        Ok(Block::new(number))
    }

    fn value(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<Value> {
        let span = tokens.span();
        let Some(Token::Value(number)) = tokens.peek() else { return tokens.expected("a value, as in `%3`") };
        tokens.at += 1;
        let number = *number as usize;
        let made = self.draft().function.values.len();
        self.spend(number, made, span)?;
        let values = &mut self.draft().function.values;
        while values.len() <= number {
            values.push(ValueData { ty: Type::INT, variable: None.into(), replaced_by: None, version_of: None.into() });
        }
        Ok(Value::new(number))
    }

    /// Takes from the budget what records up to `number` need where `made` exist.
    fn spend(&mut self, number: usize, made: usize, span: Span) -> Outcome<()> {
        let more = number.saturating_add(1).saturating_sub(made);
        match self.budget.checked_sub(more) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => Err(mistake(MALFORMED, span, "this number leaves too large a gap behind the others")),
        }
    }

    fn operand(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<Operand> {
        let constant = match tokens.peek() {
            Some(Token::Value(_)) => return self.value(tokens).map(Operand::Value),
            Some(Token::Int(value)) => Operand::Int(*value),
            Some(Token::Name("true")) => Operand::Bool(true),
            Some(Token::Name("false")) => Operand::Bool(false),
            _ => return tokens.expected("a value or a constant"),
        };
        tokens.at += 1;
        Ok(constant)
    }

    fn instruction(&mut self, tokens: &mut Tokens<'_, 'a>, span: Span, comment: Option<&'a str>) -> Outcome<()> {
        if !self.open {
            return Err(mistake(MALFORMED, span, "an instruction must stand in a function"));
        }
        let draft = self.draft();
        let Some(block) = draft.current else {
            return Err(mistake(MALFORMED, span, "an instruction must stand in a block"));
        };
        if draft.ended {
            return Err(mistake(MALFORMED, span, format!("{block} has ended before this line")));
        }
        let result = match tokens.peek() {
            Some(Token::Value(_)) => {
                let result = self.value(tokens)?;
                tokens.sign("=")?;
                Some(result)
            }
            _ => None,
        };
        let at_operation = tokens.span();
        if tokens.is_name("phi") {
            let Some(result) = result else { return tokens.expected("`%n = ` before `phi`") };
            return self.phi(tokens, block, result, span);
        }
        if result.is_none()
            && let Some(term) = self.terminator(tokens)?
        {
            let draft = self.draft();
            draft.function.blocks[block].term = term;
            draft.function.blocks[block].term_span = span;
            draft.ended = true;
            return Ok(());
        }

        let mut call = None;
        let op = self.op(tokens, &mut call)?;
        let ty = match result_type(&op) {
            ResultType::None if result.is_some() => {
                return Err(mistake(MALFORMED, at_operation, "this instruction gives no value"));
            }
            ResultType::Is(ty) => Some(ty),
            ResultType::None | ResultType::OfOperands | ResultType::OfCallee => None,
        };
        if let Some(Token::Position(position)) = tokens.peek() {
            tokens.at += 1;
            self.pairs.push((span.start, *position));
        }
        let draft = self.draft();
        if let Some(result) = result {
            if draft.types[result].is_none() {
                draft.types[result] = ty;
            }
            match &op {
                Op::Copy(source) => draft.same.push((*source, result)),
                Op::Select { args, .. } => args.iter().for_each(|arg| draft.same.push((*arg, result))),
                _ => {}
            }
        }
        if let Op::Parallel(copies) = &op {
            draft.same.extend(copies.iter().map(|(destination, source)| (*source, *destination)));
        }
        let inst = draft.function.make_inst(op, result, span);
        draft.function.blocks[block].insts.push(inst);
        if let Some((name, span)) = call {
            draft.calls.push((inst, name, span));
        }
        if let Some(comment) = comment {
            name_definitions(draft, inst, comment);
        }
        Ok(())
    }

    fn phi(&mut self, tokens: &mut Tokens<'_, 'a>, block: Block, value: Value, span: Span) -> Outcome<()> {
        let start = tokens.span();
        tokens.at += 1;
        let mut ty = Type::INT;
        if tokens.at_type() {
            ty = tokens.ty()?;
        } else if matches!(tokens.peek(), Some(Token::Name(_))) {
            let (name, _) = tokens.name("the variable's name")?;
            self.draft().names.push((value, name));
            if tokens.accept(":") {
                ty = tokens.ty()?;
            }
        }
        tokens.sign("[")?;
        let mut operands = Vec::new();
        while !tokens.accept("]") {
            if !operands.is_empty() {
                tokens.sign(",")?;
            }
            let at = tokens.span();
            let operand = self.operand(tokens)?;
            if !tokens.is_name("from") {
                return tokens.expected("`from`");
            }
            tokens.at += 1;
            operands.push((operand, self.block(tokens)?, at));
        }
        let draft = self.draft();
        if !draft.function.blocks[block].insts.is_empty() {
            return Err(mistake(MALFORMED, start, "a phi must stand before the block's instructions"));
        }
        if draft.types[value].is_none() {
            draft.types[value] = Some(ty);
        }
        draft.function.blocks[block].params.push(value);
        draft.phis.push(Phi { block, value, operands, span });
        Ok(())
    }

    fn terminator(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<Option<Terminator>> {
        let Some(Token::Name(name)) = tokens.peek() else { return Ok(None) };
        let start = tokens.at;
        tokens.at += 1;
        Ok(Some(match *name {
            "jump" => Terminator::Jump(self.edge(tokens)?),
            "branch" => {
                let cond = self.operand(tokens)?;
                tokens.sign("?")?;
                let then = self.edge(tokens)?;
                tokens.sign(":")?;
                let els = self.edge(tokens)?;
                Terminator::Branch { cond, then, els }
            }
            "return" if tokens.peek().is_none() => Terminator::Return(None),
            "return" => Terminator::Return(Some(self.operand(tokens)?)),
            "unreachable" => Terminator::Unreachable,
            _ => {
                tokens.at = start;
                return Ok(None);
            }
        }))
    }

    fn edge(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<Edge> {
        let span = tokens.span();
        let target = self.block(tokens)?;
        self.draft().mentioned.push((target, span));
        Ok(Edge::to(target))
    }

    fn op(&mut self, tokens: &mut Tokens<'_, 'a>, call: &mut Option<(&'a str, Span)>) -> Outcome<Op> {
        let (name, span) = tokens.name("an instruction")?;
        Ok(match name {
            "copy" => Op::Copy(self.operand(tokens)?),
            "parallel" => {
                let mut copies = Vec::new();
                while matches!(tokens.peek(), Some(Token::Value(_))) {
                    let destination = self.value(tokens)?;
                    tokens.sign("=")?;
                    copies.push((destination, self.operand(tokens)?));
                    if !tokens.accept(",") {
                        break;
                    }
                }
                Op::Parallel(copies)
            }
            "int" | "bool" => {
                let ty = if name == "int" { Scalar::Int } else { Scalar::Bool };
                self.arithmetic(tokens, ty)?
            }
            "select" => {
                let cond = self.operand(tokens)?;
                tokens.sign("?")?;
                let yes = self.operand(tokens)?;
                tokens.sign(":")?;
                Op::Select { cond, args: [yes, self.operand(tokens)?] }
            }
            "array" => {
                let element = tokens.scalar()?;
                tokens.sign("[")?;
                let init = self.operand(tokens)?;
                tokens.sign(";")?;
                let len = self.operand(tokens)?;
                tokens.sign("]")?;
                Op::Array { element, init, len }
            }
            "free" => Op::Free(self.operand(tokens)?),
            "len" => Op::Len(self.operand(tokens)?),
            "bounds" => {
                let index = self.operand(tokens)?;
                tokens.sign("<")?;
                Op::Bounds { index, len: self.operand(tokens)? }
            }
            "load" => {
                let (element, array, index) = self.element(tokens)?;
                Op::Load { element, array, index }
            }
            "store" => {
                let (element, array, index) = self.element(tokens)?;
                tokens.sign("=")?;
                Op::Store { element, array, index, value: self.operand(tokens)? }
            }
            "call" => {
                *call = Some(tokens.name("a function's name")?);
                tokens.sign("(")?;
                let mut args = Vec::new();
                while !tokens.accept(")") {
                    if !args.is_empty() {
                        tokens.sign(",")?;
                    }
                    args.push(self.operand(tokens)?);
                }
                // The callee is filled in when all functions are known.
                Op::Call { callee: FuncId::from_u32(0), args }
            }
            "read" => Op::Read,
            "eof" => Op::Eof,
            "print" => {
                let mut args = Vec::new();
                while tokens.peek().is_some() {
                    if !args.is_empty() {
                        tokens.sign(",")?;
                    }
                    args.push(match tokens.peek() {
                        Some(Token::Str(text)) => {
                            tokens.at += 1;
                            PrintArg::Str(self.string(text))
                        }
                        _ => PrintArg::Operand(self.operand(tokens)?),
                    });
                }
                Op::Print(args)
            }
            "assert" => Op::Assert(self.operand(tokens)?),
            _ => return Err(mistake(UNKNOWN, span, format!("there is no instruction `{name}`"))),
        })
    }

    /// What follows `int` or `bool`: a prefix operation, or an infix one.
    fn arithmetic(&mut self, tokens: &mut Tokens<'_, 'a>, ty: Scalar) -> Outcome<Op> {
        let prefix = match (tokens.peek(), ty) {
            (Some(Token::Sign("-")), Scalar::Int) => Some(UnaryOp::Neg),
            (Some(Token::Sign("~")), Scalar::Int) => Some(UnaryOp::BitNot),
            (Some(Token::Name("of")), Scalar::Int) => Some(UnaryOp::IntOfBool),
            (Some(Token::Sign("!")), Scalar::Bool) => Some(UnaryOp::Not),
            _ => None,
        };
        if let Some(op) = prefix {
            tokens.at += 1;
            return Ok(Op::Unary { op, arg: self.operand(tokens)? });
        }
        let left = self.operand(tokens)?;
        let Some(Token::Sign(symbol)) = tokens.peek() else { return tokens.expected("an operator") };
        if let Some(op) = BinaryOp::ALL.iter().find(|op| op.symbol() == *symbol) {
            tokens.at += 1;
            return Ok(Op::Binary { op: *op, ty, args: [left, self.operand(tokens)?] });
        }
        match CompareOp::ALL.iter().find(|op| op.symbol() == *symbol) {
            Some(op) if ty == Scalar::Bool => {
                tokens.at += 1;
                Ok(Op::Compare { op: *op, args: [left, self.operand(tokens)?] })
            }
            Some(_) => tokens.expected("an operator that gives an `int`: comparisons give a `bool`"),
            None => tokens.expected("an operator"),
        }
    }

    fn element(&mut self, tokens: &mut Tokens<'_, 'a>) -> Outcome<(Scalar, Operand, Operand)> {
        let element = tokens.scalar()?;
        let array = self.operand(tokens)?;
        tokens.sign("[")?;
        let index = self.operand(tokens)?;
        tokens.sign("]")?;
        Ok((element, array, index))
    }

    fn string(&mut self, text: &str) -> StrId {
        if let Some(id) = self.string_ids.get(text) {
            return *id;
        }
        let id = self.strings.push(text.to_string());
        self.string_ids.insert(text.to_string(), id);
        id
    }

    /// Resolves what lines could only name.
    fn finish(mut self, end: Span) -> Result<Program, Vec<Diagnostic>> {
        if self.open {
            self.diagnostics.push(Diagnostic::error(INCOMPLETE, end, "the last function has no `}`"));
        }
        let mut names: FxHashMap<&str, FuncId> = FxHashMap::default();
        for (n, draft) in self.functions.iter().enumerate() {
            if names.insert(&draft.function.name, FuncId::new(n)).is_some() {
                let message = format!("there are two functions `{}`", draft.function.name);
                self.diagnostics.push(Diagnostic::error(DUPLICATE, draft.name_span, message));
            }
        }
        let Some(entry) = names.get("main").copied() else {
            self.diagnostics.push(Diagnostic::error(INCOMPLETE, end, "the program has no function `main`"));
            return Err(self.diagnostics);
        };

        let mut callees: Vec<Vec<FuncId>> = Vec::new();
        for draft in &self.functions {
            let mut resolved = Vec::new();
            for (_, name, span) in &draft.calls {
                match names.get(name) {
                    Some(callee) => resolved.push(*callee),
                    None => {
                        self.diagnostics.push(Diagnostic::error(
                            UNKNOWN,
                            *span,
                            format!("there is no function `{name}`"),
                        ));
                        resolved.push(entry);
                    }
                }
            }
            callees.push(resolved);
        }
        let results: Vec<Option<Scalar>> = self.functions.iter().map(|draft| draft.function.result).collect();
        for (draft, callees) in self.functions.iter_mut().zip(callees) {
            for ((inst, _, span), callee) in draft.calls.iter().zip(callees) {
                let data = &mut draft.function.insts[*inst];
                if let Op::Call { callee: target, .. } = &mut data.op {
                    *target = callee;
                }
                match (data.result.expand(), results[callee.index()]) {
                    (Some(result), Some(ty)) => {
                        if draft.types[result].is_none() {
                            draft.types[result] = Some(Type::Scalar(ty));
                        }
                    }
                    (Some(_), None) => {
                        self.diagnostics.push(Diagnostic::error(MALFORMED, *span, "this function gives no value"));
                    }
                    (None, _) => {}
                }
            }
            complete(draft, &mut self.diagnostics);
            if self.diagnostics.len() >= MAX_DIAGNOSTICS {
                break;
            }
        }
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics);
        }

        let headless = &mut self.functions[..self.headless];
        let form = infer_form(headless.iter().map(|draft| &draft.function));
        headless.iter_mut().for_each(|draft| draft.function.form = form);
        Ok(Program {
            functions: self.functions.into_iter().map(|draft| draft.function).collect(),
            entry,
            strings: self.strings,
            positions: Positions::of_pairs(self.pairs),
        })
    }
}

/// What is known of an instruction's result by its operation alone.
enum ResultType {
    None,
    Is(Type),
    OfOperands,
    OfCallee,
}

fn result_type(op: &Op) -> ResultType {
    match op {
        Op::Copy(_) | Op::Select { .. } => ResultType::OfOperands,
        Op::Binary { ty, .. } => ResultType::Is(Type::Scalar(*ty)),
        Op::Compare { .. } | Op::Eof => ResultType::Is(Type::BOOL),
        Op::Unary { op, .. } => ResultType::Is(Type::Scalar(op.result())),
        Op::Array { element, .. } => ResultType::Is(Type::Array(*element)),
        Op::Len(_) | Op::Read => ResultType::Is(Type::INT),
        Op::Load { element, .. } => ResultType::Is(Type::Scalar(*element)),
        Op::Call { .. } => ResultType::OfCallee,
        Op::Parallel(_) | Op::Free(_) | Op::Bounds { .. } | Op::Store { .. } | Op::Print(_) | Op::Assert(_) => {
            ResultType::None
        }
    }
}

/// A comment of variable names, one for each definition, says which variables' versions the definitions are.
fn name_definitions<'a>(draft: &mut Draft<'a>, inst: Inst, comment: &'a str) {
    let mut defs: SmallVec<[Value; 4]> = SmallVec::new();
    draft.function.insts[inst].for_each_def(|value| defs.push(value));
    let is_name = |name: &str| {
        name == "-"
            || (name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.'))
    };
    let names = comment.split(',').map(str::trim);
    if names.clone().count() == defs.len() && names.clone().all(is_name) {
        draft.names.extend(defs.into_iter().zip(names).filter(|(_, name)| *name != "-"));
    }
}
