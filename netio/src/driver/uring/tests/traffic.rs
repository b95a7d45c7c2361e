//! Everything at once, over rings and pools that are far too small.
//!
//! Goal: no byte is lost, doubled or handed to another, and nothing stays under way, whatever
//! meets whatever. Method: random calls on many connections between two drivers; every byte is
//! that of its place in its stream.

use super::*;

const PAIRS: usize = 8;
const STEPS: usize = 1_000;

/// One end of a connection, and what went through it.
#[derive(Debug)]
struct End {
    node: usize,
    id: ConnectionId,
    sent: usize,
    got: usize,
    /// Bytes of the body that the driver has, as far as it has told; `None` without a body.
    body: Option<usize>,
    detaching: bool,
    /// Closed here, or over.
    gone: bool,
}

struct Traffic {
    nodes: [UringDriver; 2],
    /// Two of each connection, side by side.
    ends: Vec<End>,
    told: Vec<Completion>,
}

fn byte_at(stream: usize, at: usize) -> u8 {
    ((at as u64 ^ (stream as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn tiny() -> Settings {
    Settings {
        submissions: 4,
        completions: 8,
        chunks: 4,
        chunk_bytes: 2048,
        wait_all: false,
        ..usual()
    }
}

#[test]
fn random_traffic_over_a_tiny_ring_loses_nothing_and_leaves_nothing_under_way() {
    let random = std::cell::RefCell::new(seeded());
    in_every_mode(tiny(), |harness| {
        let random = &mut *random.borrow_mut();
        let settings = harness.driver.io.settings.clone();
        let other = UringDriver::with(settings).unwrap();
        let mut traffic = Traffic::new([harness.driver, other]);
        for _ in 0..STEPS {
            let end = random.below(traffic.ends.len() as u64) as usize;
            traffic.step(end, random);
            if random.below(3) == 0 {
                traffic.poll(random.below(2) as usize);
            }
        }
        traffic.finish();
    });
}

impl Traffic {
    fn new(mut nodes: [UringDriver; 2]) -> Self {
        let mut ends = Vec::new();
        for pair in 0..PAIRS {
            let (near, far) = super::pair();
            for (node, stream) in [(pair % 2, near), ((pair / 2) % 2, far)] {
                ends.push(End {
                    node,
                    id: nodes[node].attach(stream.into()).unwrap(),
                    sent: 0,
                    got: 0,
                    body: None,
                    detaching: false,
                    gone: false,
                });
            }
        }
        Self {
            nodes,
            ends,
            told: Vec::new(),
        }
    }

    fn step(&mut self, at: usize, random: &mut Random) {
        let other_reads = !self.ends[at ^ 1].detaching;
        let end = &mut self.ends[at];
        if end.gone || end.detaching {
            return;
        }
        let driver = &mut self.nodes[end.node];
        match random.below(400) {
            0 => {
                end.gone = true;
                driver.close(end.id);
            }
            // Two ends that wait for their sends, and read no more, would wait for each other.
            1..40 if other_reads => {
                end.detaching = true;
                driver.detach(end.id);
            }
            40..100 => driver.set_reading(end.id, false),
            100..180 if end.body.is_none() => {
                end.body = Some(0);
                let len = 1 + random.below(20_000) as usize;
                driver.read_body(end.id, Body::new(len));
            }
            180..260 => driver.set_reading(end.id, true),
            _ => {
                let mut next = end.sent;
                let segments = (0..1 + random.below(5)).map(|_| {
                    let len = random.below(20_000) as usize;
                    let bytes: Vec<u8> =
                        (next..next + len).map(|place| byte_at(at, place)).collect();
                    next += len;
                    Bytes::from(bytes)
                });
                let mut queue: VecDeque<Bytes> = segments.collect();
                end.sent += driver.send(end.id, &mut queue);
            }
        }
    }

    fn poll(&mut self, node: usize) -> usize {
        let mut told = std::mem::take(&mut self.told);
        let count = self.nodes[node].poll(&mut told).unwrap();
        for told in told.drain(..) {
            self.handle(node, told);
        }
        self.told = told;
        count
    }

    fn handle(&mut self, node: usize, told: Completion) {
        match told {
            Completion::Read { connection, chunk } => {
                let at = self.end(node, connection);
                assert!(self.ends[at].body.is_none(), "a chunk beside a body");
                self.take(at, &chunk);
            }
            Completion::BodyProgress { connection, bytes } => {
                let at = self.end(node, connection);
                *self.ends[at].body.as_mut().unwrap() += bytes;
            }
            Completion::Body {
                connection,
                bytes,
                body,
            } => {
                let at = self.end(node, connection);
                let told = self.ends[at].body.take().unwrap();
                assert_eq!(told + bytes, body.filled().len());
                self.take(at, body.filled());
            }
            Completion::Detached { connection, socket } => {
                let at = self.end(node, connection);
                let end = &mut self.ends[at];
                assert!(end.detaching && end.body.is_none());
                end.detaching = false;
                end.node = 1 - node;
                end.id = self.nodes[1 - node].attach(socket).unwrap();
            }
            Completion::Eof { connection } | Completion::Lost { connection, .. } => {
                let at = self.end(node, connection);
                assert!(self.ends[at ^ 1].gone, "over, although nobody ended it");
                if !self.ends[at].detaching && !std::mem::replace(&mut self.ends[at].gone, true) {
                    self.nodes[node].close(connection);
                }
            }
            Completion::Sent { .. } | Completion::Closed { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn end(&self, node: usize, id: ConnectionId) -> usize {
        let is_it = |end: &End| end.node == node && end.id == id;
        self.ends.iter().position(is_it).unwrap()
    }

    /// Checks that bytes are the next of what the other end sent.
    fn take(&mut self, at: usize, bytes: &[u8]) {
        let end = &mut self.ends[at];
        for byte in bytes {
            assert_eq!(
                *byte,
                byte_at(at ^ 1, end.got),
                "end {at}, place {}",
                end.got
            );
            end.got += 1;
        }
    }

    /// Lets everything arrive, closes, and looks for what was left under way.
    fn finish(mut self) {
        let start = Instant::now();
        while !(0..self.ends.len()).all(|at| self.has_all(at)) {
            assert!(
                start.elapsed() < LONG,
                "bytes are missing: {:#?}",
                self.ends
            );
            for end in self.ends.iter().filter(|end| !end.gone && !end.detaching) {
                self.nodes[end.node].set_reading(end.id, true);
            }
            if self.poll(0) + self.poll(1) == 0 {
                self.nodes[0]
                    .wait(Some(Duration::from_micros(200)))
                    .unwrap();
                self.nodes[1]
                    .wait(Some(Duration::from_micros(200)))
                    .unwrap();
            }
        }
        let whole = self.ends.iter().filter(|end| !end.gone).count();
        assert!(whole > 0, "all were closed: nothing was tested to its end");
        for end in &mut self.ends {
            end.gone = true;
            self.nodes[end.node].close(end.id);
        }
        while self.nodes.iter().any(|node| node.io.ring.in_flight() > 0) {
            assert!(start.elapsed() < 2 * LONG, "something stays under way");
            self.poll(0);
            self.poll(1);
        }
        assert!(
            self.nodes
                .iter_mut()
                .all(|node| node.connections.iter_mut().count() == 0)
        );
    }

    /// Whether an end has got all that the other one sent, or never will.
    fn has_all(&self, at: usize) -> bool {
        let (end, other) = (&self.ends[at], &self.ends[at ^ 1]);
        let got = end.got + end.body.unwrap_or(0);
        let is_settled = end.gone || !end.detaching && got == other.sent;
        is_settled || other.gone && !end.detaching
    }
}
