//! Checks a program and resolves its names and types: tree → HIR.
//!
//! One walk over each function, statements in order; an expression is checked in a loop over its nodes, children first.
//! Scopes are one table from names to what they mean now, and a log that undoes a block's declarations where it ends.
//! Functions are collected first, so that they may be called before they stand in the file. Whether control can come to
//! the end of a function is found on the way ("definite return"): only a literal `true` makes a loop that does not fall
//! through, and any `break` in it counts.
//!
//! ```text
//! let x = 1; { let x = y; }   →   error[E0301]: there is no variable `y`
//! ```
//!
//! **in**: a tree, possibly with `Error` nodes. **out**: HIR with its invariants, or the mistakes: one message each, because
//! whatever is wrong becomes an unknown that agrees with everything. Cost: linear; recursion is as deep as blocks nest.

mod calls;
mod exprs;
mod flow;
mod names;
mod scopes;
mod stmts;

use crate::hir::{self, FuncId};
use crate::semantics::Scalar;
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::intern::Symbol;
use crate::support::span::{Positions, Source, Span};
use crate::syntax::ast::{self, Ast, FnId, StmtKind, TypeKind};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use flow::Flow;
use rustc_hash::FxHashMap;
use scopes::Scopes;

/// After so many mistakes the checker gives up.
pub const MAX_ERRORS: usize = 100;

/// The functions that the language brings.
pub const BUILT_IN: [&str; 3] = ["len", "read", "eof"];

/// Checks a program. The mistakes come in the order of the source; there are none where the tree had all of them
/// (`Err` of an empty list: syntax errors have been reported, and nothing else is wrong).
pub fn run(ast: &Ast, source: &Source) -> Result<hir::Program, Vec<Diagnostic>> {
    let mut checker = Checker::new(ast, source);
    let broken = checker.collect_functions();
    checker.check_functions();
    checker.check_body();
    let Checker { program, mut diagnostics, poisoned, .. } = checker;
    if diagnostics.is_empty() && !poisoned && !broken {
        return Ok(program);
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.span.start);
    diagnostics.truncate(MAX_ERRORS);
    Err(diagnostics)
}

/// A type, or that it is unknown because of a mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Scalar(Scalar),
    Array(Scalar),
    Error,
}

impl Ty {
    fn of(kind: TypeKind) -> Ty {
        match kind {
            TypeKind::Scalar(scalar) => Ty::Scalar(scalar),
            TypeKind::Array(element) => Ty::Array(element),
            TypeKind::Error => Ty::Error,
        }
    }

    /// For HIR; what it says of a mistake does not matter.
    fn hir(self) -> hir::Type {
        match self {
            Ty::Scalar(scalar) => hir::Type::Scalar(scalar),
            Ty::Array(element) => hir::Type::Array(element),
            Ty::Error => hir::Type::Scalar(Scalar::Int),
        }
    }
}

/// What a function gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gives {
    Nothing,
    Scalar(Scalar),
    Error,
}

/// What is known of a function from its heading.
#[derive(Clone, Debug)]
struct Signature {
    id: FuncId,
    function: FnId,
    gives: Gives,
}

struct Checker<'a> {
    ast: &'a Ast,
    source: &'a Source,
    diagnostics: Vec<Diagnostic>,
    /// Was something unknown met that has been reported before?
    poisoned: bool,
    program: hir::Program,
    /// The functions by name; of two with one name, the first.
    functions: FxHashMap<Symbol, Signature>,
    /// The ids of all functions.
    ids: SecondaryMap<FnId, Option<FuncId>>,
    /// What each expression has been found to be.
    checked: SecondaryMap<ast::ExprId, exprs::Checked>,
    /// The nodes of the expression at hand, kept for its memory.
    order: Vec<ast::ExprId>,
    scopes: Scopes,
    flow: Flow,
    /// The variables of the function at hand.
    variables: PrimaryMap<hir::Variable, hir::VariableData>,
    /// How often a name has been declared in it.
    declared: FxHashMap<Symbol, u32>,
    /// The function at hand, unless it is the body.
    current: Option<FnId>,
    /// What it gives.
    gives: Gives,
    /// Every `let` of the file by name, once a message has needed it.
    lets: Option<FxHashMap<Symbol, Vec<Span>>>,
}

impl<'a> Checker<'a> {
    fn new(ast: &'a Ast, source: &'a Source) -> Checker<'a> {
        let mut functions = PrimaryMap::new();
        let entry = functions.push(hir::Function {
            name: "main".to_string(),
            span: Span::NONE,
            params: Vec::new(),
            result: None,
            variables: PrimaryMap::new(),
            body: Vec::new(),
            end: Span::new(source.text.len(), source.text.len()),
        });
        Checker {
            ast,
            source,
            diagnostics: Vec::new(),
            poisoned: false,
            program: hir::Program {
                functions,
                entry,
                stmts: PrimaryMap::with_capacity(ast.stmts.len()),
                exprs: PrimaryMap::with_capacity(ast.exprs.len()),
                strings: ast.strings.clone(),
                positions: Positions::of_source(source),
            },
            functions: FxHashMap::default(),
            ids: SecondaryMap::new(),
            checked: SecondaryMap::with_default(exprs::Checked::Error),
            order: Vec::new(),
            scopes: Scopes::new(ast.names.len()),
            flow: Flow::default(),
            variables: PrimaryMap::new(),
            declared: FxHashMap::default(),
            current: None,
            gives: Gives::Nothing,
            lets: None,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Have there been so many mistakes that more would not help?
    fn full(&self) -> bool {
        self.diagnostics.len() >= MAX_ERRORS
    }

    fn text(&self, symbol: Symbol) -> &'a str {
        self.ast.names.text(symbol)
    }

    /// Gives each function its id and signature. Is a heading broken?
    fn collect_functions(&mut self) -> bool {
        let mut broken = false;
        for item in &self.ast.items {
            let StmtKind::Function(function) = self.ast.stmts[*item].kind else {
                continue;
            };
            let data = &self.ast.functions[function];
            broken |= data.broken;
            let name = data.name;
            let text = self.text(name.symbol);
            let gives = match data.result.map(|result| (result, result.kind)) {
                None if data.broken => Gives::Error,
                None => Gives::Nothing,
                Some((_, TypeKind::Scalar(scalar))) => Gives::Scalar(scalar),
                Some((_, TypeKind::Error)) => {
                    self.poisoned = true;
                    Gives::Error
                }
                Some((result, TypeKind::Array(_))) => {
                    self.report(
                        Diagnostic::error(codes::ARRAY_RETURNED, result.span, "a function cannot return an array")
                            .label("an array type")
                            .note("an array lives until the block of its `let` is left, so none outlives its function")
                            .help("let the caller make the array and pass it: the function can fill it"),
                    );
                    Gives::Error
                }
            };
            let id = self.program.functions.push(hir::Function {
                name: if text == "main" { "main.1".to_string() } else { text.to_string() },
                span: name.span,
                params: Vec::new(),
                result: match gives {
                    Gives::Scalar(scalar) => Some(scalar),
                    Gives::Nothing | Gives::Error => None,
                },
                variables: PrimaryMap::new(),
                body: Vec::new(),
                end: Span { start: data.body.span.end.saturating_sub(1), end: data.body.span.end },
            });
            self.ids[function] = Some(id);
            if BUILT_IN.contains(&text) {
                self.report(
                    Diagnostic::error(
                        codes::BUILT_IN_DEFINED,
                        name.span,
                        format!("`{text}` is built in and cannot be defined"),
                    )
                    .label("a built-in function's name")
                    .help("choose another name"),
                );
                continue;
            }
            match self.functions.get(&name.symbol) {
                Some(first) => {
                    let first = self.ast.functions[first.function].name.span;
                    self.report(
                        Diagnostic::error(
                            codes::FUNCTION_TWICE,
                            name.span,
                            format!("there are two functions named `{text}`"),
                        )
                        .label("the second one")
                        .also(first, "the first one")
                        .help("give one of them another name: functions do not differ by their parameters"),
                    );
                }
                None => {
                    self.functions.insert(name.symbol, Signature { id, function, gives });
                }
            }
        }
        broken
    }

    fn check_functions(&mut self) {
        for item in &self.ast.items {
            if let StmtKind::Function(function) = self.ast.stmts[*item].kind {
                if self.full() {
                    return;
                }
                if !self.ast.functions[function].broken {
                    self.check_function(function);
                }
            }
        }
    }

    fn check_function(&mut self, function: FnId) {
        let data = &self.ast.functions[function];
        let id = self.ids[function].expect("every function at the top level has been collected");
        self.current = Some(function);
        self.gives = match data.result.map(|result| result.kind) {
            None => Gives::Nothing,
            Some(TypeKind::Scalar(scalar)) => Gives::Scalar(scalar),
            Some(TypeKind::Array(_) | TypeKind::Error) => Gives::Error,
        };
        self.scopes.enter();
        let mut params = Vec::with_capacity(data.params.len());
        for param in &data.params {
            let ty = Ty::of(param.ty.kind);
            self.poisoned |= ty == Ty::Error;
            params.push(self.declare(param.name, ty));
        }
        let mut body = Vec::new();
        let falls = self.check_stmts(self.ast.stmt_list(data.body.stmts), &mut body);
        self.scopes.leave(data.body.span);
        if falls && matches!(self.gives, Gives::Scalar(_)) {
            self.missing_return(function);
        }
        self.end_function(id, params, body);
    }

    fn check_body(&mut self) {
        self.current = None;
        self.gives = Gives::Nothing;
        self.scopes.enter();
        let mut body = Vec::new();
        let ast = self.ast;
        let stmts: Vec<ast::StmtId> =
            ast.items.iter().copied().filter(|item| !matches!(ast.stmts[*item].kind, StmtKind::Function(_))).collect();
        self.check_stmts(&stmts, &mut body);
        let end = self.source.text.len();
        self.scopes.leave(Span::new(end, end));
        self.end_function(self.program.entry, Vec::new(), body);
    }

    fn end_function(&mut self, id: FuncId, params: Vec<hir::Variable>, body: Vec<hir::StmtId>) {
        let function = &mut self.program.functions[id];
        function.params = params;
        function.body = body;
        function.variables = std::mem::take(&mut self.variables);
        self.declared.clear();
        self.scopes.forget();
        self.flow.forget();
    }
}

#[cfg(test)]
mod tests;
