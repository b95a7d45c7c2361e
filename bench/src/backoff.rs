//! What a spinning party does while its peer is not ready.

use std::time::{Duration, Instant};

/// Pauses of the longest wait between two looks, as a power of two: some 400 ns.
const LONGEST: u32 = 4;

/// Looks after which the core is offered to others, in case the peer has none.
const YIELD_AFTER_LOOKS: u32 = 2_000;

/// Time after which the peer is taken to be stuck: nothing that is measured here waits so long.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Waits a little longer after each look that found nothing, so that the party that waits does
/// not take the cache line from the one that works. The same for ours and for every baseline.
#[derive(Debug)]
pub(crate) struct Backoff {
    longest: u32,
    looks: u32,
    yielding_since: Option<Instant>,
}

impl Backoff {
    /// For a stream, where the peer is usually some elements ahead or behind.
    pub(crate) const fn light() -> Self {
        Self::up_to(LONGEST)
    }

    /// For a round trip, where every look counts.
    pub(crate) const fn spin() -> Self {
        Self::up_to(0)
    }

    /// There was something: begin anew at the next look that finds nothing.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.looks = 0;
        self.yielding_since = None;
    }

    /// There was nothing.
    ///
    /// # Panics
    /// When that has gone on for a minute, which ends the measurement with an error instead of
    /// a hang.
    #[inline]
    pub(crate) fn pause(&mut self) {
        for _ in 0..1_u32 << self.looks.min(self.longest) {
            std::hint::spin_loop();
        }
        self.looks += 1;
        if self.looks > YIELD_AFTER_LOOKS {
            self.give_way();
        }
    }

    const fn up_to(longest: u32) -> Self {
        Self {
            longest,
            looks: 0,
            yielding_since: None,
        }
    }

    #[cold]
    fn give_way(&mut self) {
        self.looks = self.longest;
        let since = *self.yielding_since.get_or_insert_with(Instant::now);
        assert!(
            since.elapsed() < STUCK_AFTER,
            "nothing came for {} s: the peer is stuck, or lost an element",
            STUCK_AFTER.as_secs()
        );
        std::thread::yield_now();
    }
}
