//! Drivers that are polled in turn, and what they told.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ringway_netio::buffer::Body;
use ringway_netio::driver::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};

use crate::record::Record;
use crate::worlds::World;

/// Longer than anything here takes, even on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection of one of the drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct End {
    pub(crate) node: usize,
    pub(crate) id: ConnectionId,
}

/// One driver, and what it told.
pub(crate) struct Node<D> {
    pub(crate) driver: D,
    records: HashMap<ConnectionId, Record>,
    pub(crate) accepted: Vec<(ListenerId, Socket, Option<SocketAddr>)>,
    pub(crate) delays: usize,
    pub(crate) woken: usize,
    /// Chunks that are kept, if they are to be.
    pub(crate) kept: Option<Vec<ringway_netio::driver::Chunk>>,
}

/// Some drivers of one world.
pub(crate) struct Kit<W: World> {
    pub(crate) world: W,
    pub(crate) nodes: Vec<Node<W::Driver>>,
}

impl<W: World> Kit<W> {
    pub(crate) fn new(drivers: usize) -> Self {
        let mut world = W::new();
        let nodes = (0..drivers).map(|_| Node::new(world.driver())).collect();
        Self { world, nodes }
    }

    /// Two ends of one connection, on two drivers or on one.
    pub(crate) fn connection(&mut self, near: usize, far: usize) -> (End, End) {
        let (one, other) = self.world.pair();
        (self.attach(near, one), self.attach(far, other))
    }

    pub(crate) fn attach(&mut self, node: usize, socket: Socket) -> End {
        let id = self.nodes[node].driver.attach(socket).unwrap();
        self.nodes[node].records.insert(id, Record::default());
        End { node, id }
    }

    pub(crate) fn record(&mut self, end: End) -> &mut Record {
        self.nodes[end.node].records.get_mut(&end.id).unwrap()
    }

    pub(crate) fn driver(&mut self, end: End) -> &mut W::Driver {
        &mut self.nodes[end.node].driver
    }

    /// Expects a stream from its byte `from` on, and reads.
    pub(crate) fn expect(&mut self, end: End, stream: u64, from: usize) {
        self.record(end).expected = Some((stream, from));
        self.read(end, true);
    }

    pub(crate) fn read(&mut self, end: End, reads: bool) {
        self.driver(end).set_reading(end.id, reads);
    }

    pub(crate) fn read_body(&mut self, end: End, bytes: usize) {
        self.driver(end).read_body(end.id, Body::new(bytes));
    }

    pub(crate) fn send(&mut self, end: End, queue: &mut VecDeque<Bytes>) -> usize {
        self.driver(end).send(end.id, queue)
    }

    /// Sends all of the queue, one send after the other.
    pub(crate) fn send_all(&mut self, end: End, mut queue: VecDeque<Bytes>) {
        let sends = self.record(end).sends;
        let mut begun = 0;
        self.until("everything is sent", |kit| {
            if kit.send(end, &mut queue) > 0 {
                begun += 1;
            }
            queue.is_empty() && kit.record(end).sends == sends + begun
        });
    }

    pub(crate) fn close(&mut self, end: End) {
        self.record(end).closing = true;
        self.driver(end).close(end.id);
    }

    /// Closes and waits for that.
    pub(crate) fn close_now(&mut self, end: End) {
        self.close(end);
        self.until("it is closed", |kit| kit.record(end).closed);
    }

    /// Polls all drivers, until the condition holds.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
            self.world.pass();
            if self.poll() == 0 {
                for node in &mut self.nodes {
                    node.driver.wait(Some(Duration::from_micros(50))).unwrap();
                }
            }
        }
    }

    /// Polls for a while, so that what should not happen can.
    pub(crate) fn linger(&mut self) {
        for _ in 0..20 {
            self.poll();
            self.world.pass();
            for node in &mut self.nodes {
                node.driver.wait(Some(Duration::from_millis(1))).unwrap();
            }
        }
    }

    /// Polls each driver once.
    pub(crate) fn poll(&mut self) -> usize {
        self.nodes.iter_mut().map(Node::poll).sum()
    }
}

impl<D: Driver> Node<D> {
    pub(crate) fn new(driver: D) -> Self {
        Self {
            driver,
            records: HashMap::new(),
            accepted: Vec::new(),
            delays: 0,
            woken: 0,
            kept: None,
        }
    }

    pub(crate) fn poll(&mut self) -> usize {
        let mut completions = Vec::new();
        let count = self.driver.poll(&mut completions).unwrap();
        assert_eq!(count, completions.len());
        for completion in completions {
            self.handle(completion);
        }
        count
    }

    fn handle(&mut self, completion: Completion) {
        match completion {
            Completion::Accepted {
                listener,
                socket,
                peer,
            } => self.accepted.push((listener, socket, peer)),
            Completion::AcceptDelayed { .. } => self.delays += 1,
            Completion::ListenerFailed { error, .. } => panic!("a listener failed: {error}"),
            Completion::Woken => self.woken += 1,
            Completion::Read { connection, chunk } => {
                self.record(connection).handle_read(&chunk);
                if let Some(kept) = &mut self.kept {
                    kept.push(chunk);
                }
            }
            Completion::Sent { connection, bytes } => self.record(connection).handle_sent(bytes),
            Completion::BodyProgress { connection, bytes } => {
                self.record(connection).handle_progress(bytes);
            }
            Completion::Body {
                connection,
                bytes,
                body,
            } => self.record(connection).handle_body(bytes, body),
            Completion::Eof { connection } => self.record(connection).handle_eof(),
            Completion::Lost { connection, error } => self.record(connection).handle_lost(error),
            Completion::Detached { connection, socket } => {
                self.record(connection).handle_detached(socket);
            }
            Completion::Closed { connection } => self.record(connection).handle_closed(),
        }
    }

    fn record(&mut self, connection: ConnectionId) -> &mut Record {
        self.records.get_mut(&connection).unwrap()
    }
}

/// Every driver says what it is.
pub(crate) fn kind_of<W: World>(kit: &Kit<W>) -> DriverKind {
    kit.nodes[0].driver.kind()
}
