//! Random stories: whatever is asked for in whatever order, nothing is lost.

use std::collections::VecDeque;

use bytes::Bytes;
use ringway_netio::driver::Driver;

use crate::kit::{End, Kit};
use crate::pattern;
use crate::seed::Seeded;
use crate::worlds::World;

crate::promises![whatever_is_asked_in_whatever_order_nothing_is_lost];

const CONNECTIONS: usize = 12;

/// One stream from a sender to a receiver that moves between drivers.
struct Story {
    stream: u64,
    near: End,
    far: End,
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Bytes that came at drivers which the receiver has left.
    before: usize,
    /// Bodies that were asked for at this driver.
    bodies: usize,
    detaching: bool,
}

fn whatever_is_asked_in_whatever_order_nothing_is_lost<W: World>() {
    let mut seeded = Seeded::new();
    let mut kit = Kit::<W>::new(3);
    let mut stories: Vec<Story> = (0..CONNECTIONS as u64)
        .map(|stream| Story::begin(stream, &mut kit, &mut seeded))
        .collect();
    kit.until("every story has ended", |kit| {
        for story in &mut stories {
            story.go_on(kit, &mut seeded);
        }
        stories.iter().all(|story| story.has_ended(kit))
    });
    for Story { near, far, .. } in stories {
        kit.close(near);
        kit.close(far);
    }
    kit.linger();
}

impl Story {
    fn begin<W: World>(stream: u64, kit: &mut Kit<W>, seeded: &mut Seeded) -> Self {
        let (near, far) = kit.connection(0, 1);
        kit.expect(far, stream, 0);
        let longest = 1 << seeded.below(18);
        let lengths: Vec<usize> = (0..seeded.below(100))
            .map(|_| seeded.below(longest) as usize)
            .collect();
        Self {
            stream,
            near,
            far,
            bytes: lengths.iter().sum(),
            queue: pattern::segments(stream, &lengths),
            before: 0,
            bodies: 0,
            detaching: false,
        }
    }

    fn go_on<W: World>(&mut self, kit: &mut Kit<W>, seeded: &mut Seeded) {
        self.send(kit);
        if self.has_ended(kit) {
            return;
        }
        if self.detaching {
            self.move_on(kit, seeded);
            return;
        }
        let received = self.before + kit.record(self.far).received;
        let under_way = self.bodies > kit.record(self.far).bodies.len();
        match seeded.below(20) {
            0 => kit.read(self.far, false),
            1..4 => kit.read(self.far, true),
            4 if !under_way && received < self.bytes => {
                let longest = (self.bytes - received) as u64;
                kit.read_body(self.far, 1 + seeded.below(longest) as usize);
                self.bodies += 1;
            }
            5 if seeded.below(5) == 0 => {
                kit.driver(self.far).detach(self.far.id);
                self.detaching = true;
            }
            _ => {}
        }
    }

    fn send<W: World>(&mut self, kit: &mut Kit<W>) {
        while let Some(first) = self.queue.front()
            && first.is_empty()
        {
            self.queue.pop_front();
        }
        if !self.queue.is_empty() {
            kit.send(self.near, &mut self.queue);
        } else {
            kit.driver(self.near).shutdown_write(self.near.id);
        }
    }

    /// Goes to another driver, once the one before has let go.
    fn move_on<W: World>(&mut self, kit: &mut Kit<W>, seeded: &mut Seeded) {
        let record = kit.record(self.far);
        let Some(socket) = record.detached.take() else {
            return;
        };
        self.before += record.received;
        self.far = kit.attach(1 + seeded.below(2) as usize, socket);
        kit.expect(self.far, self.stream, self.before);
        self.bodies = 0;
        self.detaching = false;
    }

    fn has_ended<W: World>(&self, kit: &mut Kit<W>) -> bool {
        let record = kit.record(self.far);
        if record.eof {
            assert_eq!(self.before + record.received, self.bytes);
        }
        record.eof && !self.detaching
    }
}
