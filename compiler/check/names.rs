//! Names: declaring variables, looking them up, and what to say of a name that means nothing here.
//!
//! A near name is one at a small edit distance (F. Damerau, "A technique for computer detection and correction of spelling
//! errors", 1964: insertions, deletions, replacements and exchanges of neighbours).

use super::exprs::Checked;
use super::scopes::Binding;
use super::{BUILT_IN, Checker, Ty};
use crate::hir;
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::intern::Symbol;
use crate::support::span::Span;
use crate::syntax::ast::{Name, StmtKind};
use rustc_hash::FxHashMap;

impl Checker<'_> {
    /// Makes a variable and its name's meaning in the innermost block.
    pub fn declare(&mut self, name: Name, ty: Ty) -> hir::Variable {
        let text = self.text(name.symbol);
        if let Some(first) = self.scopes.find_here(name.symbol) {
            let mut diagnostic =
                Diagnostic::error(codes::DECLARED_TWICE, name.span, format!("`{text}` is declared twice in one block"))
                    .label("declared again here")
                    .also(first.span, "first declared here");
            let is_let =
                self.current.is_none_or(|function| self.ast.functions[function].body.span.start < name.span.start);
            if is_let && first.ty != Ty::Error && !matches!(first.ty, Ty::Array(_)) {
                let keyword = Span { start: name.span.start, end: name.span.start };
                let before = &self.source.text[..keyword.start as usize];
                let start = before.trim_end().strip_suffix("let").map_or(keyword.start, |rest| rest.len() as u32);
                diagnostic = diagnostic.suggest(
                    "to change the variable, assign without `let`",
                    Span { start, end: name.span.end },
                    text,
                );
            } else {
                diagnostic = diagnostic.help("give one of them another name");
            }
            self.report(diagnostic);
        }
        let count = self.declared.entry(name.symbol).or_insert(0);
        let unique = if *count == 0 { text.to_string() } else { format!("{text}.{count}") };
        *count += 1;
        let variable = self.variables.push(hir::VariableData { name: unique, ty: ty.hir(), span: name.span });
        self.scopes.declare(name.symbol, variable, ty, name.span);
        variable
    }

    /// What a name means, or `None` after saying that it means nothing here.
    pub fn find_variable(&mut self, symbol: Symbol, span: Span) -> Option<Binding> {
        let found = self.scopes.find(symbol);
        if found.is_none() {
            self.unknown_variable(symbol, span);
        }
        found
    }

    /// A name as an expression.
    pub fn check_name(&mut self, symbol: Symbol, span: Span) -> Checked {
        let Some(binding) = self.find_variable(symbol, span) else {
            return Checked::Error;
        };
        match binding.ty {
            Ty::Scalar(ty) => {
                let expr =
                    self.program.exprs.push(hir::Expr { kind: hir::ExprKind::Variable(binding.variable), ty, span });
                Checked::Value(ty, expr)
            }
            Ty::Array(element) => Checked::Array(element, binding.variable),
            Ty::Error => {
                self.poisoned = true;
                Checked::Error
            }
        }
    }

    fn unknown_variable(&mut self, symbol: Symbol, span: Span) {
        self.poisoned = true;
        if !self.scopes.first_report(symbol) {
            return;
        }
        let text = self.text(symbol);
        let error = |code, message: String| Diagnostic::error(code, span, message);
        if let Some(ended) = self.scopes.ended(symbol) {
            let end = Span { start: ended.block.end.saturating_sub(1), end: ended.block.end };
            let diagnostic = error(codes::OUT_OF_SCOPE, format!("`{text}` is used after its block has ended"))
                .label("not in scope any more")
                .also(ended.declared, "declared here, in an inner block")
                .also(end, "its block ends here")
                .help(format!("declare `{text}` before the block, and assign to it inside"));
            return self.report(diagnostic);
        }
        let (mut in_body, mut later) = (None, None);
        for place in self.lets_of(symbol).to_vec() {
            match (self.function_around(place), self.function_around(span)) {
                (None, Some(_)) => in_body = in_body.or(Some(place)),
                (a, b) if a == b && place.end <= span.start => later = Some(place),
                (a, b) if a == b => later = later.or(Some(place)),
                _ => {}
            }
        }
        let diagnostic = if let Some(place) = later {
            error(codes::USED_BEFORE_LET, format!("`{text}` is used before its `let` has ended"))
                .label(if place.end <= span.start { "part of its own first value" } else { "not declared yet" })
                .also(place, "declared here")
                .note("a variable is in scope behind its `let`, to the end of the block")
        } else if let Some(place) = in_body {
            error(codes::VARIABLE_OF_THE_BODY, format!("the function cannot see the program's variable `{text}`"))
                .label("not a variable of this function")
                .also(place, "a variable of the program's body")
                .note("a function sees its parameters and its own variables only")
                .help(format!("pass `{text}` to the function as a parameter"))
        } else if self.functions.contains_key(&symbol) || BUILT_IN.contains(&text) {
            error(codes::FUNCTION_AS_VALUE, format!("`{text}` is a function, not a variable"))
                .label("a function is no value")
                .suggest("call it", span.after(), "()")
        } else {
            let diagnostic = error(codes::UNKNOWN_VARIABLE, format!("there is no variable `{text}`"));
            match nearest(text, self.scopes.visible().map(|name| self.ast.names.text(name))) {
                Some(near) => {
                    let declared = self.ast.names.find(near).and_then(|name| self.scopes.find(name));
                    let diagnostic = diagnostic.label("not declared");
                    let diagnostic = match declared {
                        Some(binding) => diagnostic.also(binding.span, format!("`{near}` is declared here")),
                        None => diagnostic,
                    };
                    diagnostic.suggest("a variable with a similar name exists", span, near)
                }
                None => diagnostic.label("not declared"),
            }
        };
        self.report(diagnostic);
    }

    /// Where variables of that name are declared by `let`, anywhere in the file.
    fn lets_of(&mut self, symbol: Symbol) -> &[Span] {
        let ast = self.ast;
        let lets = self.lets.get_or_insert_with(|| {
            let mut lets: FxHashMap<Symbol, Vec<Span>> = FxHashMap::default();
            for stmt in ast.stmts.values() {
                if let StmtKind::Let { name, .. } = stmt.kind {
                    lets.entry(name.symbol).or_default().push(name.span);
                }
            }
            lets
        });
        lets.get(&symbol).map_or(&[], Vec::as_slice)
    }
}

impl Checker<'_> {
    /// The start of the function that holds a place of the source.
    fn function_around(&self, place: Span) -> Option<u32> {
        // Functions do not nest and are numbered in the order of the source.
        let functions = self.ast.functions.as_values_slice();
        let next = functions.partition_point(|function| function.span.start <= place.start);
        functions[..next].last().filter(|function| place.start < function.span.end).map(|function| function.span.start)
    }
}

/// The candidate nearest to a name, if one is near enough to be what was meant: of equally near ones the first.
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = (name.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.is_empty() || candidate == name {
            continue;
        }
        let distance = if candidate.eq_ignore_ascii_case(name) {
            0
        } else {
            distance(name.as_bytes(), candidate.as_bytes(), limit)
        };
        // A name of one letter is near to every other one.
        let near = distance <= limit && (distance < name.len() || distance == 0);
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The edit distance of two names, or more than `limit` if it is more.
fn distance(a: &[u8], b: &[u8], limit: usize) -> usize {
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
