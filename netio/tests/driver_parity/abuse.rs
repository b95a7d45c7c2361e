//! Random abuse: whatever is asked of connections, in whatever state they are, each of them
//! ends once, nothing comes after that, and nothing is left.

use bytes::Bytes;
use ringway_netio::driver::{Driver, Socket};

use crate::kit::{End, Kit};
use crate::pattern;
use crate::seed::Seeded;
use crate::worlds::World;

crate::promises![whatever_is_asked_in_whatever_state_every_connection_ends_once_and_leaves_nothing];

const STEPS: usize = 1500;
const CONNECTIONS_MAX: usize = 24;

struct Abuse<W: World> {
    kit: Kit<W>,
    seeded: Seeded,
    ends: Vec<Victim>,
    /// The other ends of some, which no driver has.
    raw: Vec<Socket>,
    /// All that was to be sent.
    sent: Vec<Bytes>,
}

/// A connection, and what was asked of it.
#[derive(Clone, Copy)]
struct Victim {
    end: End,
    bodies: usize,
}

fn whatever_is_asked_in_whatever_state_every_connection_ends_once_and_leaves_nothing<W: World>() {
    let mut abuse = Abuse::<W> {
        kit: Kit::new(2),
        seeded: Seeded::new(),
        ends: Vec::new(),
        raw: Vec::new(),
        sent: Vec::new(),
    };
    for _ in 0..STEPS {
        abuse.step();
    }
    abuse.end();
}

impl<W: World> Abuse<W> {
    fn step(&mut self) {
        if self.ends.is_empty() || self.ends.len() < CONNECTIONS_MAX && self.one_in(20) {
            self.connect();
        }
        let chosen = self.seeded.below(self.ends.len() as u64) as usize;
        let end = self.ends[chosen].end;
        let driver = self.kit.driver(end);
        match self.seeded.below(100) {
            0..30 => self.send(end),
            30..45 => driver.set_reading(end.id, true),
            45..50 => driver.set_reading(end.id, false),
            50..60 => self.read_body(chosen),
            60..62 => driver.shutdown_write(end.id),
            62..64 => driver.detach(end.id),
            64..66 => self.kit.close(end),
            66..68 => self.break_one(),
            68..70 => driver.tend(),
            _ => {
                self.kit.poll();
                self.kit.world.pass();
            }
        }
        self.take_over();
    }

    fn connect(&mut self) {
        let (near, far) = self.kit.world.pair();
        let node = self.seeded.below(2) as usize;
        self.attach(node, near);
        if self.one_in(3) {
            self.raw.push(far);
        } else {
            self.attach(1 - node, far);
        }
    }

    fn attach(&mut self, node: usize, socket: Socket) {
        let end = self.kit.attach(node, socket);
        self.kit.read(end, true);
        self.ends.push(Victim { end, bodies: 0 });
    }

    fn send(&mut self, end: End) {
        let longest = 1 << self.seeded.below(18);
        let lengths = [(); 3].map(|()| self.seeded.below(longest) as usize);
        let mut queue = pattern::segments(1, &lengths);
        self.sent.extend(queue.iter().cloned());
        self.kit.send(end, &mut queue);
    }

    /// Asks for a body, unless one is under way.
    fn read_body(&mut self, chosen: usize) {
        let Victim { end, bodies } = self.ends[chosen];
        if self.kit.record(end).bodies.len() == bodies {
            self.ends[chosen].bodies += 1;
            let bytes = self.seeded.below(300_000) as usize;
            self.kit.read_body(end, bytes);
        }
    }

    /// Resets a connection from its other end, or ends it.
    fn break_one(&mut self) {
        if let Some(socket) = self.raw.pop()
            && self.one_in(2)
        {
            self.kit.world.reset(socket);
        }
    }

    /// Gives sockets that came back to another driver, or drops them.
    fn take_over(&mut self) {
        let mut back = Vec::new();
        let kit = &mut self.kit;
        self.ends.retain(|victim| {
            let record = kit.record(victim.end);
            back.extend(record.detached.take().map(|socket| (victim.end, socket)));
            let is_back = back.last().is_some_and(|(end, _)| *end == victim.end);
            !record.closed && !is_back
        });
        for (end, socket) in back {
            if self.one_in(2) {
                self.attach(1 - end.node, socket);
            }
        }
    }

    /// Closes everything. All are told to be closed, and nobody holds what was to be sent.
    fn end(mut self) {
        for Victim { end, .. } in &self.ends {
            self.kit.close(*end);
        }
        let ends = &self.ends;
        self.kit.until("all are closed", |kit| {
            ends.iter().all(|victim| kit.record(victim.end).closed)
        });
        self.kit.linger();
        drop(self.kit);
        let is_left = |bytes: &Bytes| !bytes.is_empty() && !bytes.is_unique();
        assert!(!self.sent.iter().any(is_left));
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.seeded.below(count) == 0
    }
}
