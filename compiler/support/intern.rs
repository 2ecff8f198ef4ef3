//! Names as small numbers: an [`Interner`] gives each text one [`Symbol`], so that names compare and hash as integers.
//!
//! Cost: interning hashes the text once; looking a symbol's text up is an index.

use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An interned text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);
entity_impl!(Symbol, "sym");

/// The texts seen so far.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    texts: PrimaryMap<Symbol, Arc<str>>,
    symbols: FxHashMap<Arc<str>, Symbol>,
}

impl Interner {
    /// No texts.
    pub fn new() -> Interner {
        Interner::default()
    }

    /// The symbol of a text; a new one if the text is new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(text) {
            return *symbol;
        }
        let text: Arc<str> = Arc::from(text);
        let symbol = self.texts.push(text.clone());
        self.symbols.insert(text, symbol);
        symbol
    }

    /// The symbol of a text, if it has one.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.symbols.get(text).copied()
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol]
    }

    /// How many texts there are: symbols are numbered below it.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All symbols, in the order of their first interning.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + use<> {
        (0..self.texts.len()).map(Symbol::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_symbol_for_one_text() {
        let mut interner = Interner::new();
        let a = interner.intern("a");
        let b = interner.intern("b");
        assert_ne!(a, b);
        assert_eq!(interner.intern("a"), a);
        assert_eq!(interner.text(b), "b");
        assert_eq!(interner.find("c"), None);
    }
}
