//! Two endpoints and the links between them, in virtual time.

use std::time::Duration;

use ringway_netio::session::{
    HangUp, LITTLE_GRANT_AFTER, Mode, ReceiverOptions, SenderOptions, SenderSession,
};

use crate::ends::{Element, ReceiverEnd, push, transmit};
use crate::link::{Arrival, CALM, Link, Weather};
use crate::seed::Seeded;

pub(crate) struct Pair {
    pub(crate) now: Duration,
    pub(crate) sender: SenderSession<Vec<u8>>,
    pub(crate) receiver: ReceiverEnd,
    pub(crate) forward: Link,
    pub(crate) backward: Link,
    pub(crate) weather: Weather,
    /// What waits until the sender takes it.
    pub(crate) to_push: std::collections::VecDeque<Element>,
    /// How many elements the consumer takes a turn.
    pub(crate) appetite: usize,
    /// Whether the sender puts fillers behind what it sends, where it may.
    pub(crate) fills: bool,
    pub(crate) seeded: Seeded,
    has_schema: bool,
}

impl Pair {
    pub(crate) fn new(sender: SenderOptions, receiver: ReceiverOptions, seeded: Seeded) -> Self {
        Self {
            now: Duration::ZERO,
            sender: SenderSession::new(sender, Duration::ZERO),
            receiver: ReceiverEnd::new(receiver),
            forward: Link::default(),
            backward: Link::default(),
            weather: CALM,
            to_push: Default::default(),
            appetite: usize::MAX,
            fills: false,
            seeded,
            has_schema: false,
        }
    }

    /// A pair of default options over calm links.
    pub(crate) fn calm() -> Self {
        Self::new(
            SenderOptions::default(),
            ReceiverOptions::default(),
            Seeded::from_seed(1),
        )
    }

    /// Runs until nothing happens any more, or a session waits for more time to pass than a grant
    /// of little takes.
    pub(crate) fn drive(&mut self) {
        for _ in 0..2_000_000 {
            if self.turn() {
                continue;
            }
            let arrivals = [self.forward.next_at(), self.backward.next_at()];
            let is_over = self.receiver.session.end().is_some();
            let deaf = !self.receiver.wants_bytes() && !is_over;
            let forward = arrivals[0].filter(|_| !deaf);
            let next = forward.into_iter().chain(arrivals[1]).min();
            let Some(at) = next.into_iter().chain(self.little_at()).min() else {
                return;
            };
            self.now = self.now.max(at);
            self.receiver.session.handle_timeout(self.now);
        }
        panic!("the two never come to rest");
    }

    /// When the receiver grants what little was taken.
    fn little_at(&mut self) -> Option<Duration> {
        self.receiver.session.handle_timeout(self.now);
        let timeout = self.receiver.session.poll_timeout();
        timeout.filter(|at| *at <= self.now + LITTLE_GRANT_AFTER)
    }

    /// Lets time pass to the next timeout of a session, and says whether there was one.
    pub(crate) fn time_out(&mut self) -> bool {
        let timeouts = [
            self.sender.poll_timeout(),
            self.receiver.session.poll_timeout(),
        ];
        let Some(at) = timeouts.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(at);
        self.sender.handle_timeout(self.now);
        self.receiver.session.handle_timeout(self.now);
        true
    }

    /// One turn of both drivers and users. False if nothing happened.
    fn turn(&mut self) -> bool {
        let mut worked = self.push_some();
        worked |= self.transmit_both();
        worked |= self.hang_up_both();
        worked |= self.deliver();
        worked | (self.receiver.take(self.now, self.appetite) > 0)
    }

    fn push_some(&mut self) -> bool {
        let mut worked = false;
        while let Some(element) = self.to_push.front() {
            let needs_schema = matches!(element, Element::Batch(_)) && !self.has_schema;
            if needs_schema && matches!(self.sender.mode(), Mode::Negotiated(_)) {
                self.has_schema = self.sender.push_schema(b"schema".to_vec(), 6).is_ok();
                if !self.has_schema {
                    break;
                }
            }
            if !push(&mut self.sender, element) {
                break;
            }
            self.to_push.pop_front();
            worked = true;
        }
        worked
    }

    fn transmit_both(&mut self) -> bool {
        let mut forward = transmit(&mut self.sender);
        if self.fills && !forward.is_empty() {
            self.sender.fill(&mut forward);
        }
        let backward = self.receiver.transmit();
        let (now, weather) = (self.now, self.weather);
        self.forward.send(now, &forward, weather, &mut self.seeded);
        if !self.backward.is_shut {
            self.backward
                .send(now, &backward, weather, &mut self.seeded);
        }
        !forward.is_empty() || !backward.is_empty()
    }

    fn hang_up_both(&mut self) -> bool {
        let (now, weather) = (self.now, self.weather);
        let sender = self.sender.poll_hang_up();
        if sender.is_some() {
            self.forward.shut(now, weather, &mut self.seeded);
        }
        let receiver = self.receiver.session.poll_hang_up();
        if receiver == Some(HangUp::Both) {
            self.backward.shut(now, weather, &mut self.seeded);
        }
        sender.is_some() || receiver.is_some()
    }

    fn deliver(&mut self) -> bool {
        let mut worked = false;
        if self.receiver.wants_bytes() || self.receiver.session.end().is_some() {
            match self.forward.receive(self.now) {
                Some(Arrival::Bytes(bytes)) => self.receiver.receive(self.now, &bytes),
                Some(Arrival::Fin) => self.receiver.session.handle_eof(),
                None => worked = true,
            }
            worked = !worked;
        }
        if self.forward.is_shut && self.forward.is_empty() && !self.forward.is_cut {
            self.sender.handle_delivered();
        }
        match self.backward.receive(self.now) {
            Some(Arrival::Bytes(bytes)) => self.sender.handle_input(self.now, &bytes),
            Some(Arrival::Fin) => self.sender.handle_eof(self.now),
            None => return worked,
        }
        true
    }
}
