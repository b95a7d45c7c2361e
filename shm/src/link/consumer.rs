//! The half of a link that pops.

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::link::arena::Pin;
use crate::link::bounds::{Bounds, UNIT_BYTES};
use crate::link::error::within;
use crate::link::leases::Leases;
#[cfg(not(loom))]
use crate::link::peek::Peek;
use crate::link::side::{ConsumerSide, ProducerSide};
use crate::link::walk::{Limits, Walk};
use crate::link::watch::Watch;
use crate::link::{Corrupt, KIND_MAX, Letter, Message, PopError, SMALL_BYTES_MAX};
use crate::sync::{Arc, Ordering};

/// Slots are given back together when this many have been popped, since each time costs the
/// producer, if it looks for room, the line that the consumer writes.
const LAG_MAX: u64 = 16;

/// A link of fewer slots than this for each of them gives them back sooner.
const SLOTS_PER_LAG: u64 = 64;

/// So many messages ahead of the one that is popped their bytes are asked for, as if they were
/// small: one after the other they would take as many times the way between two caches.
const AHEAD: u64 = 8;

/// The space of large messages is given back when it amounts to this part of the arena.
const ARENA_PER_LAG: u64 = 16;

/// Pops messages. It may move between threads but not be shared by them.
///
/// What was popped is given back to the producer some messages later, and by
/// [`flush`](Consumer::flush) at once.
#[derive(Debug)]
pub struct Consumer {
    pub(crate) side: Arc<ProducerSide>,
    own: ConsumerSide,
    doorbell: Doorbell,
    bell: Bell,
    bounds: Bounds,
    pub(crate) walk: Walk,
    /// The slots that the producer has published, as far as is known.
    pub(crate) tail: u64,
    /// What the producer said of the last of them.
    pub(crate) newest: u64,
    given_back: GivenBack,
    pub(crate) leases: Leases,
    letters_taken: u64,
    is_peer_gone: bool,
    corrupt: Option<Corrupt>,
}

/// What the producer may see of the consumer.
#[derive(Clone, Copy, Debug, Default)]
struct GivenBack {
    slots: u64,
    position: u64,
    pin: Pin,
}

impl Consumer {
    pub(crate) fn new(
        side: Arc<ProducerSide>,
        own: ConsumerSide,
        bounds: Bounds,
        doorbell: Doorbell,
        bell: Bell,
    ) -> Self {
        Consumer {
            leases: Leases::new(side.clone(), side.arena_bytes()),
            side,
            own,
            doorbell,
            bell,
            bounds,
            walk: Walk::default(),
            tail: 0,
            newest: 0,
            given_back: GivenBack::default(),
            letters_taken: 0,
            is_peer_gone: false,
            corrupt: None,
        }
    }

    /// Pops the oldest message. Its space is given back later, unless it is
    /// [leased](Message::lease).
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`]: pop again when the bell of this half has rung; also the answer while
    /// the producer is gone but a priority message still waits. [`PopError::PeerGone`] and
    /// [`PopError::Corrupt`]: nothing comes any more.
    #[inline]
    pub fn try_pop(&mut self) -> Result<Message<'_>, PopError> {
        if self.walk.slot == self.tail {
            self.refill()?;
        } else if self.lags() {
            self.give_back();
        }
        if self.tail - self.walk.slot > AHEAD {
            self.side
                .prefetch(self.walk.place.offset + AHEAD as usize * UNIT_BYTES);
        }
        let limits = self.limits();
        match self.walk.step(&self.side, &limits) {
            Ok(found) => Ok(Message::new(self, found)),
            Err(corrupt) => Err(self.die(corrupt).into()),
        }
    }

    /// Looks at the queued messages before `position` without taking them; those not pushed yet
    /// are not waited for.
    #[cfg(not(loom))]
    pub fn peek_until(&mut self, position: u64) -> Peek<'_> {
        let failed = self.refresh().err();
        Peek::new(self, position, failed)
    }

    /// Takes the message that was pushed beside the queue.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: drop the edge.
    pub fn take_priority(&mut self) -> Result<Option<Letter>, Corrupt> {
        if !self.has_letter()? {
            return Ok(None);
        }
        let letter = Letter::read(&self.side.words().letter).map_err(|found| self.die(found))?;
        self.letters_taken += 1;
        let words = self.own.words();
        // Release pairs with the Acquire in `Producer::try_push_priority`: the letter was read.
        words
            .letters_taken
            .store(self.letters_taken, Ordering::Release);
        self.wake();
        Ok(Some(letter))
    }

    /// The position of the message that waits beside the queue.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: drop the edge.
    pub fn peek_priority(&mut self) -> Result<Option<u64>, Corrupt> {
        let waits = self.has_letter()?;
        Ok(waits.then(|| self.side.words().letter.position()))
    }

    /// Gives the space of what was popped, and of leases that were dropped, back to the producer,
    /// and wakes it if it waits for some. To be called at the end of each step.
    #[inline]
    pub fn flush(&mut self) {
        self.give_back();
    }

    /// How many messages were ever popped: the position of the next one.
    #[inline]
    pub fn position(&self) -> u64 {
        self.walk.message
    }

    /// How many messages are queued. The producer may be pushing more meanwhile. Where messages
    /// go around leases it is a bit more than the truth.
    pub fn len(&mut self) -> usize {
        // An error is told by the next pop.
        let _ = self.refresh();
        (self.tail - self.walk.slot) as usize
    }

    /// Whether nothing is queued.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// The part of the arena that leases keep from being used, in bytes: all that lies between
    /// the first and the last of them. At most half of the arena.
    pub fn leased_bytes(&mut self) -> usize {
        self.leases.collect();
        self.leases.arc().len
    }

    /// How many leases are held.
    pub fn leases(&self) -> usize {
        self.leases.count()
    }

    /// The size of the producer's arena.
    pub fn arena_bytes(&self) -> usize {
        self.side.arena_bytes()
    }

    /// Whether there is anything to take or to learn: the last look of a consumer that has armed
    /// its bell before it parks.
    pub fn is_ready(&mut self) -> bool {
        let queued = self.refresh();
        self.is_peer_gone || queued.unwrap_or(true) || self.has_letter().unwrap_or(true)
    }

    /// Says that this half takes no more, and why. Only the first call does anything.
    ///
    /// # Panics
    ///
    /// If the reason is longer than [`SMALL_BYTES_MAX`], or its kind is above [`KIND_MAX`].
    pub fn close(&mut self, kind: u32, bytes: &[u8]) {
        assert!(
            bytes.len() <= SMALL_BYTES_MAX,
            "longer than a small message"
        );
        assert!(kind <= KIND_MAX, "a kind above the highest");
        let words = self.own.words();
        if words.closed.load(Ordering::Relaxed) != 0 {
            return;
        }
        words.letter.write(kind, self.walk.message, bytes);
        // Release pairs with the Acquire in `Producer::is_closed`.
        words.closed.store(1, Ordering::Release);
        self.doorbell.ring();
    }

    /// Looks at what the producer does, for a thread that has not got this half.
    pub fn watch(&self) -> Watch {
        Watch::of_producer(self.side.clone())
    }

    /// Says that the producer's process is gone. What it has published is still popped.
    pub fn set_peer_gone(&mut self) {
        self.is_peer_gone = true;
    }

    /// Whether the producer's process is known to be gone.
    pub fn is_peer_gone(&self) -> bool {
        self.is_peer_gone
    }

    /// The bell that the producer rings; the owner of this half parks on it.
    pub fn consumer_bell(&self) -> &Bell {
        &self.bell
    }

    /// How many times this half woke the producer: one system call each.
    pub fn rings_total(&self) -> u64 {
        self.doorbell.rings_total()
    }

    /// How far a reader may go.
    #[inline]
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            tail: self.tail,
            end: self.given_back.position + self.side.arena_bytes() as u64,
            claim_max: self.bounds.claim_max,
            newest: self.newest,
        }
    }

    /// Notes that the producer's memory is not to be believed. Nothing of it is read any more.
    #[cold]
    pub(crate) fn die(&mut self, corrupt: Corrupt) -> Corrupt {
        self.tail = self.walk.slot;
        *self.corrupt.get_or_insert(corrupt)
    }

    /// Looks where the producer really is. Returns whether anything is queued.
    #[inline]
    fn refresh(&mut self) -> Result<bool, Corrupt> {
        if let Some(corrupt) = self.corrupt {
            return Err(corrupt);
        }
        // Acquire pairs with the Release in `Producer::publish`.
        let tail = self.side.words().tail.load(Ordering::Acquire);
        if tail != self.tail {
            let most = self.given_back.slots + self.side.slots();
            match within("count of published slots", tail, self.tail, most) {
                Ok(tail) => {
                    self.tail = tail;
                    // Relaxed: it is of this tail, or of a later one whose slots are not looked
                    // at before that was loaded too.
                    self.newest = self.side.words().newest.load(Ordering::Relaxed);
                }
                Err(corrupt) => return Err(self.die(corrupt)),
            }
        }
        Ok(self.tail != self.walk.slot)
    }

    /// Finds out why nothing is known to be queued. What was popped is given back now: the
    /// consumer may not come again for long.
    fn refill(&mut self) -> Result<(), PopError> {
        self.give_back();
        if self.refresh()? {
            // The words of the messages and, if these are small, their bytes are fetched together.
            let queued = (self.tail - self.walk.slot).min(AHEAD + 1) as usize;
            for line in 0..queued {
                self.side
                    .prefetch(self.walk.place.offset + line * UNIT_BYTES);
            }
            return Ok(());
        }
        // That the producer is gone was said before this look, so nothing came after it.
        if self.is_peer_gone && !self.has_letter()? {
            return Err(PopError::PeerGone);
        }
        Err(PopError::Empty)
    }

    fn has_letter(&mut self) -> Result<bool, Corrupt> {
        if let Some(corrupt) = self.corrupt {
            return Err(corrupt);
        }
        // Acquire pairs with the Release in `Producer::try_push_priority_at`.
        let letters = self.side.words().letters.load(Ordering::Acquire);
        let taken = self.letters_taken;
        match within("count of priority messages", letters, taken, taken + 1) {
            Ok(letters) => Ok(letters != taken),
            Err(corrupt) => Err(self.die(corrupt)),
        }
    }

    /// Whether so much was popped that the producer should know.
    #[inline]
    fn lags(&self) -> bool {
        let slots = self.walk.slot - self.given_back.slots;
        let bytes = self.walk.place.position - self.given_back.position;
        slots >= (self.side.slots() / SLOTS_PER_LAG).clamp(1, LAG_MAX)
            || bytes >= self.side.arena_bytes() as u64 / ARENA_PER_LAG
    }

    /// Tells the producer what it may use again. No message that was popped is borrowed now, and
    /// those that are leased are told of.
    #[inline]
    fn give_back(&mut self) {
        self.leases.collect();
        let now = GivenBack {
            slots: self.walk.slot,
            position: self.walk.place.position,
            pin: self.leases.arc(),
        };
        let last = self.given_back;
        if now.slots == last.slots && now.pin == last.pin {
            return;
        }
        self.given_back = now;
        let words = self.own.words();
        // Each Release pairs with the Acquire of the same word in `Producer::try_look`. The pin
        // is first, so that whoever sees what was freed sees what leases keep of it.
        words.pin.store(now.pin.to_word(), Ordering::Release);
        words.freed.store(now.position, Ordering::Release);
        words.head.store(now.slots, Ordering::Release);
        self.wake();
    }

    /// Wakes the producer if it sleeps and waits for this half.
    #[inline]
    fn wake(&mut self) {
        // Relaxed: the producer has stored it before it announced its sleep, and that was seen.
        if self.doorbell.is_armed() && self.side.words().waiting.load(Ordering::Relaxed) != 0 {
            self.doorbell.wake();
        }
    }
}
