//! Where control goes: loops around the statement at hand, and the message for a function that can end without a value.

use super::Checker;
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Span;
use crate::syntax::ast::{Block, FnId, StmtKind};
use rustc_hash::FxHashMap;

/// What is known of control flow in the function at hand.
#[derive(Debug, Default)]
pub struct Flow {
    /// For each loop around, the innermost last: has it a `break`?
    pub loops: Vec<bool>,
    /// Can control come to the end of the block that begins at this offset?
    pub falls: FxHashMap<u32, bool>,
}

impl Flow {
    /// Ready for the next function.
    pub fn forget(&mut self) {
        self.loops.clear();
        self.falls.clear();
    }
}

impl Checker<'_> {
    /// Reports that control can come to the end of a function with a result, and labels the way there.
    pub fn missing_return(&mut self, function: FnId) {
        let data = &self.ast.functions[function];
        let text = self.text(data.name.symbol);
        let result = data.result.expect("only a function with a result lacks a return");
        let mut diagnostic = Diagnostic::error(
            codes::MISSING_RETURN,
            data.name.span,
            format!("`{text}` can end without returning its value"),
        )
        .label("not every path returns")
        .also(result.span, format!("a value of type `{}` must be returned", result.kind));
        let (span, reason) = self.way_out(data.body);
        diagnostic = diagnostic.also(span, reason);
        self.report(diagnostic.help("end every path by `return …;`"));
    }

    /// The innermost place that control passes on its way to the end of a block.
    fn way_out(&self, body: Block) -> (Span, String) {
        let mut block = body;
        loop {
            let end = Span { start: block.span.end.saturating_sub(1), end: block.span.end };
            let Some(last) = self.ast.stmt_list(block.stmts).last() else {
                return (end, "nothing is returned here".to_string());
            };
            let stmt = self.ast.stmts[*last];
            let falls = |block: &Block| self.flow.falls.get(&block.span.start).copied().unwrap_or(true);
            match stmt.kind {
                StmtKind::If { arms, els } => {
                    let arms = self.ast.arm_list(arms);
                    let open = arms.iter().map(|arm| arm.block).chain(els).find(falls);
                    match (open, els) {
                        (Some(inner), _) => block = inner,
                        (None, None) => {
                            let head = Span { start: stmt.span.start, end: stmt.span.start + 2 };
                            return (head, "no `else`: where no condition holds, nothing is returned".to_string());
                        }
                        (None, Some(_)) => return (end, "nothing is returned here".to_string()),
                    }
                }
                StmtKind::While { .. } => {
                    let head = Span { start: stmt.span.start, end: stmt.span.start + 5 };
                    return (head, "behind this loop nothing is returned".to_string());
                }
                StmtKind::Block(inner) => block = inner,
                StmtKind::Let { .. }
                | StmtKind::Assign { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_)
                | StmtKind::Print(_)
                | StmtKind::Assert(_)
                | StmtKind::Expr(_)
                | StmtKind::Function(_)
                | StmtKind::Error => return (end, "nothing is returned here".to_string()),
            }
        }
    }
}
