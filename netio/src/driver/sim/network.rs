//! The network: connections, listeners, time and chance.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::pipe::{Ending, Pipe};
use super::stream::{SimListener, SimStream};
use crate::driver::Socket;
use crate::driver::nonblocking::Readiness;
use crate::random::Random;

/// One call in so many finds nothing though there is something, as if it came a moment early.
const EARLY: u64 = 8;

/// How the network treats what it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimOptions {
    /// What all choices come from. 0 by default.
    pub seed: u64,
    /// The longest that anything is on the way. 2 ms by default.
    pub delay_max: Duration,
    /// The most that one read or write moves, in bytes. 64 KiB by default.
    pub piece_bytes_max: usize,
    /// What one direction of a connection holds, in bytes, on the way and unread. 256 KiB by
    /// default.
    pub window_bytes: usize,
    /// How many of a million writes break their connection instead. 0 by default.
    pub resets_per_million: u32,
}

/// A simulated network. A clone is another handle to the same.
#[derive(Clone)]
pub struct SimNetwork {
    net: Arc<Mutex<Net>>,
}

pub(super) struct Net {
    options: SimOptions,
    random: Random,
    now: Duration,
    listeners: BTreeMap<String, VecDeque<Call>>,
    wires: BTreeMap<u64, Wire>,
    next_wire: u64,
}

/// Somebody who connects.
struct Call {
    wire: u64,
    arrives: Duration,
}

/// A connection. The pipe of an end is the one that it writes to.
struct Wire {
    pipes: [Pipe; 2],
    is_open: [bool; 2],
}

impl SimNetwork {
    /// A network in which nobody listens, at time zero.
    ///
    /// # Panics
    /// If nothing could ever be moved.
    pub fn new(options: SimOptions) -> Self {
        assert!(options.piece_bytes_max > 0, "no piece");
        assert!(options.window_bytes > 0, "no window");
        let net = Net {
            random: Random::from_seed(options.seed),
            options,
            now: Duration::ZERO,
            listeners: BTreeMap::new(),
            wires: BTreeMap::new(),
            next_wire: 0,
        };
        Self {
            net: Arc::new(Mutex::new(net)),
        }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.lock().now += by;
    }

    /// The time.
    pub fn now(&self) -> Duration {
        self.lock().now
    }

    /// When something arrives next that has not arrived yet, for who wants to jump there.
    pub fn next_arrival(&self) -> Option<Duration> {
        let net = self.lock();
        let pipes = net.wires.values().flat_map(|wire| &wire.pipes);
        let bytes = pipes.filter_map(Pipe::next_arrival);
        let calls = net.listeners.values().flatten().map(|call| call.arrives);
        bytes.chain(calls).filter(|at| *at > net.now).min()
    }

    /// A listening socket of this name.
    ///
    /// # Errors
    /// Somebody listens there.
    pub fn listen(&self, name: &str) -> io::Result<Socket> {
        let mut net = self.lock();
        if net.listeners.contains_key(name) {
            return Err(Errno::ADDRINUSE.into());
        }
        net.listeners.insert(name.to_owned(), VecDeque::new());
        let listener = SimListener::new(self.clone(), name.to_owned());
        Ok(Socket::SimListener(listener))
    }

    /// Connects to whoever listens under this name.
    ///
    /// # Errors
    /// Nobody does.
    pub fn connect(&self, name: &str) -> io::Result<Socket> {
        let mut net = self.lock();
        if !net.listeners.contains_key(name) {
            return Err(Errno::CONNREFUSED.into());
        }
        let wire = net.wire();
        let arrives = net.arrival();
        if let Some(calls) = net.listeners.get_mut(name) {
            let arrives = calls
                .back()
                .map_or(arrives, |last| arrives.max(last.arrives));
            calls.push_back(Call { wire, arrives });
        }
        Ok(Socket::Sim(SimStream::new(self.clone(), wire, 0)))
    }

    /// Two ends of one connection.
    pub fn pair(&self) -> (Socket, Socket) {
        let wire = self.lock().wire();
        let [one, other] = [0, 1].map(|end| SimStream::new(self.clone(), wire, end));
        (Socket::Sim(one), Socket::Sim(other))
    }

    /// Whether both are handles to the same network.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.net, &other.net)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Net> {
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Net {
    /// The other end of a connection whose call has arrived.
    pub(super) fn accept(&mut self, name: &str) -> Option<u64> {
        if !self.has_call(name) {
            return None;
        }
        let calls = self.listeners.get_mut(name)?;
        calls.pop_front().map(|call| call.wire)
    }

    pub(super) fn has_call(&self, name: &str) -> bool {
        let first = self.listeners.get(name).and_then(VecDeque::front);
        first.is_some_and(|call| call.arrives <= self.now)
    }

    /// Ends listening, and breaks the connections that nobody accepted.
    pub(super) fn stop_listening(&mut self, name: &str) {
        for call in self.listeners.remove(name).unwrap_or_default() {
            self.reset(call.wire, 1);
        }
    }

    pub(super) fn readiness(&mut self, wire: u64, end: usize) -> Readiness {
        let (now, window) = (self.now, self.options.window_bytes);
        let wire = self.at(wire);
        wire.pipes[1 - end].advance(now);
        let incoming = &wire.pipes[1 - end];
        let room = wire.room(end, window) > 0 || !wire.is_open[1 - end];
        let broken = incoming.ending() == Ending::Reset;
        Readiness {
            readable: incoming.arrived_bytes() > 0,
            writable: room || broken,
            hung_up: incoming.ending() != Ending::None,
        }
    }

    /// Reads up to `count` bytes; none at the end.
    pub(super) fn read(&mut self, wire: u64, end: usize, count: usize) -> Result<Vec<u8>, Errno> {
        let early = self.random.below(EARLY) == 0;
        let piece = self.piece();
        let now = self.now;
        let incoming = &mut self.at(wire).pipes[1 - end];
        incoming.advance(now);
        match (incoming.arrived_bytes(), incoming.ending()) {
            // Once the end has arrived, a kernel too gives all there is without a pause.
            (1.., Ending::None) if early => Err(Errno::AGAIN),
            (1.., _) => Ok(incoming.take(count.min(piece))),
            (0, Ending::Fin) => Ok(Vec::new()),
            (0, Ending::Reset) => Err(Errno::CONNRESET),
            (0, Ending::None) => Err(Errno::AGAIN),
        }
    }

    /// Writes from the front of `slices`; how many bytes.
    pub(super) fn write(
        &mut self,
        wire: u64,
        end: usize,
        slices: &[IoSlice<'_>],
    ) -> Result<usize, Errno> {
        let early = self.random.below(EARLY) == 0;
        let breaks = self.random.below(1_000_000) < u64::from(self.options.resets_per_million);
        let (piece, arrives) = (self.piece(), self.arrival());
        let (now, window) = (self.now, self.options.window_bytes);
        let wire = self.at(wire);
        wire.pipes[1 - end].advance(now);
        wire.pipes[end].advance(now);
        if wire.pipes[1 - end].ending() == Ending::Reset {
            return Err(Errno::CONNRESET);
        }
        if wire.pipes[end].is_ended() {
            return Err(Errno::PIPE);
        }
        if breaks {
            for pipe in &mut wire.pipes {
                pipe.lose();
                pipe.end(Ending::Reset, arrives);
            }
            return Err(Errno::AGAIN);
        }
        if !wire.is_open[1 - end] {
            // Nobody is there: the bytes go nowhere, and the answer breaks the connection.
            wire.pipes[1 - end].end(Ending::Reset, arrives);
            return Ok(slices.iter().map(|slice| slice.len()).sum());
        }
        let count = wire.room(end, window).min(piece);
        if count == 0 || early {
            return Err(Errno::AGAIN);
        }
        let all = slices.iter().flat_map(|slice| slice.iter().copied());
        let bytes: Vec<u8> = all.take(count).collect();
        let count = bytes.len();
        wire.pipes[end].send(bytes, arrives);
        Ok(count)
    }

    pub(super) fn shutdown_write(&mut self, wire: u64, end: usize) -> Result<(), Errno> {
        let (now, arrives) = (self.now, self.arrival());
        let wire = self.at(wire);
        wire.pipes[1 - end].advance(now);
        if wire.pipes[1 - end].ending() == Ending::Reset {
            return Err(Errno::NOTCONN);
        }
        wire.pipes[end].end(Ending::Fin, arrives);
        Ok(())
    }

    /// Bytes that have not arrived.
    pub(super) fn unacknowledged_bytes(&mut self, wire: u64, end: usize) -> usize {
        let now = self.now;
        let outgoing = &mut self.at(wire).pipes[end];
        outgoing.advance(now);
        outgoing.on_the_way_bytes()
    }

    /// Closes an end. Bytes that it has not read break the connection; otherwise it ends in
    /// order, behind what was written.
    pub(super) fn close(&mut self, wire: u64, end: usize) {
        let arrives = self.arrival();
        let found = self.at(wire);
        let incoming = &mut found.pipes[1 - end];
        let unread = incoming.arrived_bytes() + incoming.on_the_way_bytes() > 0;
        incoming.drain();
        let ending = if unread { Ending::Reset } else { Ending::Fin };
        found.pipes[end].end(ending, arrives);
        self.leave(wire, end);
    }

    /// Closes an end, and loses what it wrote and has not arrived.
    pub(super) fn reset(&mut self, wire: u64, end: usize) {
        let arrives = self.arrival();
        let found = self.at(wire);
        found.pipes[1 - end].drain();
        found.pipes[end].lose();
        found.pipes[end].end(Ending::Reset, arrives);
        self.leave(wire, end);
    }

    fn leave(&mut self, wire: u64, end: usize) {
        let found = self.at(wire);
        found.is_open[end] = false;
        if found.is_open == [false; 2] {
            self.wires.remove(&wire);
        }
    }

    /// Makes a connection.
    fn wire(&mut self) -> u64 {
        let name = self.next_wire;
        self.next_wire += 1;
        let wire = Wire {
            pipes: [Pipe::new(), Pipe::new()],
            is_open: [true; 2],
        };
        self.wires.insert(name, wire);
        name
    }

    fn at(&mut self, wire: u64) -> &mut Wire {
        let found = self.wires.get_mut(&wire);
        // Invariant: a connection is there as long as one of its ends is, and only they ask.
        found.expect("a connection with an end")
    }

    /// When what is sent now arrives, at the earliest.
    fn arrival(&mut self) -> Duration {
        let delay_max_ns = self.options.delay_max.as_nanos() as u64;
        let delay_ns = self.random.below(delay_max_ns.saturating_add(1));
        self.now + Duration::from_nanos(delay_ns)
    }

    fn piece(&mut self) -> usize {
        1 + self.random.below(self.options.piece_bytes_max as u64) as usize
    }
}

impl Wire {
    /// What the end can write.
    fn room(&self, end: usize, window: usize) -> usize {
        let pipe = &self.pipes[end];
        window.saturating_sub(pipe.on_the_way_bytes() + pipe.arrived_bytes())
    }
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            delay_max: Duration::from_millis(2),
            piece_bytes_max: 64 << 10,
            window_bytes: 256 << 10,
            resets_per_million: 0,
        }
    }
}

impl fmt::Debug for SimNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNetwork").finish_non_exhaustive()
    }
}
