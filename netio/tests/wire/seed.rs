//! Random choices that can be made again.

/// The environment variable that replays a randomised test.
const SEED_VARIABLE: &str = "RINGWAY_SEED";

/// A source of random numbers that says its seed when the test fails.
pub(crate) struct Seeded {
    seed: u64,
    state: u64,
}

impl Seeded {
    /// Starts from the variable, or from the clock.
    pub(crate) fn new() -> Self {
        let seed = match std::env::var(SEED_VARIABLE) {
            Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
            Err(_) => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(1, |since| since.as_nanos() as u64),
        };
        Self::from_seed(seed)
    }

    pub(crate) fn from_seed(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// The next number (the generator SplitMix64).
    pub(crate) fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number() as u8).collect()
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with {SEED_VARIABLE}={}", self.seed);
        }
    }
}
