//! Elements into a link.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use ringway_netio::credit::Piece;
use ringway_shm::Bell;
use ringway_shm::link::{Claim, ClaimError, Producer};

use super::entry::{
    Small, kind_of_part, kind_of_region, message_of_ending, rejection_of, small_of,
    small_of_barrier,
};
use super::parts::{Leaving, too_large};
use crate::batch::Payload;
use crate::edge::remote::{Names, RemoteStats};
use crate::edge::{EdgeOptions, Ending, FailureKind, RejectReason, Rejected};
use crate::element::{Barrier, StreamElement};
use crate::limits::{BATCH_ROWS_MAX, CONTROL_ELEMENTS_MAX, WIRE_BATCH_ROWS_MAX};
use crate::wire::region::{RegionEncoder, RegionOut};
use crate::wire::{PayloadCodec, Pieces, guarded};

/// What a batch takes beyond its own bytes, as far as that can be guessed before it is laid out.
const MORE_BYTES: usize = 8 << 10;

/// When so many bytes were written since the receiver last saw any, it sees them without a flush:
/// it reads them from a cache while the next ones are written, and neither waits for the other.
const UNSEEN_BYTES_MAX: usize = 64 << 10;

/// Why the peer is gone, as soon as its connection is over. Whoever watches that writes it.
pub(in crate::edge) type Gone = Arc<OnceLock<Option<String>>>;

/// The inner end of a sender: encodes elements straight into the segment.
///
/// It is with the half of the user, who pushes without a way in between. What the user has
/// handed over and has no room yet (the rest of a batch that is larger than the segment takes at
/// a time, the end behind it) goes on without the user: then the thread of the edge's connection
/// has it.
pub(in crate::edge) struct Outlet<B: Payload> {
    /// Only looking at how much is queued needs no exclusive reference to the rest.
    producer: RefCell<Producer>,
    encoder: RegionEncoder,
    codec: Arc<dyn PayloadCodec<B>>,
    edge: EdgeOptions,
    names: Names,
    gone: Gone,
    /// The largest region that the receiver puts together.
    region_bytes_max: usize,
    /// Data that the receiver had not taken when it was looked last: the position behind each,
    /// and its bytes.
    in_flight: VecDeque<(u64, usize)>,
    in_flight_bytes: usize,
    /// What the receiver had taken then, of all messages.
    taken: u64,
    /// What is left of the last batch.
    pending: Option<Pending>,
    failed: Option<RejectReason>,
    /// Bytes that the last batch needed which found no room: more than was guessed.
    needed_bytes: usize,
    /// Bytes that the receiver does not see yet.
    unseen_bytes: usize,
    /// Rings for the thread of the connection, where the user does not wait for the same bell.
    relays: Option<Bell>,
    stats: RemoteStats,
}

/// Pieces of a batch that wait for room.
struct Pending {
    pieces: Pieces,
    /// Pieces that were too large after all, the next one last.
    halves: Vec<RecordBatch>,
    /// A row that goes in parts, before them.
    row: Option<Leaving>,
    /// Bytes of the whole batch.
    bytes: usize,
    stamp: u64,
}

/// When the receiver sees what is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Before the half is done with it: what is left to do then delays nobody.
    AtOnce,
    /// With the next flush, or sooner.
    Later,
}

/// What became of a batch.
enum Written {
    Yes,
    Full,
    TooLarge,
}

struct Room<'a>(Claim<'a>);

impl RegionOut for Room<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.0.append(bytes);
    }

    fn pad(&mut self, bytes: usize) {
        self.0.append_zeroes(bytes);
    }
}

impl<B: Payload> Outlet<B> {
    pub(in crate::edge) fn new(
        producer: Producer,
        codec: Arc<dyn PayloadCodec<B>>,
        edge: EdgeOptions,
        names: Names,
        gone: Gone,
        region_bytes_max: u32,
    ) -> Self {
        Self {
            producer: RefCell::new(producer),
            encoder: RegionEncoder::new(),
            codec,
            edge,
            names,
            gone,
            region_bytes_max: region_bytes_max as usize,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            taken: 0,
            pending: None,
            failed: None,
            needed_bytes: 0,
            unseen_bytes: 0,
            relays: None,
            stats: RemoteStats::default(),
        }
    }

    /// The user does not wait for the bell that the receiver rings, but for another one that the
    /// thread of the connection rings in turn.
    pub(in crate::edge) fn set_relayed_by(&mut self, links: &Bell) {
        self.relays = Some(links.clone());
    }

    /// Takes an element if there is room for it. It is seen by the receiver at the next
    /// [`flush`](Self::flush), or sooner.
    pub(in crate::edge) fn push(
        &mut self,
        element: StreamElement<B>,
        stamp: u64,
    ) -> Result<(), Rejected<B>> {
        let bytes = match &element {
            StreamElement::Data(batch) => batch.bytes(),
            _ => 0,
        };
        self.push_sized(element, bytes, stamp, Seen::Later)
    }

    /// As [`push`](Self::push), of an element whose [`bytes`](Payload::bytes) are these, if it is
    /// data.
    pub(super) fn push_sized(
        &mut self,
        element: StreamElement<B>,
        bytes: usize,
        stamp: u64,
        seen: Seen,
    ) -> Result<(), Rejected<B>> {
        if let Err(reason) = self.check() {
            return Err(Rejected { element, reason });
        }
        match element {
            StreamElement::Data(batch) => self.push_data(batch, bytes, stamp, seen),
            control => match self.push_control(&control, stamp) {
                Ok(()) => Ok(()),
                Err(reason) => Err(Rejected {
                    element: control,
                    reason,
                }),
            },
        }
    }

    /// Sends a barrier ahead of what is queued.
    pub(in crate::edge) fn push_priority(
        &mut self,
        barrier: &Barrier,
        stamp: u64,
    ) -> Result<(), RejectReason> {
        self.check()?;
        if !self.advance() {
            return Err(self.why_not());
        }
        let small = small_of_barrier(barrier, stamp);
        let pushed = self
            .producer
            .get_mut()
            .try_push_priority(small.kind, small.bytes());
        self.count(pushed, &small)
    }

    /// Whether an element would be taken now; the reason if not.
    pub(in crate::edge) fn admits(
        &mut self,
        element: &StreamElement<B>,
    ) -> Result<(), RejectReason> {
        self.check()?;
        if !self.advance() {
            return Err(self.why_not());
        }
        let has_room = match element {
            StreamElement::Data(batch) => {
                let bytes = batch.bytes();
                self.has_place(0) && self.has_bytes(bytes) && self.has_space(bytes)
            }
            _ => self.has_place(CONTROL_ELEMENTS_MAX),
        };
        has_room.then_some(()).ok_or_else(|| self.full())
    }

    /// There is no room: the receiver is to ring when it has taken something.
    #[cold]
    fn full(&mut self) -> RejectReason {
        self.producer.get_mut().wait_for_room();
        if let Some(links) = &self.relays {
            // Only its going to sleep is a barrier for the receiver, too, which may have looked
            // before whether anybody waits.
            links.ring();
        }
        RejectReason::Full
    }

    /// Publishes what was pushed, and wakes the receiver if it sleeps.
    pub(in crate::edge) fn flush(&mut self) {
        self.unseen_bytes = 0;
        self.producer.get_mut().flush();
    }

    /// Goes on with what is left of the last batch. Returns whether nothing is left.
    pub(in crate::edge) fn advance(&mut self) -> bool {
        let Some(mut pending) = self.pending.take() else {
            return true;
        };
        match self.write_pending(&mut pending) {
            Ok(true) => {}
            Ok(false) => {
                self.pending = Some(pending);
                self.producer.get_mut().flush();
                return false;
            }
            Err(kind) => {
                self.fail(kind);
                return true;
            }
        }
        let position = self.producer.get_mut().position();
        self.in_flight.push_back((position, pending.bytes));
        self.producer.get_mut().flush();
        true
    }

    /// Whether something of the last batch is left.
    pub(in crate::edge) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Says how the stream stops, and publishes it. Returns whether there was room for that.
    pub(in crate::edge) fn end(&mut self, ending: &Ending) -> bool {
        let is_orderly = ending.is_orderly();
        if is_orderly && self.failed.is_none() && !self.advance() {
            return false;
        }
        if self.failed.is_some() {
            // The peer was told.
            return true;
        }
        let (kind, bytes) = message_of_ending(ending);
        let pushed = self.producer.get_mut().push_small(kind, bytes);
        self.producer.get_mut().flush();
        !matches!(pushed, Err(ClaimError::Full { .. }))
    }

    /// Why the receiver takes nothing more, if that is so.
    pub(in crate::edge) fn check(&mut self) -> Result<(), RejectReason> {
        match self.is_closed() {
            false => Ok(()),
            true => Err(self.closing()),
        }
    }

    /// Whether the receiver takes nothing more.
    pub(in crate::edge) fn is_closed(&self) -> bool {
        self.failed.is_some() || self.producer.borrow().is_closed() || self.gone.get().is_some()
    }

    /// Elements that the receiver had not taken when it was looked last.
    pub(in crate::edge) fn queued(&self) -> usize {
        (self.producer.borrow().position() - self.taken) as usize
    }

    /// Elements that the receiver has not taken.
    pub(in crate::edge) fn depth(&self) -> usize {
        match self.is_closed() {
            false => self.producer.borrow_mut().len(),
            true => 0,
        }
    }

    /// As [`depth`](Self::depth), and takes in what that makes room for.
    pub(in crate::edge) fn look(&mut self) -> usize {
        let queued = self.producer.get_mut().len();
        let taken = self.producer.get_mut().position() - queued as u64;
        self.stats.grants += u64::from(taken != self.taken);
        self.taken = taken;
        while let Some((_, bytes)) = self.in_flight.pop_front_if(|(at, _)| *at <= self.taken) {
            self.in_flight_bytes -= bytes;
        }
        queued
    }

    /// What it has done.
    pub(in crate::edge) fn stats(&self) -> RemoteStats {
        let free = self.edge.capacity_elements.saturating_sub(self.queued());
        RemoteStats {
            credit_rows: u32::try_from(free).unwrap_or(u32::MAX),
            ..self.stats
        }
    }

    fn push_data(
        &mut self,
        batch: B,
        bytes: usize,
        stamp: u64,
        seen: Seen,
    ) -> Result<(), Rejected<B>> {
        if !self.advance() || !self.has_place(0) {
            return Err(self.no_room(batch));
        }
        if !self.has_bytes(bytes) || !self.has_space(bytes) {
            self.stats.saturations += 1;
            return Err(self.no_room(batch));
        }
        let codec = Arc::clone(&self.codec);
        match guarded(|| codec.as_record(&batch).transpose()) {
            Ok(Some(record)) => match self.write_whole(record, stamp, seen) {
                Ok(Written::Yes) => self.is_in_flight(bytes),
                Ok(Written::Full) => {
                    self.stats.saturations += 1;
                    return Err(self.no_room(batch));
                }
                Ok(Written::TooLarge) => self.begin_pending(record.clone(), bytes, stamp),
                Err(kind) => self.fail(kind),
            },
            Ok(None) => match guarded(|| codec.encode(batch)) {
                Ok(record) => match self.write_whole(&record, stamp, seen) {
                    Ok(Written::Yes) => self.is_in_flight(bytes),
                    // There is no way back to the payload.
                    Ok(Written::Full | Written::TooLarge) => {
                        self.begin_pending(record, bytes, stamp);
                    }
                    Err(kind) => self.fail(kind),
                },
                Err(what) => self.fail(FailureKind::Unsendable(what)),
            },
            Err(what) => self.fail(FailureKind::Unsendable(what)),
        }
        Ok(())
    }

    fn is_in_flight(&mut self, bytes: usize) {
        self.in_flight_bytes += bytes;
        let position = self.producer.get_mut().position();
        self.in_flight.push_back((position, bytes));
    }

    fn begin_pending(&mut self, record: RecordBatch, bytes: usize, stamp: u64) {
        self.in_flight_bytes += bytes;
        let most = self.producer.get_mut().claim_max_bytes();
        self.pending = Some(Pending::new(record, most, bytes, stamp));
        self.advance();
    }

    fn no_room(&mut self, batch: B) -> Rejected<B> {
        Rejected {
            element: StreamElement::Data(batch),
            reason: self.full(),
        }
    }

    fn push_control(&mut self, element: &StreamElement<B>, stamp: u64) -> Result<(), RejectReason> {
        if !self.advance() || !self.has_place(CONTROL_ELEMENTS_MAX) {
            return Err(self.why_not());
        }
        let Some(small) = small_of(element, stamp) else {
            return Ok(());
        };
        let pushed = self
            .producer
            .get_mut()
            .push_small(small.kind, small.bytes());
        self.count(pushed, &small)
    }

    fn count(&mut self, pushed: Result<(), ClaimError>, small: &Small) -> Result<(), RejectReason> {
        pushed.map_err(|error| self.refusal(error))?;
        self.stats.wire_bytes += small.bytes().len() as u64;
        Ok(())
    }

    /// Writes what there is room for. Returns whether nothing is left.
    fn write_pending(&mut self, pending: &mut Pending) -> Result<bool, FailureKind> {
        loop {
            if let Some(row) = &mut pending.row {
                if !self.write_parts(row)? {
                    return Ok(false);
                }
                pending.row = None;
            }
            let Some(piece) = pending.next(self.producer.get_mut().claim_max_bytes()) else {
                return Ok(true);
            };
            match self.write(&piece, pending.stamp, Seen::Later)? {
                Written::Yes => {}
                Written::Full => {
                    pending.halves.push(piece);
                    return Ok(false);
                }
                Written::TooLarge => match Pieces::halve(piece) {
                    Ok([first, second]) => pending.halves.extend([second, first]),
                    Err(row) => pending.row = Some(self.lay_out(&row, pending.stamp)?),
                },
            }
        }
    }

    /// A row that the segment does not take at a time, as it is written in parts.
    fn lay_out(&mut self, row: &RecordBatch, stamp: u64) -> Result<Leaving, FailureKind> {
        let prepared = self.encoder.prepare(row);
        let prepared = prepared.map_err(|error| FailureKind::Unsendable(error.to_string()))?;
        if prepared.bytes > self.region_bytes_max {
            self.encoder.give_up();
            let what = too_large(prepared.bytes, self.region_bytes_max);
            return Err(FailureKind::Unsendable(what));
        }
        let mut region = Vec::with_capacity(prepared.bytes);
        self.encoder.write(stamp, &mut region);
        self.needed_bytes = 0;
        self.stats.frames += 1;
        self.stats.copied_bytes += prepared.bytes as u64;
        Ok(Leaving::new(prepared.kind, region))
    }

    /// Writes as many parts as there is room for. Returns whether that was all of them.
    fn write_parts(&mut self, row: &mut Leaving) -> Result<bool, FailureKind> {
        let producer = self.producer.get_mut();
        loop {
            let (part, last) = row.next(producer.claim_max_bytes());
            let bytes = part.len();
            match producer.try_claim(bytes) {
                Ok(mut claim) => {
                    claim.append(part);
                    claim.commit(kind_of_part(last), bytes);
                }
                Err(ClaimError::Corrupt(corrupt)) => {
                    return Err(FailureKind::Protocol(corrupt.to_string()));
                }
                // That the peer is gone is seen by whoever looks next.
                Err(_) => return Ok(false),
            }
            self.stats.wire_bytes += bytes as u64;
            row.advance(bytes);
            if last.is_some() {
                return Ok(true);
            }
        }
    }

    /// Writes a batch as it was pushed, if it fits.
    fn write_whole(
        &mut self,
        batch: &RecordBatch,
        stamp: u64,
        seen: Seen,
    ) -> Result<Written, FailureKind> {
        match batch.num_rows() {
            rows if rows > WIRE_BATCH_ROWS_MAX => Err(FailureKind::Unsendable(format!(
                "a batch has {rows} rows, {WIRE_BATCH_ROWS_MAX} is the limit"
            ))),
            rows if rows > BATCH_ROWS_MAX => Ok(Written::TooLarge),
            _ => self.write(batch, stamp, seen),
        }
    }

    /// Writes one batch, if it fits.
    fn write(
        &mut self,
        batch: &RecordBatch,
        stamp: u64,
        seen: Seen,
    ) -> Result<Written, FailureKind> {
        let prepared = self.encoder.prepare(batch);
        let prepared = prepared.map_err(|error| FailureKind::Unsendable(error.to_string()))?;
        match self.producer.get_mut().try_claim(prepared.bytes) {
            Ok(claim) => {
                let mut room = Room(claim);
                self.encoder.put(stamp, &mut room);
                room.0.commit(kind_of_region(prepared.kind), prepared.bytes);
                self.unseen_bytes += prepared.bytes;
                if seen == Seen::AtOnce || self.unseen_bytes >= UNSEEN_BYTES_MAX {
                    self.flush();
                }
                self.encoder.let_go();
                self.needed_bytes = 0;
                self.stats.frames += 1;
                self.stats.wire_bytes += prepared.bytes as u64;
                Ok(Written::Yes)
            }
            Err(error) => {
                self.encoder.give_up();
                self.needed_bytes = prepared.bytes;
                match error {
                    ClaimError::Full { .. } => Ok(Written::Full),
                    ClaimError::TooLarge { .. } => Ok(Written::TooLarge),
                    // It is seen by whoever looks next.
                    ClaimError::PeerGone => Ok(Written::Full),
                    ClaimError::Corrupt(corrupt) => Err(FailureKind::Protocol(corrupt.to_string())),
                }
            }
        }
    }

    /// Whether one more element fits, `beyond` the places of data.
    fn has_place(&mut self, beyond: usize) -> bool {
        let places = self.edge.capacity_elements + beyond;
        self.queued() < places || self.look() < places
    }

    fn has_bytes(&mut self, bytes: usize) -> bool {
        if self.fits(bytes) {
            return true;
        }
        self.look();
        self.fits(bytes)
    }

    fn fits(&self, bytes: usize) -> bool {
        self.in_flight_bytes == 0 || self.in_flight_bytes + bytes <= self.edge.bytes_max
    }

    /// Whether the segment has room for a batch, as far as that can be guessed. Larger ones go
    /// in pieces, and begin when there is room for one.
    fn has_space(&mut self, bytes: usize) -> bool {
        let most = self.producer.get_mut().claim_max_bytes();
        let guess = bytes.saturating_add(MORE_BYTES.min(bytes + 1024));
        let needed = guess.max(self.needed_bytes).min(most);
        self.producer.get_mut().has_room(needed)
    }

    fn why_not(&mut self) -> RejectReason {
        match self.check() {
            Ok(()) => self.full(),
            Err(reason) => reason,
        }
    }

    fn refusal(&mut self, error: ClaimError) -> RejectReason {
        match error {
            ClaimError::Full { .. } => self.full(),
            ClaimError::PeerGone => self.closing(),
            other => {
                let failure = self.names.failure(FailureKind::Protocol(other.to_string()));
                let reason = RejectReason::Failed(failure);
                self.failed.get_or_insert(reason).clone()
            }
        }
    }

    /// What was handed over can't be sent: the edge ends here, and the peer is told why.
    fn fail(&mut self, kind: FailureKind) {
        let failure = self.names.failure(kind);
        let ending = Ending::Failed(failure.clone());
        let (kind, bytes) = message_of_ending(&ending);
        // If there is no room even for that, the peer learns of it when this side goes.
        let _ = self.producer.get_mut().push_small(kind, bytes);
        self.producer.get_mut().flush();
        self.pending = None;
        self.failed.get_or_insert(RejectReason::Failed(failure));
    }

    #[cold]
    fn closing(&mut self) -> RejectReason {
        if let Some(reason) = &self.failed {
            return reason.clone();
        }
        let said = match self.producer.get_mut().closed() {
            Ok(Some(letter)) => rejection_of(letter.kind, letter.bytes(), &self.names),
            Ok(None) => None,
            Err(corrupt) => {
                let kind = FailureKind::Protocol(corrupt.to_string());
                Some(RejectReason::Failed(self.names.failure(kind)))
            }
        };
        let reason = said.unwrap_or_else(|| RejectReason::Failed(lost(&self.gone, &self.names)));
        self.failed.get_or_insert(reason).clone()
    }
}

/// The peer is gone and has not said why.
pub(super) fn lost(gone: &Gone, names: &Names) -> crate::edge::Failure {
    names.failure(match gone.get() {
        Some(Some(why)) => FailureKind::ConnectionLost(why.clone()),
        Some(None) | None => FailureKind::PeerLost,
    })
}

impl Pending {
    fn new(batch: RecordBatch, most_bytes: usize, bytes: usize, stamp: u64) -> Self {
        let rows = u32::try_from(BATCH_ROWS_MAX).unwrap_or(u32::MAX);
        let piece = Piece {
            rows,
            whole_rows: rows,
            bytes: most_bytes as u64,
        };
        Self {
            pieces: Pieces::new(batch, piece),
            halves: Vec::new(),
            row: None,
            bytes,
            stamp,
        }
    }

    fn next(&mut self, most_bytes: usize) -> Option<RecordBatch> {
        let half = self.halves.pop();
        // Some of it is for the descriptor and for what fills lines up.
        let bytes = (most_bytes - most_bytes / 8) as u64;
        half.or_else(|| self.pieces.next_piece(bytes))
    }
}

impl<B: Payload> std::fmt::Debug for Outlet<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet")
            .field("edge", &self.names.edge)
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}
