//! Scopes: what each name means now, and where names that mean nothing any more were declared.
//!
//! One slot for each name of the file, and a log of what the slots held before: leaving a block takes its part of the log
//! back. Cost: constant for looking up, declaring and (for each declaration) leaving.

use super::Ty;
use crate::hir::Variable;
use crate::support::intern::Symbol;
use crate::support::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// A variable in scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    pub variable: Variable,
    pub ty: Ty,
    /// Where it is declared.
    pub span: Span,
    /// How many blocks are open around it.
    depth: u32,
}

/// A variable whose block has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Where it was declared.
    pub declared: Span,
    /// The block that has ended.
    pub block: Span,
}

pub struct Scopes {
    /// By name.
    now: Vec<Option<Binding>>,
    /// The names declared in open blocks, oldest first, with what they meant before.
    log: Vec<(Symbol, Option<Binding>)>,
    /// Where each open block's part of the log begins.
    marks: Vec<usize>,
    ended: FxHashMap<Symbol, Ended>,
    /// Unknown names that have been reported in this function.
    reported: FxHashSet<Symbol>,
}

impl Scopes {
    /// No blocks, over so many names.
    pub fn new(names: usize) -> Scopes {
        Scopes {
            now: vec![None; names],
            log: Vec::new(),
            marks: Vec::new(),
            ended: FxHashMap::default(),
            reported: FxHashSet::default(),
        }
    }

    /// A block begins.
    pub fn enter(&mut self) {
        self.marks.push(self.log.len());
    }

    /// The innermost block ends.
    pub fn leave(&mut self, block: Span) {
        let mark = self.marks.pop().expect("blocks are left as often as entered");
        while self.log.len() > mark {
            let (name, before) = self.log.pop().expect("it is longer than the mark");
            let slot = &mut self.now[name.as_u32() as usize];
            if let Some(binding) = slot {
                self.ended.insert(name, Ended { declared: binding.span, block });
            }
            *slot = before;
        }
    }

    /// Forgets what only messages about this function need.
    pub fn forget(&mut self) {
        self.ended.clear();
        self.reported.clear();
    }

    /// What a name means.
    pub fn find(&self, name: Symbol) -> Option<Binding> {
        self.now[name.as_u32() as usize]
    }

    /// What a name means that is declared in the innermost block.
    pub fn find_here(&self, name: Symbol) -> Option<Binding> {
        self.find(name).filter(|binding| binding.depth as usize == self.marks.len())
    }

    /// Gives a name a meaning until the innermost block ends.
    pub fn declare(&mut self, name: Symbol, variable: Variable, ty: Ty, span: Span) {
        let binding = Binding { variable, ty, span, depth: self.marks.len() as u32 };
        let before = self.now[name.as_u32() as usize].replace(binding);
        self.log.push((name, before));
    }

    /// The variable of that name whose block has ended last, in this function.
    pub fn ended(&self, name: Symbol) -> Option<Ended> {
        self.ended.get(&name).copied()
    }

    /// Is this the first message about that unknown name in this function?
    pub fn first_report(&mut self, name: Symbol) -> bool {
        self.reported.insert(name)
    }

    /// The names that mean something, youngest first.
    pub fn visible(&self) -> impl Iterator<Item = Symbol> {
        self.log.iter().rev().map(|(name, _)| *name)
    }
}
