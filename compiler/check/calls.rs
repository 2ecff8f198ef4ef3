//! Calls: of the program's functions, and of `len`, `read` and `eof`.

use super::exprs::{Checked, Use};
use super::names::nearest;
use super::{BUILT_IN, Checker, Gives, Ty};
use crate::hir;
use crate::semantics::Scalar;
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Span;
use crate::syntax::ast::{ExprId, ExprKind, ExprList, Name};

impl Checker<'_> {
    /// A call whose arguments have been checked.
    pub fn check_call(&mut self, span: Span, callee: Name, args: ExprList) -> Checked {
        let ast = self.ast;
        let args = ast.expr_list(args);
        match self.text(callee.symbol) {
            "len" => self.check_len(span, callee, args),
            "read" => self.check_input(span, callee, args, hir::ExprKind::Read, Scalar::Int),
            "eof" => self.check_input(span, callee, args, hir::ExprKind::Eof, Scalar::Bool),
            _ => self.check_function_call(span, callee, args),
        }
    }

    fn check_input(&mut self, span: Span, callee: Name, args: &[ExprId], kind: hir::ExprKind, ty: Scalar) -> Checked {
        if !args.is_empty() {
            self.wrong_count(callee, args, 0, None);
            return Checked::Error;
        }
        Checked::Value(ty, self.program.exprs.push(hir::Expr { kind, ty, span }))
    }

    fn check_len(&mut self, span: Span, callee: Name, args: &[ExprId]) -> Checked {
        let [arg] = *args else {
            self.wrong_count(callee, args, 1, None);
            return Checked::Error;
        };
        match self.checked[arg] {
            Checked::Array(_, variable) => {
                let kind = hir::ExprKind::Len(variable);
                Checked::Value(Scalar::Int, self.program.exprs.push(hir::Expr { kind, ty: Scalar::Int, span }))
            }
            Checked::Value(ty, _) => {
                let place = self.ast.exprs[arg].span;
                self.report(
                    Diagnostic::error(codes::NOT_AN_ARRAY, place, "`len` takes an array")
                        .label(format!("of type `{ty}`")),
                );
                Checked::Error
            }
            Checked::Nothing(_) | Checked::Str(_) | Checked::Error => {
                self.as_value(arg, Use::Argument);
                Checked::Error
            }
        }
    }

    fn check_function_call(&mut self, span: Span, callee: Name, args: &[ExprId]) -> Checked {
        let Some(signature) = self.functions.get(&callee.symbol) else {
            self.unknown_function(callee);
            return Checked::Error;
        };
        let (id, function, gives) = (signature.id, signature.function, signature.gives);
        let ast = self.ast;
        let data = &ast.functions[function];
        if data.broken {
            self.poisoned = true;
            return Checked::Error;
        }
        if args.len() != data.params.len() {
            self.wrong_count(callee, args, data.params.len(), Some(data.name.span));
            return Checked::Error;
        }
        let mut values = Vec::with_capacity(args.len());
        for (arg, param) in args.iter().zip(&data.params) {
            let ty = Ty::of(param.ty.kind);
            values.extend(self.check_argument(*arg, ty, param.name.span.to(param.ty.span)));
        }
        if values.len() != args.len() {
            return Checked::Error;
        }
        let ty = match gives {
            Gives::Scalar(ty) => ty,
            Gives::Nothing => Scalar::Int,
            Gives::Error => {
                self.poisoned = true;
                return Checked::Error;
            }
        };
        let call =
            self.program.exprs.push(hir::Expr { kind: hir::ExprKind::Call { callee: id, args: values }, ty, span });
        match gives {
            Gives::Scalar(_) => Checked::Value(ty, call),
            Gives::Nothing | Gives::Error => Checked::Nothing(call),
        }
    }

    fn check_argument(&mut self, arg: ExprId, wanted: Ty, param: Span) -> Option<hir::Arg> {
        let span = self.ast.exprs[arg].span;
        match (wanted, self.checked[arg]) {
            (Ty::Error, _) | (_, Checked::Error) => {
                self.poisoned = true;
                None
            }
            (Ty::Array(wanted), Checked::Array(found, variable)) if wanted == found => Some(hir::Arg::Array(variable)),
            (Ty::Scalar(wanted), Checked::Value(found, value)) if wanted == found => Some(hir::Arg::Value(value)),
            (wanted, Checked::Array(found, _)) => {
                self.wrong_argument(arg, wanted, Ty::Array(found), param);
                None
            }
            (wanted, Checked::Value(found, _)) => {
                self.wrong_argument(arg, wanted, Ty::Scalar(found), param);
                None
            }
            (_, Checked::Nothing(_)) => {
                self.as_value(arg, Use::Argument);
                None
            }
            (_, Checked::Str(_)) => {
                self.report(
                    Diagnostic::error(codes::MISPLACED_STRING, span, "a string can only be an argument of `print`")
                        .label("a string is no value")
                        .also(param, "the parameter")
                        .note("a single character, such as `'a'`, is an `int`"),
                );
                None
            }
        }
    }

    fn wrong_argument(&mut self, arg: ExprId, wanted: Ty, found: Ty, param: Span) {
        let (wanted_text, found_text) = (wanted.hir(), found.hir());
        let span = self.ast.exprs[arg].span;
        let diagnostic = Diagnostic::error(
            codes::WRONG_ARGUMENT,
            span,
            format!("this argument must be of type `{wanted_text}`, and is of type `{found_text}`"),
        )
        .label(format!("of type `{found_text}`"))
        .also(param, "the parameter");
        let text = &self.source.text[span.range()];
        let diagnostic = match (wanted, found) {
            (Ty::Scalar(wanted), Ty::Scalar(_)) => self.suggest_conversion(diagnostic, arg, wanted),
            (Ty::Scalar(wanted), Ty::Array(element)) if wanted == element => {
                diagnostic.help(format!("pass one element: `{text}[i]`"))
            }
            (Ty::Array(_), Ty::Scalar(_))
                if matches!(self.ast.exprs[arg].kind, ExprKind::Int(_) | ExprKind::Bool(_)) =>
            {
                diagnostic.help(format!("make an array first, by `let a = [{text}];`, and pass it"))
            }
            _ => diagnostic,
        };
        self.report(diagnostic);
    }

    /// Reports too many or too few arguments.
    fn wrong_count(&mut self, callee: Name, args: &[ExprId], wanted: usize, defined: Option<Span>) {
        self.poisoned = true;
        let text = self.text(callee.symbol);
        let count = |n: usize| match n {
            0 => "no arguments".to_string(),
            1 => "1 argument".to_string(),
            n => format!("{n} arguments"),
        };
        let given = match args.len() {
            0 => "none is given".to_string(),
            1 => "1 is given".to_string(),
            n => format!("{n} are given"),
        };
        let mut diagnostic = Diagnostic::error(
            codes::ARGUMENT_COUNT,
            callee.span,
            format!("`{text}` takes {}, and {given}", count(wanted)),
        )
        .label(format!("takes {}", count(wanted)));
        if let (Some(first), Some(last)) = (args.get(wanted), args.last()) {
            let extra = self.ast.exprs[*first].span.to(self.ast.exprs[*last].span);
            diagnostic = diagnostic.also(extra, if args.len() - wanted == 1 { "one too many" } else { "too many" });
        }
        if let Some(signature) = self.functions.get(&callee.symbol) {
            let params = &self.ast.functions[signature.function].params;
            if let (Some(first), Some(last)) = (params.get(args.len()), params.last()) {
                let missing = first.name.span.to(last.ty.span);
                diagnostic = diagnostic.also(missing, "no argument is given for this");
            }
        }
        if let Some(defined) = defined {
            diagnostic = diagnostic.also(defined, "defined here");
        }
        self.report(diagnostic);
    }

    fn unknown_function(&mut self, callee: Name) {
        self.poisoned = true;
        let text = self.text(callee.symbol);
        if let Some(binding) = self.scopes.find(callee.symbol) {
            let diagnostic = Diagnostic::error(
                codes::NOT_A_FUNCTION,
                callee.span,
                format!("`{text}` is a variable, not a function"),
            )
            .label("cannot be called")
            .also(binding.span, "declared here");
            let diagnostic = match binding.ty {
                Ty::Array(_) => diagnostic.help(format!("an element is `{text}[i]`, in square brackets")),
                Ty::Scalar(_) | Ty::Error => diagnostic,
            };
            return self.report(diagnostic);
        }
        let diagnostic =
            Diagnostic::error(codes::UNKNOWN_FUNCTION, callee.span, format!("there is no function `{text}`"))
                .label("not defined");
        let names = self.ast.functions.values().map(|function| self.ast.names.text(function.name.symbol));
        let near = nearest(text, names.chain(BUILT_IN).chain(["print", "assert", "int"]));
        let diagnostic = match (near, text) {
            (_, "println" | "printf" | "puts" | "write" | "echo" | "console") => {
                diagnostic.suggest("output is written by", callee.span, "print")
            }
            (_, "length" | "size" | "count") => diagnostic.suggest("an array is measured by", callee.span, "len"),
            (_, "input" | "scan" | "scanf" | "gets" | "getline" | "read_int" | "readln") => {
                diagnostic.suggest("an integer is read by", callee.span, "read")
            }
            (Some(near), _) => {
                let defined = self.ast.names.find(near).and_then(|name| self.functions.get(&name));
                let diagnostic = match defined {
                    Some(signature) => diagnostic
                        .also(self.ast.functions[signature.function].name.span, format!("`{near}` is defined here")),
                    None => diagnostic,
                };
                diagnostic.suggest("a function with a similar name exists", callee.span, near)
            }
            (None, _) => diagnostic.help(format!("define it: `fn {text}(…) {{ … }}`")),
        };
        self.report(diagnostic);
    }
}
