//! Makes a program small while something remains true of it.
//!
//! Works on the syntax tree, so that every candidate is well-formed text: runs of statements are dropped, larger ones first
//! (Andreas Zeller, Ralf Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002); compound statements give
//! way to what they hold; arms, parameters with their arguments, and printed values are dropped; expressions give way to
//! their operands or to literals. What the checker rejects costs a try and is not taken. The passes are repeated until none
//! finds anything. Deterministic.
//!
//! ```text
//! let a = 1; let b = f(a * 2, 3);         let a = 1;
//! while (a < 9) { a += b; }         →     print(a - 2);
//! if (b > 2) { print(a - 2); }
//! ```
//!
//! **in**: a program and a predicate that holds of it. **out**: a program of which it holds and of which no single step makes a
//! smaller one. Cost: tries are near-linear in the size of the program; each formats the program and asks the predicate.

use crate::support::span::Source;
use crate::syntax::ast::{Arm, Ast, Block, ExprId, ExprKind, FnId, StmtId, StmtKind};
use crate::syntax::{format, parse};
use rustc_hash::FxHashSet;

/// A reduced program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduced {
    /// Its text.
    pub text: String,
    /// How often the predicate was asked.
    pub tries: usize,
}

/// Reduces; `None` if the text does not parse or the predicate does not hold of it.
pub fn run(text: &str, most_tries: usize, holds: &mut dyn FnMut(&str) -> bool) -> Option<Reduced> {
    let parsed = parse(&Source::new("reduce.atl", text));
    let ast = parsed.ast.filter(|_| parsed.diagnostics.is_empty())?;
    let text = format(&ast);
    if !holds(&text) {
        return None;
    }
    let mut reducer = Reducer { ast, text, tries: 1, most_tries, holds, seen: FxHashSet::default() };
    loop {
        let before = reducer.text.len();
        reducer.lists();
        reducer.unwrap();
        reducer.lists();
        reducer.arms();
        reducer.parameters();
        reducer.arguments();
        reducer.expressions();
        if reducer.text.len() >= before || reducer.tries >= most_tries {
            break;
        }
    }
    Some(Reduced { text: reducer.text, tries: reducer.tries })
}

/// A list of statements in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Items,
    Function(FnId),
    /// The body of a loop or a block statement.
    Body(StmtId),
    Arm(StmtId, usize),
    Else(StmtId),
}

struct Reducer<'a> {
    ast: Ast,
    text: String,
    tries: usize,
    most_tries: usize,
    holds: &'a mut dyn FnMut(&str) -> bool,
    /// Texts that were tried, so that none is twice.
    seen: FxHashSet<String>,
}

impl Reducer<'_> {
    /// Takes the candidate if it is another program of which the predicate holds.
    fn attempt(&mut self, candidate: Ast) -> bool {
        if self.tries >= self.most_tries {
            return false;
        }
        let text = format(&candidate);
        if text == self.text || !self.seen.insert(text.clone()) {
            return false;
        }
        self.tries += 1;
        let holds = (self.holds)(&text);
        if holds {
            self.ast = candidate;
            self.text = text;
        }
        holds
    }

    // ---- Lists of statements

    /// Drops runs of statements, of halving lengths.
    fn lists(&mut self) {
        // Outer lists first: what goes there need not be looked into.
        let mut at = 0;
        loop {
            let slots = self.slots();
            let Some(slot) = slots.get(at).copied() else { break };
            let mut size = list(&self.ast, slot).len();
            while size > 0 {
                let mut end = list(&self.ast, slot).len();
                while end > 0 {
                    let start = end.saturating_sub(size);
                    let mut stmts = list(&self.ast, slot);
                    stmts.drain(start..end);
                    let mut candidate = self.ast.clone();
                    set_list(&mut candidate, slot, &stmts);
                    self.attempt(candidate);
                    end = start;
                }
                size /= 2;
            }
            at += 1;
        }
    }

    /// All lists, outer ones before inner ones.
    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::Items];
        let mut at = 0;
        while at < slots.len() {
            for stmt in list(&self.ast, slots[at]) {
                slots_of(&self.ast, stmt, &mut slots);
            }
            at += 1;
        }
        slots
    }

    /// Compound statements give way to what they hold.
    fn unwrap(&mut self) {
        let mut at = 0;
        while let Some(slot) = self.slots().get(at).copied() {
            let mut index = 0;
            while let Some(stmt) = list(&self.ast, slot).get(index).copied() {
                let mut inner = Vec::new();
                if !matches!(self.ast.stmts[stmt].kind, StmtKind::Function(_)) {
                    slots_of(&self.ast, stmt, &mut inner);
                }
                for held in inner {
                    let mut stmts = list(&self.ast, slot);
                    stmts.splice(index..=index, list(&self.ast, held));
                    let mut candidate = self.ast.clone();
                    set_list(&mut candidate, slot, &stmts);
                    if self.attempt(candidate) {
                        break;
                    }
                }
                index += 1;
            }
            at += 1;
        }
    }

    /// Drops arms and `else`.
    fn arms(&mut self) {
        for stmt in self.statements() {
            let StmtKind::If { els: Some(_), arms } = self.ast.stmts[stmt].kind else { continue };
            let mut candidate = self.ast.clone();
            candidate.stmts[stmt].kind = StmtKind::If { arms, els: None };
            self.attempt(candidate);
        }
        for stmt in self.statements() {
            let StmtKind::If { arms, .. } = self.ast.stmts[stmt].kind else { continue };
            for number in (0..self.ast.arm_list(arms).len()).rev() {
                let StmtKind::If { arms, els } = self.ast.stmts[stmt].kind else { continue };
                let mut rest: Vec<Arm> = self.ast.arm_list(arms).to_vec();
                if rest.len() < 2 {
                    break;
                }
                rest.remove(number);
                let mut candidate = self.ast.clone();
                let arms = candidate.make_arms(&rest);
                candidate.stmts[stmt].kind = StmtKind::If { arms, els };
                self.attempt(candidate);
            }
        }
    }

    /// All statements, in order.
    fn statements(&self) -> Vec<StmtId> {
        self.slots().into_iter().flat_map(|slot| list(&self.ast, slot)).collect()
    }

    // ---- Functions

    /// Drops parameters, with the arguments of all calls.
    fn parameters(&mut self) {
        let functions: Vec<FnId> = self
            .statements()
            .into_iter()
            .filter_map(|stmt| match self.ast.stmts[stmt].kind {
                StmtKind::Function(function) => Some(function),
                _ => None,
            })
            .collect();
        for function in functions {
            for number in (0..self.ast.functions[function].params.len()).rev() {
                let name = self.ast.functions[function].name.symbol;
                let mut candidate = self.ast.clone();
                candidate.functions[function].params.remove(number);
                for expr in self.expressions_in_order() {
                    if let ExprKind::Call { callee, args } = self.ast.exprs[expr].kind
                        && callee.symbol == name
                    {
                        let mut rest = self.ast.expr_list(args).to_vec();
                        if number < rest.len() {
                            rest.remove(number);
                        }
                        let args = candidate.make_exprs(&rest);
                        candidate.exprs[expr].kind = ExprKind::Call { callee, args };
                    }
                }
                self.attempt(candidate);
            }
        }
    }

    /// Drops what is printed, and elements of array literals.
    fn arguments(&mut self) {
        for stmt in self.statements() {
            let StmtKind::Print(args) = self.ast.stmts[stmt].kind else { continue };
            for number in (0..self.ast.expr_list(args).len()).rev() {
                let StmtKind::Print(args) = self.ast.stmts[stmt].kind else { continue };
                let mut rest = self.ast.expr_list(args).to_vec();
                if rest.len() < 2 || number >= rest.len() {
                    break;
                }
                rest.remove(number);
                let mut candidate = self.ast.clone();
                let args = candidate.make_exprs(&rest);
                candidate.stmts[stmt].kind = StmtKind::Print(args);
                self.attempt(candidate);
            }
        }
        for expr in self.expressions_in_order() {
            let ExprKind::ArrayList(elements) = self.ast.exprs[expr].kind else { continue };
            for number in (0..self.ast.expr_list(elements).len()).rev() {
                let ExprKind::ArrayList(elements) = self.ast.exprs[expr].kind else { continue };
                let mut rest = self.ast.expr_list(elements).to_vec();
                rest.remove(number);
                let mut candidate = self.ast.clone();
                let elements = candidate.make_exprs(&rest);
                candidate.exprs[expr].kind = ExprKind::ArrayList(elements);
                self.attempt(candidate);
            }
        }
    }

    // ---- Expressions

    fn roots(&self) -> Vec<ExprId> {
        let mut roots = Vec::new();
        for stmt in self.statements() {
            match self.ast.stmts[stmt].kind {
                StmtKind::Let { init: expr, .. }
                | StmtKind::While { cond: expr, .. }
                | StmtKind::Return(Some(expr))
                | StmtKind::Assert(expr)
                | StmtKind::Expr(expr) => roots.push(expr),
                StmtKind::Assign { target, value, .. } => {
                    // The target itself stays, its index may change.
                    self.ast.for_each_child(target, |child| roots.push(child));
                    roots.push(value);
                }
                StmtKind::If { arms, .. } => roots.extend(self.ast.arm_list(arms).iter().map(|arm| arm.cond)),
                StmtKind::Print(args) => roots.extend(self.ast.expr_list(args)),
                StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(None)
                | StmtKind::Block(_)
                | StmtKind::Function(_)
                | StmtKind::Error => {}
            }
        }
        roots
    }

    /// All expressions, parents before children.
    fn expressions_in_order(&self) -> Vec<ExprId> {
        let mut all = Vec::new();
        for root in self.roots() {
            let mut order = Vec::new();
            self.ast.postorder(root, &mut order);
            all.extend(order.into_iter().rev());
        }
        all
    }

    /// Expressions give way to literals or to their operands.
    fn expressions(&mut self) {
        let mut work = self.roots();
        work.reverse();
        while let Some(expr) = work.pop() {
            self.simplify(expr);
            self.ast.for_each_child(expr, |child| work.push(child));
        }
    }

    fn simplify(&mut self, expr: ExprId) {
        let kind = self.ast.exprs[expr].kind;
        let literals: &[ExprKind] = match kind {
            ExprKind::Int(0) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::Error => &[],
            ExprKind::Int(1) => &[ExprKind::Int(0)],
            ExprKind::ArrayList(_) => &[],
            ExprKind::Int(_) => &[ExprKind::Int(0), ExprKind::Int(1)],
            ExprKind::Name(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Call { .. }
            | ExprKind::Index { .. } => {
                &[ExprKind::Int(0), ExprKind::Int(1), ExprKind::Bool(false), ExprKind::Bool(true)]
            }
            ExprKind::ArrayRepeat { .. } => &[],
        };
        for literal in literals {
            let mut candidate = self.ast.clone();
            candidate.exprs[expr].kind = *literal;
            if self.attempt(candidate) {
                return;
            }
        }
        // An operand in its place, and then one of that one's, as far as it goes.
        loop {
            let mut children = Vec::new();
            self.ast.for_each_child(expr, |child| children.push(child));
            if matches!(self.ast.exprs[expr].kind, ExprKind::ArrayRepeat { .. } | ExprKind::ArrayList(_)) {
                return;
            }
            let taken = children.into_iter().any(|child| {
                let mut candidate = self.ast.clone();
                candidate.exprs[expr] = candidate.exprs[child];
                self.attempt(candidate)
            });
            if !taken {
                return;
            }
        }
    }
}

/// The lists that a statement holds.
fn slots_of(ast: &Ast, stmt: StmtId, slots: &mut Vec<Slot>) {
    match ast.stmts[stmt].kind {
        StmtKind::If { arms, els } => {
            slots.extend((0..ast.arm_list(arms).len()).map(|number| Slot::Arm(stmt, number)));
            slots.extend(els.map(|_| Slot::Else(stmt)));
        }
        StmtKind::While { .. } | StmtKind::Block(_) => slots.push(Slot::Body(stmt)),
        StmtKind::Function(function) => slots.push(Slot::Function(function)),
        StmtKind::Let { .. }
        | StmtKind::Assign { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_)
        | StmtKind::Print(_)
        | StmtKind::Assert(_)
        | StmtKind::Expr(_)
        | StmtKind::Error => {}
    }
}

fn block_of(ast: &Ast, slot: Slot) -> Option<Block> {
    match slot {
        Slot::Items => None,
        Slot::Function(function) => Some(ast.functions[function].body),
        Slot::Body(stmt) | Slot::Arm(stmt, _) | Slot::Else(stmt) => match (ast.stmts[stmt].kind, slot) {
            (StmtKind::While { body, .. } | StmtKind::Block(body), Slot::Body(_)) => Some(body),
            (StmtKind::If { arms, .. }, Slot::Arm(_, number)) => ast.arm_list(arms).get(number).map(|arm| arm.block),
            (StmtKind::If { els, .. }, Slot::Else(_)) => els,
            (_, _) => None,
        },
    }
}

fn list(ast: &Ast, slot: Slot) -> Vec<StmtId> {
    match slot {
        Slot::Items => ast.items.clone(),
        Slot::Function(_) | Slot::Body(_) | Slot::Arm(..) | Slot::Else(_) => {
            block_of(ast, slot).map_or(Vec::new(), |block| ast.stmt_list(block.stmts).to_vec())
        }
    }
}

fn set_list(ast: &mut Ast, slot: Slot, stmts: &[StmtId]) {
    if slot == Slot::Items {
        ast.items = stmts.to_vec();
        return;
    }
    let Some(old) = block_of(ast, slot) else { return };
    let block = Block { stmts: ast.make_stmts(stmts), span: old.span };
    match slot {
        Slot::Items => {}
        Slot::Function(function) => ast.functions[function].body = block,
        Slot::Body(stmt) => {
            ast.stmts[stmt].kind = match ast.stmts[stmt].kind {
                StmtKind::While { cond, .. } => StmtKind::While { cond, body: block },
                _ => StmtKind::Block(block),
            }
        }
        Slot::Else(stmt) => {
            if let StmtKind::If { arms, .. } = ast.stmts[stmt].kind {
                ast.stmts[stmt].kind = StmtKind::If { arms, els: Some(block) };
            }
        }
        Slot::Arm(stmt, number) => {
            if let StmtKind::If { arms, els } = ast.stmts[stmt].kind {
                let mut all = ast.arm_list(arms).to_vec();
                all[number].block = block;
                let arms = ast.make_arms(&all);
                ast.stmts[stmt].kind = StmtKind::If { arms, els };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_matters_and_drops_the_rest() {
        let mut text =
            String::from("fn f(a: int, b: bool) -> int {\n  if (b) { return a; } else { return a * 7; }\n}\n");
        for number in 0..200 {
            text.push_str(&format!("let v{number} = {number} + 2;\n"));
        }
        text.push_str("let n = 0;\nwhile (n < 3) {\n  if (n == 1) { print(v3, f(v7 % 5, true)); }\n  n += 1;\n}\n");
        let mut asked = 0;
        let reduced = run(&text, 10_000, &mut |candidate| {
            asked += 1;
            let parsed = parse(&Source::new("t.atl", candidate));
            let ast = parsed.ast.expect("candidates parse");
            assert!(parsed.diagnostics.is_empty(), "{candidate}");
            crate::check::run(&ast, &Source::new("t.atl", candidate)).is_ok() && candidate.contains('%')
        })
        .expect("it holds at first");
        assert_eq!(reduced.text.lines().count(), 1, "{}", reduced.text);
        assert!(reduced.text.contains("0 % 0"), "{}", reduced.text);
        assert_eq!(asked, reduced.tries);
        assert!(asked < 700, "{asked} tries");
    }

    #[test]
    fn what_does_not_hold_is_not_reduced() {
        assert_eq!(run("print(1);", 100, &mut |_| false), None);
        assert_eq!(run("print(1", 100, &mut |_| true), None);
    }
}
