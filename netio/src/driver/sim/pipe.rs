//! One direction of a connection.

use std::collections::VecDeque;
use std::time::Duration;

/// How the bytes of a pipe end, as its reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Not yet.
    None,
    /// In order.
    Fin,
    /// Broken.
    Reset,
}

/// Bytes from one end to the other, in order, each at its time.
#[derive(Debug)]
pub(super) struct Pipe {
    on_the_way: VecDeque<(Duration, Arrival)>,
    /// When the last of them arrives.
    last: Duration,
    on_the_way_bytes: usize,
    arrived: VecDeque<u8>,
    ending: Ending,
    /// An end was sent: nothing follows.
    ended: bool,
}

#[derive(Debug)]
enum Arrival {
    Bytes(Vec<u8>),
    End(Ending),
}

impl Pipe {
    pub(super) fn new() -> Self {
        Self {
            on_the_way: VecDeque::new(),
            last: Duration::ZERO,
            on_the_way_bytes: 0,
            arrived: VecDeque::new(),
            ending: Ending::None,
            ended: false,
        }
    }

    /// Sends bytes that arrive at `at`, or when those before them do.
    pub(super) fn send(&mut self, bytes: Vec<u8>, at: Duration) {
        debug_assert!(!self.ended, "bytes behind the end");
        self.on_the_way_bytes += bytes.len();
        self.push(Arrival::Bytes(bytes), at);
    }

    /// Sends an end. One that breaks the connection may follow one in order.
    pub(super) fn end(&mut self, ending: Ending, at: Duration) {
        if self.ended && ending == Ending::Fin {
            return;
        }
        self.ended = true;
        self.push(Arrival::End(ending), at);
    }

    /// Loses what is on the way.
    pub(super) fn lose(&mut self) {
        self.on_the_way.clear();
        self.on_the_way_bytes = 0;
    }

    /// Loses what has arrived too: nobody reads it any more.
    pub(super) fn drain(&mut self) {
        self.lose();
        self.arrived.clear();
    }

    /// Lets arrive what has its time.
    pub(super) fn advance(&mut self, now: Duration) {
        while self.next_arrival().is_some_and(|at| at <= now) {
            match self.on_the_way.pop_front() {
                Some((_, Arrival::Bytes(bytes))) => {
                    self.on_the_way_bytes -= bytes.len();
                    self.arrived.extend(bytes);
                }
                Some((_, Arrival::End(ending))) => self.ending = ending,
                None => {}
            }
        }
    }

    /// Takes up to `count` bytes that have arrived.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let count = count.min(self.arrived.len());
        self.arrived.drain(..count).collect()
    }

    pub(super) fn arrived_bytes(&self) -> usize {
        self.arrived.len()
    }

    pub(super) fn on_the_way_bytes(&self) -> usize {
        self.on_the_way_bytes
    }

    /// How it has ended for its reader, once the bytes that have arrived are read.
    pub(super) fn ending(&self) -> Ending {
        self.ending
    }

    /// Whether its writer has ended it.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// When something arrives next.
    pub(super) fn next_arrival(&self) -> Option<Duration> {
        self.on_the_way.front().map(|(at, _)| *at)
    }

    fn push(&mut self, arrival: Arrival, at: Duration) {
        self.last = self.last.max(at);
        self.on_the_way.push_back((self.last, arrival));
    }
}
