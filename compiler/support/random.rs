//! A small generator of random numbers for the generators of test programs: the same seed gives the same numbers on every
//! machine and in every version.
//!
//! It can also play back bytes, a byte for each choice: so a fuzzer that changes bytes changes choices of a generator, one at a time.
//!
//! Algorithm: SplitMix64 (Guy Steele, Doug Lea and Christine Flood, Fast Splittable Pseudorandom Number Generators, 2014).
//! Cost: constant.

/// The generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// What is played back first, from the end.
    tape: Vec<u8>,
}

impl From<u64> for Random {
    fn from(seed: u64) -> Random {
        Random::new(seed)
    }
}

impl Random {
    /// A generator that the seed decides alone.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, tape: Vec::new() }
    }

    /// A generator whose choices are the bytes, and after them those of seed 0.
    pub fn of_bytes(bytes: &[u8]) -> Random {
        Random { state: 0, tape: bytes.iter().rev().copied().collect() }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if !self.tape.is_empty() {
            let taken = (0..8).map_while(|_| self.tape.pop());
            return taken.fold(0, |bits, byte| bits << 8 | u64::from(byte));
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "there is no number below 0");
        if end <= 256
            && let Some(byte) = self.tape.pop()
        {
            return usize::from(byte) % end;
        }
        (self.bits() % end as u64) as usize
    }

    /// A number from `start` to `end`, both included.
    pub fn between(&mut self, start: usize, end: usize) -> usize {
        start + self.below(end - start + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    /// A 64-bit integer: small ones and those at the borders of widths more often than others.
    pub fn integer(&mut self) -> i64 {
        const BORDERS: [i64; 16] = [
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            i64::MAX - 1,
            i32::MIN as i64,
            i32::MIN as i64 - 1,
            i32::MAX as i64,
            i32::MAX as i64 + 1,
            u32::MAX as i64,
            u32::MAX as i64 + 1,
            -129,
            -128,
            127,
            128,
            63,
            64,
        ];
        match self.below(10) {
            0..=6 => self.below(21) as i64 - 10,
            7 => self.pick(&BORDERS),
            8 => 1 << self.below(63),
            _ => self.bits() as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_sequence() {
        // The first outputs of SplitMix64 for the seed 1234567, as other implementations print them.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn plays_bytes_back() {
        let mut random = Random::of_bytes(&[7, 12, 0, 0, 0, 0, 0, 0, 1, 2, 99, 1]);
        assert_eq!((random.below(256), random.below(10)), (7, 2));
        assert_eq!(random.below(1000), 0x0102, "more than 256 choices take eight bytes");
        assert!(!random.chance(99));
        assert_eq!(random.bits(), 1, "what is left");
        assert_eq!(random.bits(), Random::new(0).bits(), "then those of a seed");
    }

    #[test]
    fn shuffles_are_permutations() {
        let mut random = Random::new(1);
        let mut items: Vec<usize> = (0..50).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
