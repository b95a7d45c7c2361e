//! The links of one thread, and the driver that moves their bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::LazyLock;
use std::time::Duration;

use ringway_netio::buffer::BodyPool;
use ringway_netio::driver::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};
use ringway_netio::net::TEND_EVERY;
use ringway_shm::Bell;

use super::handle::{LinksHandle, LinksSeed, OwnedMailbox};
use super::port::Port;
use crate::clock::{Clock, Monotonic};

/// What all sessions of the process measure time from, so that they can move between threads.
static SESSIONS: LazyLock<Clock> = LazyLock::new(Clock::start);

/// A connection with what is driven over it.
pub(super) trait Link {
    /// Something was done on its connection.
    fn handle(&mut self, event: Event, io: &mut Io<'_>);

    /// Whether its user has done something since it was pumped. Asked in every turn, so it is
    /// to be cheap; a link that can't tell is pumped in every turn.
    fn has_news(&self) -> bool {
        true
    }

    /// Whether its news are elements for the peer, who may be waiting for them. It goes before
    /// those that only say what was taken.
    fn sends(&self) -> bool {
        false
    }

    /// Does what can be done now, and returns how much that was.
    fn pump(&mut self, io: &mut Io<'_>) -> usize;

    /// When it has to be pumped at the latest.
    fn timeout(&self) -> Option<Duration>;

    /// Whether something would be lost if its thread ended now.
    fn is_needed(&self) -> bool;

    /// Whether its connection was given up, so that nothing more happens.
    fn is_over(&self) -> bool;

    /// What goes on with its connection from here, if something else does.
    fn successor(&mut self) -> Option<Box<dyn Link>> {
        None
    }

    /// Its connection has left the driver, as it asked for.
    fn detached(&mut self, socket: Socket) {
        drop(socket);
    }
}

/// A link, and when it is pumped though nothing has happened.
struct Driven {
    link: Box<dyn Link>,
    /// A link that has just done something may have more to do: it is due at once.
    due: Option<Duration>,
}

/// What was done on a connection.
#[derive(Debug)]
pub(super) enum Event {
    Sent(usize),
    Read(ringway_netio::driver::Chunk),
    BodyProgress(usize),
    Body(usize, ringway_netio::buffer::Body),
    Eof,
    Lost(String),
}

/// What a link does things with.
pub(super) struct Io<'a> {
    pub(super) driver: &'a mut dyn Driver,
    /// Where the memory of bodies comes from.
    pub(super) bodies: &'a BodyPool,
    pub(super) connection: ConnectionId,
    /// The time as sessions have it.
    pub(super) now: Duration,
    /// The time as elements have it.
    pub(super) origin: Monotonic,
    /// What that is read from.
    pub(super) clock: &'a Clock,
    /// Wakes whoever turns the links.
    pub(super) bell: &'a Bell,
}

/// What all links of a thread do things with.
struct Means {
    driver: Box<dyn Driver>,
    /// What bodies leave behind, for all connections.
    bodies: BodyPool,
    clock: Clock,
    bell: Bell,
}

/// All links of one thread. Whoever owns the thread turns it: see [`turn`](Self::turn).
///
/// A worker with edges over connections has one, and so has the side thread of a
/// [`DataPlane`](crate::data_plane::DataPlane). It takes new links through its
/// [`LinksHandle`], from any thread.
pub struct Links {
    means: Means,
    mailbox: OwnedMailbox,
    links: HashMap<ConnectionId, Driven, BuildHasherDefault<SlotHasher>>,
    ports: HashMap<ListenerId, Box<dyn Port>>,
    completions: Vec<Completion>,
    /// Links that are to be pumped now, and those that are after them.
    touched: Vec<ConnectionId>,
    later: Vec<ConnectionId>,
    /// Links that are over, to be taken out.
    over: Vec<ConnectionId>,
    broken: Option<String>,
    /// When the driver looks after its connections again.
    tend_at: Duration,
}

impl Links {
    /// Links that this driver moves. `seed` is the other end of the handle; `clock` is what
    /// the origins of elements are measured with.
    ///
    /// # Errors
    /// The driver cannot wait for the bell: no descriptor is left.
    pub fn new(seed: LinksSeed, mut driver: Box<dyn Driver>, clock: Clock) -> io::Result<Self> {
        let (mailbox, bell) = seed.into_parts();
        if let Some(descriptor) = bell.as_fd() {
            driver.watch(descriptor.try_clone_to_owned()?)?;
        }
        Ok(Self {
            means: Means {
                driver,
                bodies: BodyPool::default(),
                clock,
                bell,
            },
            mailbox,
            links: HashMap::default(),
            ports: HashMap::new(),
            completions: Vec::new(),
            touched: Vec::new(),
            later: Vec::new(),
            over: Vec::new(),
            broken: None,
            tend_at: Self::now() + TEND_EVERY,
        })
    }

    /// Hands links to this thread.
    pub fn handle(&self) -> LinksHandle {
        self.mailbox.handle(self.means.bell.clone())
    }

    /// What moves the bytes.
    pub fn driver(&self) -> DriverKind {
        self.means.driver.kind()
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether something would be lost if nobody turned this any more: data that its peer does
    /// not have yet, or a receiver that waits for more.
    pub fn is_needed(&self) -> bool {
        !self.mailbox.is_empty() || self.links.values().any(|driven| driven.link.is_needed())
    }

    /// Whether a peer may still connect.
    pub fn is_listening(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Whether links may still be handed over.
    pub fn has_handles(&self) -> bool {
        self.mailbox.has_handles()
    }

    /// Does all that can be done without waiting: takes new links, moves elements between
    /// rings and frames, hands them to the driver, and takes what it has done. Returns how
    /// much that was; 0 means that nothing can be done until the bell rings, the driver has
    /// something, or [`next_timeout`](Self::next_timeout) is over.
    pub fn turn(&mut self) -> usize {
        let mut work = self.obey();
        let now = Self::now();
        let origin = self.means.clock.at(Monotonic(now), &SESSIONS);
        self.tend(now);
        work += self.pump(now, origin);
        work += self.poll(now, origin);
        self.sweep();
        work
    }

    /// Sleeps until there may be something to do, at most for `limit`. To be called after a
    /// turn that did nothing, with the bell [armed](Bell::arm) before that turn.
    pub fn wait(&mut self, limit: Duration) {
        let limit = self
            .next_timeout()
            .map_or(limit, |timeout| timeout.min(limit));
        if let Err(error) = self.means.driver.wait(Some(limit)) {
            self.give_up(&error);
        }
        // What rang it is consumed; where nobody did, there is nothing to consume.
        self.means.bell.disarm();
    }

    /// Arms the bell, turns once more, and sleeps for at most `limit` if that did nothing.
    pub fn park(&mut self, limit: Duration) {
        self.means.bell.arm();
        if self.turn() > 0 {
            self.means.bell.disarm();
            return;
        }
        self.wait(limit);
    }

    /// How long nobody need turn this if neither the bell rings nor the driver has something.
    pub fn next_timeout(&self) -> Option<Duration> {
        let links = self.links.values().filter_map(|driven| driven.due);
        let ports = self.ports.values().filter_map(|port| port.timeout());
        let tend = (!self.links.is_empty()).then_some(self.tend_at);
        let next = links.chain(ports).chain(tend).min()?;
        Some(next.saturating_sub(SESSIONS.now().0))
    }

    /// The bell that wakes whoever turns this.
    pub fn bell(&self) -> &Bell {
        &self.means.bell
    }

    /// Readable when the driver has something, for a host that waits by itself; it does not
    /// cover the bell. To be asked for anew before each wait, after a turn.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.means.driver.as_fd()
    }

    /// Takes a socket over. [`insert`](Self::insert) says what is to be driven over it.
    pub(super) fn reserve(&mut self, socket: Socket) -> io::Result<ConnectionId> {
        if let Some(why) = &self.broken {
            return Err(io::Error::other(why.clone()));
        }
        self.means.driver.attach(socket)
    }

    /// Begins to drive something over a connection.
    pub(super) fn insert(&mut self, connection: ConnectionId, link: Box<dyn Link>) {
        let due = Some(Duration::ZERO);
        self.links.insert(connection, Driven { link, due });
    }

    /// Takes a listening socket over with what is to be done with its connections.
    /// The port learns if that fails.
    pub(super) fn listen(&mut self, socket: Socket, mut port: Box<dyn Port>) {
        let listening = match &self.broken {
            Some(why) => Err(io::Error::other(why.clone())),
            None => self.means.driver.listen(socket),
        };
        match listening {
            Ok(listener) => drop(self.ports.insert(listener, port)),
            Err(error) => port.fail(&format!("the driver cannot listen: {error}")),
        }
    }

    /// The time as sessions have it.
    pub(super) fn now() -> Duration {
        SESSIONS.now().0
    }

    fn obey(&mut self) -> usize {
        let orders = self.mailbox.take();
        let count = orders.len();
        for order in orders {
            order(self);
        }
        count
    }

    /// Lets the links of which something was done take it in. The sends that they make are
    /// handed over in the next turn, which follows at once.
    fn pump_touched(&mut self, now: Duration, origin: Monotonic) {
        let mut touched = std::mem::take(&mut self.touched);
        for connection in touched.drain(..) {
            self.pump_one(connection, now, origin);
        }
        self.touched = touched;
    }

    fn pump_one(&mut self, connection: ConnectionId, now: Duration, origin: Monotonic) -> usize {
        let Some(driven) = self.links.get_mut(&connection) else {
            return 0;
        };
        let mut io = self.means.io(connection, now, origin);
        let work = driven.pump(&mut io);
        if driven.link.is_over() {
            self.over.push(connection);
        }
        work
    }

    /// Lets the driver look after its connections, when it is time.
    fn tend(&mut self, now: Duration) {
        if now >= self.tend_at {
            self.tend_at = now + TEND_EVERY;
            self.means.driver.tend();
        }
    }

    fn pump(&mut self, now: Duration, origin: Monotonic) -> usize {
        let (mut first, mut later) = (
            std::mem::take(&mut self.touched),
            std::mem::take(&mut self.later),
        );
        for (&connection, driven) in &self.links {
            let has_news = driven.link.has_news();
            if has_news && driven.link.sends() {
                first.push(connection);
            } else if has_news || driven.is_due(now) {
                later.push(connection);
            }
        }
        let mut work = 0;
        for connection in first.drain(..).chain(later.drain(..)) {
            work += self.pump_one(connection, now, origin);
        }
        (self.touched, self.later) = (first, later);
        work + self.close_ports(now)
    }

    fn close_ports(&mut self, now: Duration) -> usize {
        let mut closed = Vec::new();
        for (&listener, port) in &mut self.ports {
            if port.is_over(now) {
                closed.push(listener);
            }
        }
        let count = closed.len();
        for listener in closed {
            self.means.driver.stop_listening(listener);
            self.ports.remove(&listener);
        }
        count
    }

    fn poll(&mut self, now: Duration, origin: Monotonic) -> usize {
        if self.broken.is_some() {
            return 0;
        }
        let mut completions = std::mem::take(&mut self.completions);
        let polled = self.means.driver.poll(&mut completions);
        let count = completions.len();
        for completion in completions.drain(..) {
            self.complete(completion, now, origin);
        }
        self.completions = completions;
        self.pump_touched(now, origin);
        if let Err(error) = polled {
            self.give_up(&error);
        }
        count
    }

    fn complete(&mut self, completion: Completion, now: Duration, origin: Monotonic) {
        let (connection, event) = match completion {
            Completion::Sent { connection, bytes } => (connection, Event::Sent(bytes)),
            Completion::Read { connection, chunk } => (connection, Event::Read(chunk)),
            Completion::BodyProgress { connection, bytes } => {
                (connection, Event::BodyProgress(bytes))
            }
            Completion::Body {
                connection,
                bytes,
                body,
            } => (connection, Event::Body(bytes, body)),
            Completion::Eof { connection } => (connection, Event::Eof),
            Completion::Lost { connection, error } => (connection, Event::Lost(error.to_string())),
            Completion::Accepted {
                listener,
                socket,
                peer,
            } => return self.accept(listener, socket, peer, now),
            Completion::ListenerFailed { listener, error } => {
                if let Some(mut port) = self.ports.remove(&listener) {
                    port.fail(&format!("its listening socket has failed: {error}"));
                }
                return;
            }
            Completion::AcceptDelayed { error, .. } => {
                tracing::warn!(
                    %error,
                    "those who connect have to wait: raise the limit of open files, or close some"
                );
                return;
            }
            Completion::Detached { connection, socket } => {
                if let Some(mut driven) = self.links.remove(&connection) {
                    driven.link.detached(socket);
                }
                return;
            }
            // Also what was rung too late to find anybody asleep is to be consumed, or the
            // descriptor would be readable, and this thread awake, for ever.
            Completion::Woken => return self.means.bell.clear(),
            Completion::Closed { .. } => return,
        };
        if let Some(driven) = self.links.get_mut(&connection) {
            let mut io = self.means.io(connection, now, origin);
            driven.link.handle(event, &mut io);
            if self.touched.last() != Some(&connection) {
                self.touched.push(connection);
            }
        }
    }

    fn accept(
        &mut self,
        listener: ListenerId,
        socket: Socket,
        peer: Option<std::net::SocketAddr>,
        now: Duration,
    ) {
        let Some(port) = self.ports.get_mut(&listener) else {
            return;
        };
        let Some((socket, link)) = port.accept(socket, peer, now) else {
            return;
        };
        let reserved = self.reserve(socket);
        if let Err(error) = reserved.map(|connection| self.insert(connection, link)) {
            tracing::warn!(%error, "a connection is dropped: the driver cannot take it");
        }
    }

    fn sweep(&mut self) {
        for connection in self.over.drain(..) {
            self.links.remove(&connection);
        }
    }

    /// The driver is broken: no connection of it lives on.
    fn give_up(&mut self, error: &io::Error) {
        let why = error.to_string();
        tracing::error!(
            error = why,
            "the driver is broken: all its connections are lost"
        );
        let (now, origin) = (Self::now(), self.means.clock.now());
        for (&connection, driven) in &mut self.links {
            let mut io = self.means.io(connection, now, origin);
            driven.link.handle(Event::Lost(why.clone()), &mut io);
            driven.link.pump(&mut io);
        }
        self.links.clear();
        for (_, mut port) in self.ports.drain() {
            port.fail(&format!("the driver is broken: {why}"));
        }
        self.broken = Some(why);
    }
}

impl Driven {
    fn is_due(&self, now: Duration) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Lets the link do what it can, and what goes on in its place, if something does.
    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        let mut work = self.link.pump(io);
        if work > 0
            && let Some(successor) = self.link.successor()
        {
            self.link = successor;
            work += self.link.pump(io);
        }
        self.due = match work {
            0 => self.link.timeout(),
            _ => Some(io.now),
        };
        work
    }
}

impl Means {
    /// For one connection, at this time.
    fn io(&mut self, connection: ConnectionId, now: Duration, origin: Monotonic) -> Io<'_> {
        Io {
            driver: &mut *self.driver,
            bodies: &self.bodies,
            connection,
            now,
            origin,
            clock: &self.clock,
            bell: &self.bell,
        }
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links")
            .field("driver", &self.means.driver.kind())
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}

/// Tells the names of connections apart, which are small numbers that the driver counts: nobody
/// can choose them so that they collide.
#[derive(Default)]
struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // An odd number with its bits well mixed: tables look at the high ones and the low ones.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(SPREAD);
    }
}

/// What was handed over and waits.
pub(super) type Orders = VecDeque<Box<dyn FnOnce(&mut Links) + Send>>;
