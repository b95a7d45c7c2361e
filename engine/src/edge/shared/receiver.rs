//! The receiving half of an edge over shared memory, as its user holds it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use ringway_shm::Producer as Lives;
use ringway_shm::link::{Consumer, Message, PopError};

use super::entry::{Sort, control_of, ending_of, message_of_rejection, sort_of};
use super::outlet::lost;
use super::parts::{Assembly, region_bytes_max};
use crate::batch::Payload;
use crate::batcher::check_schema;
use crate::clock::Monotonic;
use crate::edge::remote::{Connection, RemoteStats};
use crate::edge::turn::Turn;
use crate::edge::{Bell, EdgeOptions, Ending, Failure, FailureKind, Popped, RejectReason};
use crate::element::{Barrier, StreamElement};
use crate::limits::EDGE_CAPACITY_ELEMENTS;
use crate::wire::region::{RegionDecoder, RegionKind};
use crate::wire::{Owned, PayloadCodec, guarded};

/// Regions up to this size are copied: a place that is free again at once is worth more.
const LEASE_BYTES_MIN: usize = 1024;

/// After so many elements the sender is told what was taken. Whoever asks for a small edge wants
/// its sender to see each pop.
const TELL_EVERY: usize = 16;

/// It is told sooner when this part of the edge's bytes was taken.
const TELL_PARTS: usize = 8;

/// The receiving half of an edge over shared memory. It is `Send`; popping decodes what lies in
/// the segment, takes no lock and makes no system call while the sender is awake.
pub struct Receiver<B: Payload> {
    consumer: RefCell<Consumer>,
    decode: Decode<B>,
    /// What was decoded ahead, because a barrier has overtaken it: its messages, which are still in
    /// the link, and what each of them completes.
    staged: VecDeque<Result<Option<(StreamElement<B>, u64)>, FailureKind>>,
    /// Messages that completed nothing and were popped since a barrier has overtaken them.
    parts_behind: u64,
    edge: EdgeOptions,
    connection: Connection,
    /// The thread of the connection learns by it that this half is gone, or has had all. None
    /// from then on.
    lives: Option<Lives<()>>,
    position: u64,
    untold: usize,
    tell_every: usize,
    /// Bytes that count as one element more.
    tell_every_bytes: usize,
    origin: Monotonic,
    /// How the stream has ended, though a barrier may be there that overtook that.
    ended: Option<Ending>,
    /// The message that said so was popped.
    has_popped_end: bool,
    is_closed: bool,
    turn: Turn,
}

/// Makes elements of messages.
struct Decode<B> {
    regions: RegionDecoder,
    assembly: Assembly,
    codec: Arc<dyn PayloadCodec<B>>,
    /// The schema that was compared with the codec's, and fits.
    checked: Option<SchemaRef>,
    /// Added to the stamps of the sender, whose clock began at another time.
    shift_nanos: i64,
    stats: RemoteStats,
}

/// What a half is made of.
pub(in crate::edge) struct ReceiverParts<B: Payload> {
    pub(in crate::edge) consumer: Consumer,
    pub(in crate::edge) codec: Arc<dyn PayloadCodec<B>>,
    pub(in crate::edge) edge: EdgeOptions,
    pub(in crate::edge) connection: Connection,
    pub(in crate::edge) lives: Lives<()>,
    pub(in crate::edge) copies: bool,
    pub(in crate::edge) shift_nanos: i64,
}

/// What the next message was.
enum Next<B> {
    /// With its stamp, and the bytes of its message.
    Element(StreamElement<B>, u64, usize),
    /// A part of one.
    Part,
    Nothing,
    Over(Ending),
}

impl<B: Payload> Receiver<B> {
    pub(in crate::edge) fn new(parts: ReceiverParts<B>) -> Self {
        let told_with = parts.edge.bytes_max / (TELL_PARTS * TELL_EVERY);
        let is_narrow = parts.edge.capacity_elements < EDGE_CAPACITY_ELEMENTS;
        Self {
            consumer: RefCell::new(parts.consumer),
            decode: Decode {
                regions: RegionDecoder::new(parts.copies),
                assembly: Assembly::new(region_bytes_max(&parts.edge)),
                codec: parts.codec,
                checked: None,
                shift_nanos: parts.shift_nanos,
                stats: RemoteStats::default(),
            },
            staged: VecDeque::new(),
            parts_behind: 0,
            edge: parts.edge,
            connection: parts.connection,
            lives: Some(parts.lives),
            position: 0,
            untold: 0,
            tell_every_bytes: told_with.max(1),
            tell_every: if is_narrow { 1 } else { TELL_EVERY },
            origin: Monotonic::default(),
            ended: None,
            has_popped_end: false,
            is_closed: false,
            turn: Turn::default(),
        }
    }

    #[inline]
    pub(in crate::edge) fn try_pop(&mut self) -> Popped<B> {
        if self.ended.is_some() {
            return self.say_end();
        }
        let next = loop {
            match self.next() {
                // Others follow, and may wait for the room that it had.
                Next::Part => self.tell(),
                next => break next,
            }
        };
        match next {
            Next::Element(element, stamp, bytes) => {
                self.position += 1;
                self.origin = self.decode.origin(stamp);
                self.untold += 1 + bytes / self.tell_every_bytes;
                if self.untold >= self.tell_every {
                    self.tell();
                }
                Popped::Element(element)
            }
            Next::Part | Next::Nothing => {
                self.tell();
                Popped::Empty
            }
            Next::Over(ending) => {
                self.tell();
                self.ended = Some(ending);
                self.say_end()
            }
        }
    }

    pub(in crate::edge) fn poll_priority(&mut self) -> Option<(Barrier, u64)> {
        let letter = match self.consumer.get_mut().take_priority() {
            Ok(letter) => letter?,
            Err(corrupt) => {
                self.end_with(FailureKind::Protocol(corrupt.to_string()));
                return None;
            }
        };
        let element = control_of::<B>(letter.kind, letter.bytes());
        let Some((StreamElement::Barrier(barrier), stamp)) = element else {
            let what = format!("a message of kind {} out of order", letter.kind);
            self.end_with(FailureKind::Protocol(what));
            return None;
        };
        self.decode.stats.wire_bytes += letter.bytes().len() as u64;
        self.origin = self.decode.origin(stamp);
        let link_position = self.consumer.get_mut().position();
        let ahead = usize::try_from(letter.position.saturating_sub(link_position));
        self.stage(letter.position, ahead.unwrap_or(usize::MAX));
        let ahead = self.staged.iter().take(ahead.unwrap_or(usize::MAX));
        let ahead = ahead.filter(|staged| matches!(staged, Ok(Some(_)))).count() as u64;
        // The message that ended the stream is no element, nor is a part of one.
        let others = u64::from(self.has_popped_end) + std::mem::take(&mut self.parts_behind);
        let elements = link_position.saturating_sub(others);
        let behind = elements.saturating_sub(letter.position).min(self.position);
        Some((barrier, self.position - behind + ahead))
    }

    pub(in crate::edge) fn has_priority(&self) -> bool {
        let peeked = self.consumer.borrow_mut().peek_priority();
        // What is wrong with it is said when it is taken.
        peeked.map_or(true, |position| position.is_some())
    }

    pub(in crate::edge) fn peek_until(
        &self,
        position: u64,
        mut each: impl FnMut(&StreamElement<B>),
    ) {
        let ahead = usize::try_from(position.saturating_sub(self.position));
        let ahead = ahead.unwrap_or(usize::MAX);
        let staged = self.staged.iter().flatten().flatten().take(ahead);
        staged.for_each(|(element, _)| each(element));
    }

    pub(in crate::edge) fn position(&self) -> u64 {
        self.position
    }

    pub(in crate::edge) fn origin(&self) -> Monotonic {
        self.origin
    }

    pub(in crate::edge) fn close(mut self) {
        self.go(&RejectReason::Closed);
    }

    pub(in crate::edge) fn fail(mut self, reason: String) {
        let failure = Failure::peer_failed(self.edge.name.clone(), reason);
        self.go(&RejectReason::Failed(failure));
    }

    /// Takes no more, for this reason.
    pub(in crate::edge) fn reject(mut self, reason: &RejectReason) {
        self.go(reason);
    }

    pub(in crate::edge) fn len(&self) -> usize {
        match &self.ended {
            None => self.consumer.borrow_mut().len(),
            Some(_) => 0,
        }
    }

    pub(in crate::edge) fn options(&self) -> &EdgeOptions {
        &self.edge
    }

    pub(in crate::edge) fn remote_stats(&self) -> RemoteStats {
        let mut stats = self.decode.stats;
        stats.copied_bytes += self.decode.regions.copied_bytes();
        stats
    }

    pub(in crate::edge) fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }

    pub(in crate::edge) fn bell(&self) -> Option<&Bell> {
        Some(self.connection.bell())
    }

    fn next(&mut self) -> Next<B> {
        // Asked before the link is looked at: what the peer did before it went is found there.
        let is_gone = self.connection.is_gone();
        let consumer = self.consumer.get_mut();
        let popped = match consumer.try_pop() {
            Err(PopError::Empty) if is_gone => {
                consumer.set_peer_gone();
                consumer.try_pop()
            }
            other => other,
        };
        let message = match popped {
            Ok(message) => message,
            Err(PopError::Empty) => return Next::Nothing,
            Err(PopError::PeerGone) => {
                let failure = lost(self.connection.gone(), self.connection.names());
                return Next::Over(Ending::Failed(failure));
            }
            Err(PopError::Corrupt(corrupt)) => {
                return self.refuse(FailureKind::Protocol(corrupt.to_string()));
            }
        };
        let bytes = message.bytes().len();
        self.decode.stats.wire_bytes += bytes as u64;
        let completed = match self.staged.pop_front() {
            Some(staged) => staged,
            None => {
                let (kind, sort) = (message.kind(), self.decode.sort_of(message.kind()));
                match sort {
                    Ok(Sort::Ending { .. }) => {
                        let names = self.connection.names();
                        match ending_of(kind, message.bytes(), names) {
                            Some(ending) => {
                                self.has_popped_end = true;
                                return Next::Over(ending);
                            }
                            None => Err(malformed(kind)),
                        }
                    }
                    Ok(Sort::Batch(region)) => self.decode.message(region, message).map(Some),
                    Ok(sort) => self.decode.copied(kind, sort, message.bytes()),
                    Err(kind) => Err(kind),
                }
            }
        };
        match completed {
            Ok(Some((element, stamp))) => Next::Element(element, stamp, bytes),
            Ok(None) => {
                self.pass_part();
                Next::Part
            }
            Err(kind) => self.refuse(kind),
        }
    }

    /// A part was popped. One that a barrier has overtaken meanwhile is no element of those that
    /// are counted for it: the barrier is seen by now, since it was there first.
    fn pass_part(&mut self) {
        let consumer = self.consumer.get_mut();
        let position = consumer.position();
        let is_behind = |barrier| barrier < position;
        if matches!(consumer.peek_priority(), Ok(Some(barrier)) if is_behind(barrier)) {
            self.parts_behind += 1;
        }
    }

    /// Decodes what is queued before `position`, without taking it.
    fn stage(&mut self, position: u64, ahead: usize) {
        if self.staged.back().is_some_and(Result::is_err) {
            return;
        }
        let consumer = self.consumer.get_mut();
        for peeked in consumer
            .peek_until(position)
            .take(ahead)
            .skip(self.staged.len())
        {
            let Ok(peeked) = peeked else {
                // It is found again when that is taken.
                return;
            };
            let decoded = match self.decode.sort_of(peeked.kind) {
                Ok(Sort::Ending { .. }) => return,
                Ok(sort) => self.decode.copied(peeked.kind, sort, peeked.bytes),
                Err(kind) => Err(kind),
            };
            // What came before it is good, and is taken before it is refused.
            let is_bad = decoded.is_err();
            self.staged.push_back(decoded);
            if is_bad {
                return;
            }
        }
    }

    /// What came is not to be taken: the stream ends here, and the sender is told.
    fn refuse(&mut self, kind: FailureKind) -> Next<B> {
        let ending = self.failed(kind);
        if let Ending::Failed(failure) = &ending {
            self.go(&RejectReason::Failed(failure.clone()));
        }
        Next::Over(ending)
    }

    fn end_with(&mut self, kind: FailureKind) {
        if let Next::Over(ending) = self.refuse(kind) {
            self.ended = Some(ending);
        }
    }

    fn failed(&self, kind: FailureKind) -> Ending {
        Ending::Failed(self.connection.names().failure(kind))
    }

    /// The end waits for a barrier that has overtaken, so that it is not lost.
    fn say_end(&mut self) -> Popped<B> {
        let waits = self.consumer.get_mut().peek_priority();
        match &self.ended {
            Some(ending) if !matches!(waits, Ok(Some(_))) => {
                self.lives = None;
                Popped::Ended(ending.clone())
            }
            _ => Popped::Empty,
        }
    }

    /// Tells the sender what was taken.
    fn tell(&mut self) {
        self.untold = 0;
        self.consumer.get_mut().flush();
    }

    fn go(&mut self, reason: &RejectReason) {
        if !std::mem::replace(&mut self.is_closed, true) {
            let (kind, bytes) = message_of_rejection(reason);
            self.consumer.get_mut().close(kind, bytes);
        }
    }
}

impl<B: Payload> Drop for Receiver<B> {
    fn drop(&mut self) {
        let lost = Failure::peer_lost(self.edge.name.clone());
        self.go(&RejectReason::Failed(lost));
    }
}

impl<B: Payload> Decode<B> {
    /// What a message is, by its kind, where it may come now.
    fn sort_of(&self, kind: u32) -> Result<Sort, FailureKind> {
        let sort = sort_of(kind).ok_or_else(|| malformed(kind))?;
        let follows_part = match sort {
            Sort::Part | Sort::LastPart(_) | Sort::Ending { is_orderly: false } => true,
            Sort::Batch(_) | Sort::Control | Sort::Ending { is_orderly: true } => false,
        };
        match self.assembly.has_begun() && !follows_part {
            false => Ok(sort),
            true => Err(FailureKind::Protocol(format!(
                "a message of kind {kind} within the parts of a batch"
            ))),
        }
    }

    /// What a message completes, of which nothing is used afterwards.
    fn copied(
        &mut self,
        kind: u32,
        sort: Sort,
        bytes: &[u8],
    ) -> Result<Option<(StreamElement<B>, u64)>, FailureKind> {
        match sort {
            Sort::Batch(region) => self.bytes(region, bytes).map(Some),
            Sort::Part => {
                self.stats.copied_bytes += bytes.len() as u64;
                let added = self.assembly.add(bytes);
                added.map(|()| None).map_err(FailureKind::Protocol)
            }
            Sort::LastPart(region) => {
                self.stats.copied_bytes += bytes.len() as u64;
                let whole = self.assembly.finish(bytes);
                let whole = Owned(whole.map_err(FailureKind::Protocol)?);
                let batch = self.regions.decode(region, Bytes::from_owner(whole));
                self.element(batch).map(Some)
            }
            Sort::Control => {
                let element = control_of(kind, bytes);
                element.map(Some).ok_or_else(|| malformed(kind))
            }
            Sort::Ending { .. } => Err(malformed(kind)),
        }
    }

    /// The batch of a message, over its memory where that is wise.
    fn message(
        &mut self,
        kind: RegionKind,
        message: Message<'_>,
    ) -> Result<(StreamElement<B>, u64), FailureKind> {
        let is_small = message.bytes().len() < LEASE_BYTES_MIN;
        if is_small || kind == RegionKind::Messages {
            return self.bytes(kind, message.bytes());
        }
        match message.lease() {
            Ok(lease) => {
                let batch = self.regions.decode(kind, Bytes::from_owner(lease));
                self.element(batch)
            }
            // Batches that are kept hold too much of the segment.
            Err(message) => self.bytes(kind, message.bytes()),
        }
    }

    /// The batch of a message that keeps nothing of it.
    fn bytes(
        &mut self,
        kind: RegionKind,
        bytes: &[u8],
    ) -> Result<(StreamElement<B>, u64), FailureKind> {
        let batch = self.regions.decode_copied(kind, bytes);
        self.element(batch)
    }

    fn element(
        &mut self,
        batch: Result<arrow::array::RecordBatch, crate::wire::region::RegionError>,
    ) -> Result<(StreamElement<B>, u64), FailureKind> {
        let batch = batch.map_err(|error| FailureKind::Undecodable(error.to_string()))?;
        self.stats.frames += 1;
        let schema = batch.schema_ref();
        let is_known = |checked: &SchemaRef| Arc::ptr_eq(checked, schema);
        if !self.checked.as_ref().is_some_and(is_known) {
            if let Some(expected) = self.codec.schema() {
                check_schema(schema, &expected)
                    .map_err(|error| FailureKind::Undecodable(error.to_string()))?;
            }
            self.checked = Some(Arc::clone(schema));
        }
        let payload = guarded(|| self.codec.decode(batch)).map_err(FailureKind::Undecodable)?;
        Ok((StreamElement::Data(payload), self.regions.stamp()))
    }

    /// A stamp of the sender by the clock of this side.
    fn origin(&self, stamp: u64) -> Monotonic {
        Monotonic(Duration::from_nanos(
            stamp.saturating_add_signed(self.shift_nanos),
        ))
    }
}

fn malformed(kind: u32) -> FailureKind {
    FailureKind::Protocol(format!("a malformed message of kind {kind}"))
}

impl<B: Payload> std::fmt::Debug for Receiver<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("shared::Receiver")
            .field("edge", &self.edge.name)
            .field("depth", &self.len())
            .finish_non_exhaustive()
    }
}
