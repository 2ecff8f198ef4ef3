//! Fuel: how many changes the optimizer may still make, so that the one change that breaks a program can be found by
//! bisection.
//!
//! Every pass asks [`Fuel::take`] before each change and makes the change only on `true`. Each change is right by itself,
//! so the program is right after any number of them. Cost: one comparison per change.

/// A counter of changes, with an optional limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fuel {
    limit: u64,
    spent: u64,
}

impl Fuel {
    /// As many changes as the passes find.
    pub const UNLIMITED: Fuel = Fuel { limit: u64::MAX, spent: 0 };

    /// At most `limit` changes.
    pub fn new(limit: u64) -> Fuel {
        Fuel { limit, spent: 0 }
    }

    /// May one more change be made? Counts it if so.
    pub fn take(&mut self) -> bool {
        let allowed = self.spent < self.limit;
        self.spent += u64::from(allowed);
        allowed
    }

    /// How many changes have been made.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_the_limit() {
        let mut fuel = Fuel::new(2);
        assert!(fuel.take() && fuel.take());
        assert!(!fuel.take() && !fuel.take());
        assert_eq!(fuel.spent(), 2);
    }
}
