//! The half of a link that pushes.

use std::collections::VecDeque;

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::link::arena::{Pin, Space, padded};
use crate::link::bounds::Bounds;
use crate::link::claim::Claim;
use crate::link::error::within;
use crate::link::placement::{Placement, Probe};
use crate::link::side::{ConsumerSide, ProducerSide};
use crate::link::stores::{self, STREAMED_FAR_BYTES_MIN, STREAMED_NEAR_BYTES_MIN, Stores};
use crate::link::watch::Watch;
use crate::link::words::{KIND_GAP, newest_of, slot_of};
use crate::link::{ClaimError, Corrupt, KIND_MAX, Letter, SMALL_BYTES_MAX};
use crate::sync::{Arc, Ordering};

/// Pushes messages. It may move between threads but not be shared by them.
///
/// Messages are committed one by one and published together by [`flush`](Producer::flush).
/// Dropping it tells the consumer nothing: that the process or the edge is gone is told by
/// whatever else connects them (see [`Consumer::set_peer_gone`](crate::link::Consumer::set_peer_gone)).
#[derive(Debug)]
pub struct Producer {
    pub(crate) side: ProducerSide,
    peer: Arc<ConsumerSide>,
    doorbell: Doorbell,
    bell: Bell,
    bounds: Bounds,
    space: Space,
    /// The next slot to write.
    tail: u64,
    /// What was written to the one before.
    last: u64,
    /// What the consumer may see: slots, and the position behind their messages.
    published: (u64, u64),
    /// The slots that the consumer has taken, as far as is known.
    head: u64,
    messages: u64,
    /// The slots in flight that are no message.
    gaps: VecDeque<u64>,
    letters: u64,
    /// Whether the consumer was told that there is no room.
    is_waiting: bool,
    /// Whether streaming stores must settle before the next publication.
    pub(crate) has_streamed: bool,
    stores: Stores,
    probe: Probe,
    /// Where the arena was written to when the consumer was looked at last.
    looked_at: u64,
    end: Option<ClaimError>,
}

/// The consumer is looked at when this part of the arena was written, though there is room: how
/// far it is decides how the next bytes are stored.
const LOOKS_PER_ARENA: u64 = 16;

impl Producer {
    pub(crate) fn new(
        side: ProducerSide,
        peer: ConsumerSide,
        bounds: Bounds,
        doorbell: Doorbell,
        bell: Bell,
    ) -> Self {
        Producer {
            space: Space::new(side.arena_bytes()),
            side,
            peer: Arc::new(peer),
            doorbell,
            bell,
            bounds,
            tail: 0,
            last: 0,
            published: (0, 0),
            head: 0,
            messages: 0,
            gaps: VecDeque::new(),
            letters: 0,
            is_waiting: false,
            has_streamed: false,
            stores: Stores::Auto,
            probe: Probe::default(),
            looked_at: 0,
            end: None,
        }
    }

    /// A place for a message of up to `len` bytes, in one piece that begins at a multiple of 64.
    /// What stands there before it is filled is of no meaning.
    ///
    /// # Errors
    ///
    /// [`ClaimError::Full`]: what was committed has been published; claim again when the bell of
    /// this half has rung. [`ClaimError::TooLarge`]: split the message. [`ClaimError::PeerGone`]
    /// and [`ClaimError::Corrupt`]: stop.
    #[inline]
    pub fn try_claim(&mut self, len: usize) -> Result<Claim<'_>, ClaimError> {
        if len > self.bounds.claim_max {
            let max_bytes = self.bounds.claim_max;
            return Err(ClaimError::TooLarge { max_bytes });
        }
        let gap = self.room(len, Lane::Data)?;
        Ok(Claim::new(self, gap, len))
    }

    /// Commits a message of at most [`SMALL_BYTES_MAX`] bytes, in order with the others but with
    /// room of its own: when claims find none there is still some for
    /// [`SMALL_QUEUED_MAX`](crate::link::SMALL_QUEUED_MAX) of these, unless leases lie there.
    ///
    /// # Errors
    ///
    /// As for [`try_claim`](Producer::try_claim), but never [`ClaimError::TooLarge`].
    ///
    /// # Panics
    ///
    /// If it is longer, or its kind is above [`KIND_MAX`].
    pub fn push_small(&mut self, kind: u32, bytes: &[u8]) -> Result<(), ClaimError> {
        assert!(
            bytes.len() <= SMALL_BYTES_MAX,
            "longer than a small message"
        );
        let gap = self.room(bytes.len(), Lane::Small)?;
        let mut claim = Claim::new(self, gap, bytes.len());
        claim.copy_from_slice(bytes);
        claim.commit(kind, bytes.len());
        Ok(())
    }

    /// Pushes a message beside the queue, so that the consumer may take it before those already
    /// queued, with the [`position`](Producer::position) of this moment. There is room for one.
    /// It is published at once, and what was committed before with it.
    ///
    /// # Errors
    ///
    /// As for [`push_small`](Producer::push_small), where full means that the last one was not
    /// taken yet.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn try_push_priority(&mut self, kind: u32, bytes: &[u8]) -> Result<(), ClaimError> {
        self.try_push_priority_at(kind, bytes, self.messages)
    }

    /// As [`try_push_priority`](Producer::try_push_priority), with the position that it is to
    /// have: for a producer whose own queue, of which this link is the end, was overtaken too.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there, and if the position was passed: what is queued has been pushed before this.
    pub fn try_push_priority_at(
        &mut self,
        kind: u32,
        bytes: &[u8],
        position: u64,
    ) -> Result<(), ClaimError> {
        assert!(
            bytes.len() <= SMALL_BYTES_MAX,
            "longer than a small message"
        );
        assert!(kind <= KIND_MAX, "a kind above the highest");
        assert!(position >= self.messages, "a position that was passed");
        self.check()?;
        if !self.is_letter_taken()? {
            return Err(self.full());
        }
        self.publish();
        self.letters += 1;
        let words = self.side.words();
        words.letter.write(kind, position, bytes);
        // Release pairs with the Acquire in `Consumer::has_letter`.
        words.letters.store(self.letters, Ordering::Release);
        self.doorbell.ring();
        Ok(())
    }

    /// Publishes what was committed, and wakes the consumer if it sleeps.
    #[inline]
    pub fn flush(&mut self) {
        if self.publish() {
            self.doorbell.ring();
            self.look_at_times();
        }
    }

    /// How many messages were ever committed: the position of the next one.
    #[inline]
    pub fn position(&self) -> u64 {
        self.messages
    }

    /// How many messages were committed and not popped, as far as the consumer has told: it does
    /// so for several together, and always at the end of its step.
    pub fn len(&mut self) -> usize {
        self.look();
        (self.tail - self.head) as usize - self.gaps.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// How many messages may be in flight, those in the room of small ones apart.
    pub fn messages_max(&self) -> usize {
        self.bounds.messages_max as usize
    }

    /// The bytes of the arena from the oldest message in flight to the next one.
    pub fn in_flight_bytes(&mut self) -> usize {
        self.look();
        self.space.in_flight()
    }

    /// The bytes of the largest message, see
    /// [`LinkConfig::claim_max_bytes`](crate::link::LinkConfig::claim_max_bytes).
    pub fn claim_max_bytes(&self) -> usize {
        self.bounds.claim_max
    }

    /// The size of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.side.arena_bytes()
    }

    /// Whether a claim of `len` bytes would not be [`ClaimError::Full`]: the last look of a
    /// producer that has armed its bell before it parks.
    pub fn has_room(&mut self, len: usize) -> bool {
        self.has_room_in(len, Lane::Data)
    }

    /// As [`has_room`](Producer::has_room), for [`push_small`](Producer::push_small).
    pub fn has_room_small(&mut self, len: usize) -> bool {
        self.has_room_in(len, Lane::Small)
    }

    /// Leaves word that this half waits for the consumer to take something, as a claim that found
    /// no room does: for a user with bounds of its own. It holds until the next claim.
    pub fn wait_for_room(&mut self) {
        self.flush();
        self.set_waiting(true);
    }

    /// Whether the consumer has said that it takes no more.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Acquire pairs with the Release in `Consumer::close`: the letter is there.
        self.peer.words().closed.load(Ordering::Acquire) != 0
    }

    /// Why the consumer takes no more, once it has said so. Pushing is still possible, in vain.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: drop the edge.
    pub fn closed(&mut self) -> Result<Option<Letter>, Corrupt> {
        match self.is_closed() {
            true => Letter::read(&self.peer.words().letter).map(Some),
            false => Ok(None),
        }
    }

    /// Looks at what the consumer does, for a thread that has not got this half.
    pub fn watch(&self) -> Watch {
        Watch::of_consumer(Arc::clone(&self.peer))
    }

    /// As [`has_room`](Producer::has_room), for
    /// [`try_push_priority`](Producer::try_push_priority).
    pub fn has_room_for_priority(&mut self) -> bool {
        self.end.is_some() || self.is_letter_taken().unwrap_or(true)
    }

    /// Says that the consumer's process is gone: every push is refused from now on.
    pub fn set_peer_gone(&mut self) {
        self.end.get_or_insert(ClaimError::PeerGone);
    }

    /// Whether the consumer's process is known to be gone.
    pub fn is_peer_gone(&self) -> bool {
        self.end == Some(ClaimError::PeerGone)
    }

    /// Sets how bytes are copied into the segment.
    pub fn set_stores(&mut self, stores: Stores) {
        self.stores = stores;
    }

    /// How far the core of the consumer is, as far as was measured on the way.
    pub fn placement(&self) -> Placement {
        self.probe.placement()
    }

    /// The bell that the consumer rings; the owner of this half parks on it.
    pub fn producer_bell(&self) -> &Bell {
        &self.bell
    }

    /// How many times this half woke the consumer: one system call each.
    pub fn rings_total(&self) -> u64 {
        self.doorbell.rings_total()
    }

    /// Whether so many bytes are to be copied with streaming stores.
    #[inline]
    pub(crate) fn streams(&self, len: usize) -> bool {
        match self.stores {
            Stores::Plain => false,
            Stores::Streaming => true,
            Stores::Auto if self.probe.placement() == Placement::Far => {
                len >= STREAMED_FAR_BYTES_MIN
            }
            Stores::Auto => {
                len >= STREAMED_NEAR_BYTES_MIN && self.space.arena_bytes <= stores::cache_bytes()
            }
        }
    }

    /// Whether the words of messages are to be stored past the caches: those of a link are read
    /// soon after, and the line that holds eight of them is the first to be taken back.
    #[inline]
    fn streams_words(&self) -> bool {
        match self.stores {
            Stores::Plain => false,
            Stores::Streaming => true,
            Stores::Auto => self.probe.placement() == Placement::Far,
        }
    }

    /// Where a message behind such a gap begins.
    #[inline]
    pub(crate) fn offset_behind(&self, gap: usize) -> usize {
        let mut place = self.space.write;
        place.advance(gap, self.space.arena_bytes);
        place.offset
    }

    /// Writes the word of a message that lies behind such a gap. Whoever claimed it knows that
    /// there is room.
    #[inline]
    pub(crate) fn commit(&mut self, gap: usize, kind: u32, len: usize) {
        if gap > 0 {
            self.gaps.push_back(self.tail);
            self.append(gap, KIND_GAP, gap);
        }
        self.append(padded(len), kind, len);
        self.messages += 1;
    }

    #[inline]
    fn append(&mut self, bytes: usize, kind: u32, len: usize) {
        let slot = self.side.slot(self.tail);
        self.last = slot_of(kind, len);
        if self.streams_words() {
            stores::stream_word(slot, self.last);
            self.has_streamed = true;
        } else {
            // Relaxed: the tail is published behind it.
            slot.store(self.last, Ordering::Relaxed);
        }
        self.tail += 1;
        self.space.write.advance(bytes, self.space.arena_bytes);
    }

    /// Gives all that was committed to the consumer. Returns whether there was any.
    #[inline]
    fn publish(&mut self) -> bool {
        if self.tail == self.published.0 {
            return false;
        }
        if self.has_streamed {
            self.has_streamed = false;
            stores::settle();
        }
        self.published = (self.tail, self.space.write.position);
        let newest = newest_of(self.tail, self.last);
        // Relaxed: whoever sees the tail sees this or a later one.
        self.side.words().newest.store(newest, Ordering::Relaxed);
        // Release pairs with the Acquire in `Consumer::refresh`.
        self.side.words().tail.store(self.tail, Ordering::Release);
        true
    }

    /// Looks at the consumer now and then, whether or not there is room.
    #[inline]
    fn look_at_times(&mut self) {
        let written = self.space.write.position - self.looked_at;
        let is_due = written >= self.space.arena_bytes as u64 / LOOKS_PER_ARENA;
        // A model has an arena of a few units, and would only try more orders of the same.
        if is_due && cfg!(not(loom)) {
            self.look();
        }
    }

    /// The gap before a message of so many bytes, if there is room for it.
    #[inline]
    fn room(&mut self, len: usize, lane: Lane) -> Result<usize, ClaimError> {
        self.check()?;
        let gap = match self.find(len, lane) {
            Some(gap) => gap,
            None => self.make_room(len, lane)?,
        };
        self.set_waiting(false);
        Ok(gap)
    }

    #[inline]
    fn find(&self, len: usize, lane: Lane) -> Option<usize> {
        let in_flight = self.tail - self.head;
        let (slots, reserve) = match lane {
            Lane::Data => (self.bounds.messages_max, self.bounds.reserve),
            // A gap may take one more.
            Lane::Small => (self.side.slots() - 1, 0),
        };
        if in_flight >= slots {
            return None;
        }
        self.space.place(len, reserve)
    }

    #[cold]
    fn make_room(&mut self, len: usize, lane: Lane) -> Result<usize, ClaimError> {
        self.look();
        self.check()?;
        match self.find(len, lane) {
            Some(gap) => Ok(gap),
            None => {
                // The consumer can't make room from what it doesn't see.
                self.flush();
                Err(self.full())
            }
        }
    }

    fn has_room_in(&mut self, len: usize, lane: Lane) -> bool {
        if self.end.is_some() || self.find(len, lane).is_some() {
            return true;
        }
        self.look();
        self.end.is_some() || self.find(len, lane).is_some()
    }

    fn full(&mut self) -> ClaimError {
        self.set_waiting(true);
        ClaimError::Full {
            free_bytes: self.space.unused(),
        }
    }

    /// Tells the consumer whether to ring when it gives back. Who waits arms its bell after
    /// this, and the barrier in there orders it before the last look for room. The word lies
    /// beside the tail, so it is not stored at every try.
    #[inline]
    fn set_waiting(&mut self, waiting: bool) {
        if waiting == self.is_waiting {
            return;
        }
        self.is_waiting = waiting;
        let words = self.side.words();
        words.waiting.store(waiting.into(), Ordering::Relaxed);
    }

    fn is_letter_taken(&mut self) -> Result<bool, ClaimError> {
        // Acquire pairs with the Release in `Consumer::take_priority`: the last one was read.
        let taken = self.peer.words().letters_taken.load(Ordering::Acquire);
        let field = "count of taken priority messages";
        let least = self.letters.saturating_sub(1);
        match within(field, taken, least, self.letters) {
            Ok(taken) => Ok(taken == self.letters),
            Err(corrupt) => Err(self.die(corrupt)),
        }
    }

    /// Looks where the consumer really is.
    fn look(&mut self) {
        if self.end.is_none()
            && let Err(corrupt) = self.try_look()
        {
            self.die(corrupt);
        }
    }

    fn try_look(&mut self) -> Result<(), Corrupt> {
        self.looked_at = self.space.write.position;
        let words = self.peer.words();
        let known = self.head;
        // Each Acquire pairs with the Release of the same word in `Consumer::give_back`. The
        // order of the three is the reverse of there: a pin is at least as new as what was freed.
        let load = || words.head.load(Ordering::Acquire);
        let head = self.probe.measure(load, |head| *head != known);
        let freed = words.freed.load(Ordering::Acquire);
        let pin = words.pin.load(Ordering::Acquire);
        within("count of taken slots", head, known, self.published.0)?;
        within(
            "freed position",
            freed,
            self.space.freed(),
            self.published.1,
        )?;
        let pin = Pin::from_word(pin, self.space.arena_bytes)?;
        self.head = head;
        self.space.free(freed, pin);
        while self.gaps.front().is_some_and(|gap| *gap < head) {
            self.gaps.pop_front();
        }
        Ok(())
    }

    #[inline]
    fn check(&self) -> Result<(), ClaimError> {
        match self.end {
            None => Ok(()),
            Some(end) => Err(end),
        }
    }

    #[cold]
    fn die(&mut self, corrupt: Corrupt) -> ClaimError {
        *self.end.insert(ClaimError::Corrupt(corrupt))
    }
}

/// What bounds a message.
#[derive(Clone, Copy)]
enum Lane {
    Data,
    Small,
}
