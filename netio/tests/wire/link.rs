//! One direction of a connection, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::seed::Seeded;

/// How a link treats what it carries.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    /// The most that arrives at once.
    pub(crate) chunk_bytes: u64,
    /// The longest time on the way, in milliseconds.
    pub(crate) delay_ms: u64,
}

/// What nothing cuts or delays.
pub(crate) const CALM: Weather = Weather {
    chunk_bytes: u64::MAX,
    delay_ms: 0,
};

pub(crate) enum Arrival {
    Bytes(Vec<u8>),
    Fin,
}

#[derive(Default)]
pub(crate) struct Link {
    on_the_way: VecDeque<(Duration, Arrival)>,
    last: Duration,
    pub(crate) is_shut: bool,
    pub(crate) is_cut: bool,
    /// All bytes that were ever sent.
    pub(crate) carried: Vec<u8>,
}

impl Link {
    pub(crate) fn send(
        &mut self,
        now: Duration,
        bytes: &[u8],
        weather: Weather,
        seeded: &mut Seeded,
    ) {
        assert!(!self.is_shut || bytes.is_empty(), "sent after a shutdown");
        self.carried.extend_from_slice(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = weather.chunk_bytes.min(rest.len() as u64);
            let (part, later) = rest.split_at(1 + seeded.below(most) as usize);
            rest = later;
            self.put(now, Arrival::Bytes(part.to_vec()), weather, seeded);
        }
    }

    pub(crate) fn shut(&mut self, now: Duration, weather: Weather, seeded: &mut Seeded) {
        if !self.is_shut {
            self.is_shut = true;
            self.put(now, Arrival::Fin, weather, seeded);
        }
    }

    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.on_the_way.front().map(|(at, _)| *at)
    }

    pub(crate) fn receive(&mut self, now: Duration) -> Option<Arrival> {
        (self.next_at()? <= now).then_some(())?;
        self.on_the_way.pop_front().map(|(_, arrival)| arrival)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.on_the_way.is_empty()
    }

    fn put(&mut self, now: Duration, arrival: Arrival, weather: Weather, seeded: &mut Seeded) {
        let delay = Duration::from_millis(seeded.below(weather.delay_ms + 1));
        self.last = self.last.max(now + delay);
        if !self.is_cut {
            self.on_the_way.push_back((self.last, arrival));
        }
    }
}
