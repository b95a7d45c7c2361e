//! Numbers that look random and can be made again (the generator SplitMix64).

/// A row of numbers that depends on its seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to `end`, without it. 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_that_of_its_seed() {
        let row = |seed| {
            let mut random = Random::from_seed(seed);
            [(); 4].map(|()| random.below(1000))
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
        assert_eq!(Random::from_seed(1).below(0), 0);
    }
}
