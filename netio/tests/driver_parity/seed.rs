//! Random choices that can be made again.

/// The environment variable that replays a randomised test.
const SEED_VARIABLE: &str = "RINGWAY_SEED";

/// A source of random numbers that says its seed when the test fails.
pub(crate) struct Seeded {
    pub(crate) seed: u64,
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
        Self { seed, state: seed }
    }

    /// A number from 0 up to `end`, without it (a linear congruential generator, of which the
    /// high bits are used).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.state >> 33) % end
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with {SEED_VARIABLE}={}", self.seed);
        }
    }
}
