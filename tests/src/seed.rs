//! Random choices that can be made again.

use std::hash::BuildHasher;

/// The environment variable that replays a randomised test.
pub const SEED_VARIABLE: &str = "RINGWAY_SEED";

/// The seed in [`SEED_VARIABLE`], or one that is new.
///
/// # Panics
/// If the variable is set to something that is no number.
pub fn seed() -> u64 {
    match std::env::var(SEED_VARIABLE) {
        Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
        // Keyed anew each time.
        Err(_) => std::hash::RandomState::new().hash_one(SEED_VARIABLE),
    }
}

/// A source of random numbers.
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// Starts from [`seed`], and prints it, which the output of a test that fails shows.
    ///
    /// # Panics
    /// If the variable is set to something that is no number.
    pub fn new() -> Self {
        let seed = seed();
        println!("{SEED_VARIABLE}={seed}");
        Self::from_seed(seed)
    }

    /// Starts from this seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number (the generator SplitMix64).
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

impl Default for Seeded {
    fn default() -> Self {
        Self::new()
    }
}
