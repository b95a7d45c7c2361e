//! Random operations on a link against a naive queue that copies everything.
//!
//! Each test prints its seed; `RINGWAY_SEED` replays it.

mod common;

use std::collections::VecDeque;

use common::{Random, content, pair};
use ringway_shm::link::{ClaimError, Consumer, Lease, LinkConfig, PopError, Producer, Stores};

/// A link beside the queue that it must behave as.
struct Both {
    producer: Producer,
    consumer: Consumer,
    /// Number, kind and length of each message that was committed and not popped.
    queued: VecDeque<(u64, u32, usize)>,
    pushed: u64,
    /// How many of them were flushed.
    visible: u64,
    popped: u64,
    letter: Option<(u64, u64)>,
    letters: u64,
    leases: Vec<(u64, usize, Lease)>,
    /// Fewer than this are dropped at a time: the fewer, the longer they lie in the way.
    drops_max: u64,
    seen: Seen,
}

/// How often there was what a link does in different ways.
#[derive(Debug, Default)]
struct Seen {
    alone: u64,
    together: u64,
    queued_gaps: u64,
    refused_leases: u64,
}

impl Both {
    fn new(random: &mut Random, drops_max: u64) -> Both {
        let config = LinkConfig {
            arena_bytes: (random.below(4) as usize) << 18,
            messages_max: 1 + random.below(100) as usize,
            ..LinkConfig::default()
        };
        let (mut producer, consumer) = pair(&config);
        if random.below(2) == 0 {
            producer.set_stores(Stores::Streaming);
        }
        Both {
            producer,
            consumer,
            queued: VecDeque::new(),
            pushed: 0,
            visible: 0,
            popped: 0,
            letter: None,
            letters: 0,
            leases: Vec::new(),
            drops_max,
            seen: Seen::default(),
        }
    }

    /// One operation of any kind, and what follows from it checked.
    fn step(&mut self, random: &mut Random) {
        match random.below(16) {
            0..5 => self.push(random),
            5 => self.push_small(random),
            6 => self.flush_producer(),
            7..11 => self.pop(random.below(2) == 0),
            11 => self.consumer.flush(),
            12 => self.drop_leases(random),
            13 => self.priority(random.below(2) == 0),
            14 => self.peek(random),
            _ => self.compare(),
        }
    }

    fn push(&mut self, random: &mut Random) {
        let most = self.producer.claim_max_bytes() as u64;
        let len = match random.below(4) {
            0 => random.below(most + 1),
            1 => random.below(5000),
            _ => random.below(200),
        } as usize;
        let has_room = self.producer.has_room(len);
        let mut claim = match self.producer.try_claim(len) {
            Ok(claim) => claim,
            Err(ClaimError::Full { .. }) => {
                assert!(!has_room);
                // It was published, to be room one day.
                self.visible = self.pushed;
                return;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(has_room);
        if random.below(10) == 0 {
            return;
        }
        let committed = random.below(len as u64 + 1) as usize;
        claim.append(&content(self.pushed, committed));
        let kind = random.below(1000) as u32;
        claim.commit(kind, committed);
        self.committed(kind, committed);
    }

    fn push_small(&mut self, random: &mut Random) {
        let (kind, len) = (random.below(9) as u32, random.below(257) as usize);
        match self.producer.push_small(kind, &content(self.pushed, len)) {
            Ok(()) => self.committed(kind, len),
            Err(full) => {
                assert!(matches!(full, ClaimError::Full { .. }), "{full}");
                self.visible = self.pushed;
                // What was popped and leases that were dropped count until they are told of.
                self.consumer.flush();
                let has_room = self.producer.has_room_small(len);
                assert!(has_room || self.queued.len() > 255 || !self.leases.is_empty());
            }
        }
    }

    fn committed(&mut self, kind: u32, len: usize) {
        self.queued.push_back((self.pushed, kind, len));
        self.pushed += 1;
        assert_eq!(self.producer.position(), self.pushed);
    }

    fn flush_producer(&mut self) {
        self.producer.flush();
        match self.pushed - self.visible {
            0 => {}
            1 => self.seen.alone += 1,
            _ => self.seen.together += 1,
        }
        self.visible = self.pushed;
    }

    fn pop(&mut self, keep: bool) {
        let expected = (self.popped < self.visible)
            .then(|| self.queued.pop_front())
            .flatten();
        let (message, (number, kind, len)) = match (self.consumer.try_pop(), expected) {
            (Ok(message), Some(expected)) => (message, expected),
            (Err(PopError::Empty), None) => return,
            other => panic!("{other:?}"),
        };
        self.popped += 1;
        assert_eq!((message.position(), message.kind()), (number, kind));
        assert_eq!(message.bytes(), content(number, len));
        if keep {
            match message.lease() {
                Ok(lease) => self.leases.push((number, len, lease)),
                Err(message) => {
                    assert_eq!(message.bytes(), content(number, len));
                    self.seen.refused_leases += 1;
                }
            }
        }
    }

    fn drop_leases(&mut self, random: &mut Random) {
        for _ in 0..random.below(self.drops_max) {
            if !self.leases.is_empty() {
                let index = random.below(self.leases.len() as u64) as usize;
                let (number, len, lease) = self.leases.swap_remove(index);
                assert_eq!(lease.as_ref(), content(number, len));
            }
        }
    }

    fn priority(&mut self, put: bool) {
        if put {
            let put = self
                .producer
                .try_push_priority(3, &content(self.letters, 100));
            assert_eq!(put.is_ok(), self.letter.is_none());
            if put.is_ok() {
                self.letter = Some((self.letters, self.pushed));
                self.letters += 1;
                self.visible = self.pushed;
            }
            return;
        }
        let position = self.letter.map(|(_, position)| position);
        assert_eq!(self.consumer.peek_priority(), Ok(position));
        let taken = self.consumer.take_priority().unwrap();
        assert_eq!(taken.is_some(), self.letter.is_some());
        if let (Some(taken), Some((number, position))) = (taken, self.letter.take()) {
            assert_eq!((taken.kind, taken.position), (3, position));
            assert_eq!(taken.bytes(), content(number, 100));
        }
    }

    fn peek(&mut self, random: &mut Random) {
        let until = self.popped + random.below(6);
        let end = until.min(self.visible);
        let peeked: Vec<_> = self
            .consumer
            .peek_until(until)
            .map(Result::unwrap)
            .collect();
        assert_eq!(peeked.len() as u64, end.saturating_sub(self.popped));
        for (peeked, (number, kind, len)) in peeked.iter().zip(&self.queued) {
            assert_eq!((peeked.position, peeked.kind), (*number, *kind));
            assert_eq!(peeked.bytes, content(*number, *len));
        }
    }

    fn compare(&mut self) {
        assert_eq!(self.consumer.position(), self.popped);
        // Each gap is counted as one.
        let gaps = (self.consumer.len() as u64).checked_sub(self.visible - self.popped);
        self.seen.queued_gaps += gaps.unwrap();
        self.consumer.flush();
        assert_eq!(self.producer.len(), self.queued.len());
        assert_eq!(self.consumer.leases(), self.leases.len());
        assert!(self.consumer.leased_bytes() <= self.consumer.arena_bytes() / 2);
        assert!(self.producer.in_flight_bytes() <= self.producer.arena_bytes());
        let ready = self.visible > self.popped || self.letter.is_some();
        assert_eq!(self.consumer.is_ready(), ready);
    }

    /// All that is queued comes out, and then the largest message has room whatever is leased.
    fn end(mut self) -> Seen {
        self.flush_producer();
        while !self.queued.is_empty() {
            self.pop(false);
        }
        self.pop(false);
        assert!(self.producer.has_room(self.producer.claim_max_bytes()));
        drop((self.producer, self.consumer));
        for (number, len, lease) in self.leases {
            assert_eq!(lease.as_ref(), content(number, len));
        }
        self.seen
    }
}

#[test]
fn every_operation_agrees_with_a_queue_that_copies() {
    let mut random = Random::new();
    let mut all = Seen::default();
    for run in 0..40 {
        let mut both = Both::new(&mut random, 1 + run % 12);
        for _ in 0..1500 {
            both.step(&mut random);
        }
        let seen = both.end();
        all.alone += seen.alone;
        all.together += seen.together;
        all.queued_gaps += seen.queued_gaps;
        all.refused_leases += seen.refused_leases;
    }
    // A model that misses one of them says nothing of it.
    println!("{all:?}");
    let least = [all.alone, all.together, all.queued_gaps, all.refused_leases];
    assert!(least.iter().min() > Some(&20), "{all:?}");
}
