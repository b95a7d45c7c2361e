//! The receiver's side of a link: from the connection to the ring of the user.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use ringway_netio::frame::{Ending as WireEnding, Extensions, FILLER_BYTES, Reason, ReasonCode};
use ringway_netio::session::{Batch, HangUp, Mode, Received, ReceiverSession, SessionError, Taken};

use super::inflow::Inflow;
use super::leaving::Leaving;
use super::links::{Event, Io, Link, Links};
use super::outflow::Outflow;
use super::reasons::{Goodbye, Names, goodbye_of_rejection};
use super::receiver::ReceiverPlace;
use super::shared::{Carrier, RemoteStats, Shared};
use super::shared_receiving::SharedReceiving;
use crate::batch::Payload;
use crate::batcher::check_schema;
use crate::edge::shared::{Door, Sharing, region_bytes_max};
use crate::edge::{Ending, RejectReason, local};
use crate::element::{Barrier, StreamElement};
use crate::wire::{BatchDecoder, PayloadCodec, element_of, guarded};

/// Receives the elements of one edge.
pub(super) struct ReceiverLink<B: Payload> {
    ring: Option<local::Sender<B>>,
    session: ReceiverSession<Bytes>,
    codec: Arc<dyn PayloadCodec<B>>,
    decoder: BatchDecoder,
    /// The schema that was compared with the codec's, and fits.
    checked: Option<SchemaRef>,
    inflow: Inflow,
    outflow: Outflow,
    /// Decoded, and the ring has no room for it.
    pending: VecDeque<StreamElement<B>>,
    /// Whether barriers of unaligned checkpoints overtake.
    overtaking: bool,
    /// A barrier that overtakes, and the last one was not taken yet.
    priority: Option<(Barrier, u64)>,
    /// What is granted when the user has taken so many elements.
    owed: VecDeque<Owed>,
    /// Bytes of bodies that came and are not granted again.
    held_bytes: u64,
    held_bytes_max: u64,
    batches: Vec<RecordBatch>,
    names: Names,
    shared: Arc<Shared>,
    stats: RemoteStats,
    /// What the user sees of them.
    published: RemoteStats,
    leaving: Leaving,
    peer_has_ended: bool,
    broken: Option<String>,
    is_begun: bool,
    is_reading: bool,
    /// Silence of the sender counts.
    is_listening: bool,
    /// The driver knows of the filler behind small frames.
    expects_filler: bool,
    /// What the user had taken when this was pumped last.
    seen_taken: u64,
    /// The user could not be shown the figures.
    owes_figures: bool,
    /// Something came that is not to be taken, nor what came after it.
    is_refused: bool,
    /// Until it is known whether the edge goes over this connection or over shared memory: where
    /// the half for the latter is left, and where the sender comes in.
    sharing: Option<(ReceiverPlace<B>, Door)>,
    /// Until when that is waited for.
    sharing_until: Duration,
    /// What goes on with the connection if it is the latter.
    successor: Option<Box<dyn Link>>,
}

struct Owed {
    position: u64,
    taken: Taken,
    rows: u32,
}

impl<B: Payload> ReceiverLink<B> {
    pub(super) fn new(
        ring: local::Sender<B>,
        session: ReceiverSession<Bytes>,
        inflow: Inflow,
        codec: Arc<dyn PayloadCodec<B>>,
        names: Names,
        shared: Arc<Shared>,
    ) -> Self {
        let held_bytes_max = ring.options().bytes_max as u64;
        Self {
            ring: Some(ring),
            session,
            codec,
            decoder: BatchDecoder::new(),
            checked: None,
            inflow,
            outflow: Outflow::default(),
            pending: VecDeque::new(),
            overtaking: false,
            priority: None,
            owed: VecDeque::new(),
            held_bytes: 0,
            held_bytes_max,
            batches: Vec::new(),
            names,
            shared,
            stats: RemoteStats::default(),
            published: RemoteStats::default(),
            leaving: Leaving::default(),
            peer_has_ended: false,
            broken: None,
            is_begun: false,
            is_reading: false,
            is_listening: false,
            expects_filler: false,
            seen_taken: 0,
            owes_figures: false,
            is_refused: false,
            sharing: None,
            sharing_until: Duration::ZERO,
            successor: None,
        }
    }

    /// Lets the sender find out whether the edge goes over shared memory.
    pub(super) fn set_sharing(&mut self, sharing: Option<(ReceiverPlace<B>, Door)>) {
        if let Some((_, door)) = &sharing {
            self.sharing_until = Links::now() + door.patience();
        }
        self.sharing = sharing;
    }

    /// Looks whether the sender has come in, as soon as it has answered: it does so before.
    fn meet(&mut self, io: &mut Io<'_>) {
        if self.sharing.is_none() {
            return;
        }
        let has_failed = matches!(self.session.end(), Some(Err(_)));
        let is_decided = self.session.mode() != Mode::Undecided && !has_failed
            // Nobody may come at all, and the door must not be open for ever.
            || io.now >= self.sharing_until;
        let Some((place, door)) = self.sharing.take_if(|_| is_decided) else {
            return;
        };
        let visitor = match self.session.mode() {
            Mode::Negotiated(_) => {
                let identity = self.session.identity().copied();
                let bytes_max = self
                    .ring
                    .as_ref()
                    .map_or(0, |ring| region_bytes_max(ring.options()));
                door.let_in(identity, bytes_max, io.bell, io.clock.started_nanos())
            }
            Mode::V1 => Ok(None),
            Mode::Undecided if has_failed => Ok(None),
            Mode::Undecided => {
                let patience = door.patience();
                Err(format!(
                    "the sender has not answered the offer for {patience:?}"
                ))
            }
        };
        let why = match visitor {
            Ok(Some(visitor)) => {
                if let Some(ring) = self.ring.take() {
                    let (codec, names) = (Arc::clone(&self.codec), self.names.clone());
                    let shared = Arc::clone(&self.shared);
                    let mut receiving =
                        SharedReceiving::new(ring, place, visitor, codec, names, shared, io.bell);
                    if self.peer_has_ended {
                        // It is told once.
                        let lost = self.broken.take();
                        receiving.handle(lost.map_or(Event::Eof, Event::Lost), io);
                    }
                    self.successor = Some(Box::new(receiving));
                }
                return;
            }
            Ok(None) => "the sender is on another host, or shares no memory".to_owned(),
            Err(why) => why,
        };
        if door.options().sharing == Sharing::Require {
            let text = format!("no shared memory: {why}");
            return self.refuse(ReasonCode::WrongPeer, text);
        }
        tracing::info!(
            edge = self.names.edge,
            why,
            "the edge goes over a socket, not shared memory"
        );
        self.shared.set_carrier(Carrier::Connection(why));
    }

    pub(super) fn set_overtaking(&mut self, overtaking: bool) {
        self.overtaking = overtaking;
    }

    /// Takes in what was read, and hands on what is complete, until one of both has no more.
    fn advance(&mut self, io: &mut Io<'_>) -> usize {
        let mut work = 0;
        loop {
            self.meet(io);
            if self.successor.is_some() {
                return work + 1;
            }
            let mut held = self.held_in_v1();
            let max = self.held_bytes_max;
            let fed = self.inflow.feed(&mut self.session, io, |bytes| {
                let fits = held == 0 || held + bytes as u64 <= max;
                held += if fits { bytes as u64 } else { 0 };
                fits
            });
            // The answer may be in what was fed.
            self.meet(io);
            self.expect_filler(io);
            if self.successor.is_some() {
                return work + 1;
            }
            let delivered = self.deliver(io);
            work += delivered + usize::from(fed > 0);
            // Room that was made helps only what waits for some.
            if delivered == 0 || !self.inflow.is_blocked() {
                return work;
            }
        }
    }

    /// Tells the driver that small frames come with a filler, once it is known that they do.
    fn expect_filler(&mut self, io: &mut Io<'_>) {
        if let Mode::Negotiated(extensions) = self.session.mode()
            && !self.expects_filler
            && extensions.has(Extensions::FILLER)
        {
            self.expects_filler = true;
            io.driver.expect_tail(io.connection, FILLER_BYTES);
        }
    }

    /// Bytes of bodies that are held here. In the negotiated form nobody need count them: the
    /// sender has credit for no more than may be held.
    fn held_in_v1(&self) -> u64 {
        if matches!(self.session.mode(), Mode::Negotiated(_)) {
            return 0;
        }
        let bytes = |received: &Received<Bytes>| match received {
            Received::Batch(batch) => batch.taken.bytes(),
            Received::Schema(_) | Received::Control(_) => 0,
        };
        self.held_bytes + self.session.waiting().map(bytes).sum::<u64>()
    }

    /// Moves elements from the session to the ring, as many as there is room for.
    fn deliver(&mut self, io: &mut Io<'_>) -> usize {
        let mut delivered = self.overtake();
        while self.push_pending(io) && !self.is_refused && !self.waits_to_overtake() {
            if !self.take_element() {
                break;
            }
            delivered += 1 + self.overtake();
        }
        if let Some(ring) = &mut self.ring {
            ring.flush();
        }
        delivered
    }

    /// Takes the next element out of the session. Returns whether there was one.
    fn take_element(&mut self) -> bool {
        match self.session.poll_element() {
            Some(Received::Control(control)) => self.pending.push_back(element_of(control)),
            Some(Received::Schema(body)) => self.take_schema(body),
            Some(Received::Batch(batch)) => self.take_batch(batch),
            None => return false,
        }
        true
    }

    /// Pushes what is decoded. Returns whether all of it found room.
    fn push_pending(&mut self, io: &Io<'_>) -> bool {
        let until = self.priority.map_or(u64::MAX, |(_, position)| position);
        while let Some(element) = self.pending.pop_front() {
            let Some(ring) = &mut self.ring else {
                self.pending.clear();
                return true;
            };
            if ring.pushed() >= until {
                // It came after a barrier that waits for its place, and is not to be taken
                // before that.
                self.pending.push_front(element);
                return false;
            }
            ring.set_origin(io.origin);
            if let Err(rejected) = ring.try_push_quiet(element) {
                if rejected.reason == RejectReason::Full {
                    self.pending.push_front(rejected.element);
                } else {
                    self.pending.clear();
                }
                return false;
            }
        }
        self.ring.is_some()
    }

    /// Barriers of unaligned checkpoints overtake what waits here and in the ring. Returns how
    /// many elements that moved.
    fn overtake(&mut self) -> usize {
        if !self.overtaking || (self.priority.is_none() && !self.session.has_unaligned()) {
            return 0;
        }
        let mut moved = 0;
        loop {
            if let Some((barrier, position)) = self.priority {
                let Some(ring) = &mut self.ring else {
                    return moved;
                };
                if ring.try_push_priority_at(barrier, position).is_err() {
                    return moved;
                }
                self.priority = None;
            }
            let (decoded, is_found) = self.take_overtaking();
            moved += decoded + usize::from(is_found);
            if !is_found {
                return moved;
            }
        }
    }

    /// Takes the first barrier that overtakes out of the session, and decodes what is before it,
    /// so that it is known how many elements that are. Returns how many frames were taken for
    /// it, and whether there is one now.
    fn take_overtaking(&mut self) -> (usize, bool) {
        let Some(ahead) = self.session.waiting().position(overtakes) else {
            return (0, false);
        };
        for taken in 0..ahead {
            // What is decoded counts as held, so it waits for room where that is too much.
            if self.is_refused || self.pending_bytes() > self.held_bytes_max {
                return (taken, false);
            }
            self.take_element();
        }
        let pushed = self.ring.as_ref().map_or(0, local::Sender::pushed);
        if !self.is_refused
            && let Some((control, 0)) = self.session.take_unaligned()
            && let StreamElement::Barrier(barrier) = element_of::<B>(control)
        {
            self.priority = Some((barrier, pushed + self.pending.len() as u64));
        }
        (ahead, self.priority.is_some())
    }

    /// Whether the next element is a barrier that overtakes, and the one before it was not taken
    /// by the user yet. It must not get ahead of that one by coming in order.
    fn waits_to_overtake(&self) -> bool {
        self.priority.is_some() && self.session.waiting().next().is_some_and(overtakes)
    }

    fn pending_bytes(&self) -> u64 {
        let bytes = |element: &StreamElement<B>| match element {
            StreamElement::Data(batch) => batch.bytes() as u64,
            _ => 0,
        };
        self.pending.iter().map(bytes).sum()
    }

    fn take_schema(&mut self, body: Bytes) {
        match self.decoder.decode_schema(body) {
            Ok(schema) => self.check_schema(&schema),
            Err(error) => self.refuse(ReasonCode::Undecodable, error.to_string()),
        }
    }

    fn take_batch(&mut self, batch: Batch<Bytes>) {
        let Batch { body, taken, .. } = batch;
        let mut batches = std::mem::take(&mut self.batches);
        let decoded = match self.session.mode() {
            Mode::Negotiated(_) => self.decoder.decode_messages(body, &mut batches),
            Mode::V1 | Mode::Undecided => self.decoder.decode_stream(body, &mut batches),
        };
        self.stats.frames += 1;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if let Err(error) = decoded {
            self.refuse(ReasonCode::Undecodable, error.to_string());
        } else if let Some(declared) = taken.rows().filter(|&declared| declared as usize != rows) {
            let text = format!("a batch of {rows} rows in a frame that says {declared}");
            self.refuse(ReasonCode::Protocol, text);
        } else {
            for batch in batches.drain(..) {
                self.take_columns(batch);
            }
        }
        batches.clear();
        self.batches = batches;
        // Everything decoded so far is pushed in order, so this is where it ends in the ring.
        let pushed = self.ring.as_ref().map_or(0, local::Sender::pushed);
        self.held_bytes += taken.bytes();
        self.owed.push_back(Owed {
            position: pushed + self.pending.len() as u64,
            taken,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        });
    }

    fn take_columns(&mut self, batch: RecordBatch) {
        self.check_schema(batch.schema_ref());
        if self.is_refused {
            return;
        }
        match guarded(|| self.codec.decode(batch)) {
            Ok(payload) => self.pending.push_back(StreamElement::Data(payload)),
            Err(error) => self.refuse(ReasonCode::Undecodable, error),
        }
    }

    fn check_schema(&mut self, schema: &SchemaRef) {
        let is_known = |checked: &SchemaRef| Arc::ptr_eq(checked, schema);
        if self.checked.as_ref().is_some_and(is_known) {
            return;
        }
        if let Some(expected) = self.codec.schema()
            && let Err(error) = check_schema(schema, &expected)
        {
            return self.refuse(ReasonCode::SchemaMismatch, error.to_string());
        }
        self.checked = Some(Arc::clone(schema));
    }

    /// What came is not to be taken: the stream ends here.
    fn refuse(&mut self, code: ReasonCode, text: String) {
        self.session.abort(Reason::new(code, text));
        self.inflow.clear();
        self.is_refused = true;
    }

    /// Grants what the user has taken since.
    fn grant(&mut self) -> usize {
        let Some(ring) = &self.ring else {
            return 0;
        };
        let taken = match self.owed.front() {
            Some(_) => ring.taken(),
            None => return 0,
        };
        let mut granted = 0;
        while let Some(owed) = self.owed.pop_front_if(|owed| owed.position <= taken) {
            self.held_bytes = self.held_bytes.saturating_sub(owed.taken.bytes());
            // The session knows if this failed, and says so at its end.
            let _ = self.session.grant(owed.taken, owed.rows);
            granted += 1;
        }
        granted
    }

    /// Notices that the user takes no more.
    fn notice_close(&mut self, io: &mut Io<'_>) -> usize {
        let Some(ring) = self.ring.take_if(|ring| ring.is_closed()) else {
            return 0;
        };
        let goodbye = goodbye_of_rejection(&ring.closed_because());
        drop(ring);
        self.pending.clear();
        self.priority = None;
        self.inflow.clear();
        match goodbye {
            // In version 1 nothing can be said, and the sender notices when it is not read.
            _ if self.session.mode() == Mode::V1 => self.leaving.finish(io),
            Goodbye::Reason(reason) => self.session.abort(reason),
            Goodbye::Silent => self.leaving.begin(io, self.peer_has_ended),
        }
        1
    }

    /// Tells the user how the stream ended, once everything else is in the ring.
    fn tell_end(&mut self) -> usize {
        if !self.pending.is_empty() || self.priority.is_some() {
            return 0;
        }
        let end = match self.is_refused {
            true => self.session.end(),
            false => self.session.poll_end(),
        };
        let Some(end) = end else {
            return 0;
        };
        // A peer of version 1 is granted everything first: its counters are compared.
        let grants_more = self.session.mode() == Mode::V1 && end.is_ok() && !self.owed.is_empty();
        if grants_more || self.ring.is_none() {
            return 0;
        }
        let ending = match end {
            Ok(ending) => Ok(ending),
            Err(error) => Err(self.ending(error)),
        };
        let Some(ring) = self.ring.take() else {
            return 0;
        };
        match ending {
            Ok(WireEnding::Stopped) => ring.close_with(Ending::Stopped),
            Ok(WireEnding::End | WireEnding::Unsaid) => drop(ring.finish()),
            Err(ending) => {
                tracing::debug!(edge = self.names.edge, peer = self.names.peer, %ending, "edge over");
                ring.close_with(ending);
            }
        }
        self.owed.clear();
        1
    }

    fn ending(&self, error: &SessionError) -> Ending {
        self.names.ending(error, self.broken.as_deref())
    }

    fn transmit(&mut self, io: &mut Io<'_>) -> usize {
        if self.outflow.wants_more() {
            let session = &mut self.session;
            self.outflow.append(|out, _| {
                let before = out.len();
                session.poll_transmit(out);
                out.len() - before
            });
        }
        usize::from(self.outflow.send(io, |_| 0))
    }

    fn hang_up(&mut self, io: &mut Io<'_>) {
        if !self.outflow.is_empty() && self.broken.is_none() {
            return;
        }
        // The user still has elements to take and the session to hear of it.
        match self.session.poll_hang_up() {
            Some(HangUp::Write) => io.driver.shutdown_write(io.connection),
            Some(HangUp::Both) if self.broken.is_some() => self.leaving.finish(io),
            Some(HangUp::Both) => self.leaving.begin(io, self.peer_has_ended),
            None => {}
        }
    }

    /// Reads while there is room for what comes. Silence counts while nothing waits here that
    /// the session could be given first.
    fn set_reading(&mut self, io: &mut Io<'_>) {
        if self.leaving.has_begun() {
            return;
        }
        let is_wanted = self.ring.is_some() && self.session.end().is_none();
        let reads = is_wanted && self.inflow.has_room(self.is_reading);
        if reads != self.is_reading {
            self.is_reading = reads;
            io.driver.set_reading(io.connection, reads);
        }
        let listens = reads && !self.inflow.is_blocked();
        if listens != self.is_listening {
            self.is_listening = listens;
            self.session.handle_reading(io.now, listens);
        }
    }

    fn publish(&mut self, io: &Io<'_>) {
        let mode = self.session.mode();
        let stats = RemoteStats {
            driver: Some(io.driver.kind()),
            mode: (mode != Mode::Undecided).then_some(mode),
            wire_bytes: self.inflow.read_bytes(),
            copied_bytes: self.inflow.copied_bytes(),
            ..self.stats
        };
        self.stats = stats;
        self.owes_figures = stats != self.published && !self.shared.publish(stats);
        if !self.owes_figures {
            self.published = stats;
        }
    }
}

impl<B: Payload> Link for ReceiverLink<B> {
    fn handle(&mut self, event: Event, io: &mut Io<'_>) {
        let is_leaving = self.leaving.has_begun();
        match event {
            Event::Sent(bytes) => self.outflow.handle_sent(bytes),
            Event::Read(_) if is_leaving => {}
            // What follows it may have been read too, so it is taken in when all is here.
            Event::Read(chunk) => self.inflow.push(chunk),
            Event::BodyProgress(bytes) => {
                self.inflow
                    .handle_progress(&mut self.session, io.now, bytes);
            }
            Event::Body(bytes, body) => {
                self.inflow
                    .handle_body(&mut self.session, io.now, bytes, body);
            }
            Event::Eof => self.peer_has_ended = true,
            Event::Lost(why) => {
                self.peer_has_ended = true;
                self.broken = Some(why);
                self.outflow.clear();
            }
        }
    }

    fn has_news(&self) -> bool {
        let Some(ring) = &self.ring else {
            return self.owes_figures;
        };
        // What waits for room is tried again: the ring may have some before it says so.
        let waits = !self.pending.is_empty() || self.priority.is_some() || self.owes_figures;
        // Until it is known how the edge goes, a look is taken in every turn.
        let waits = waits || self.sharing.is_some();
        waits || ring.is_closed() || ring.taken() != self.seen_taken
    }

    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        self.seen_taken = self.ring.as_ref().map_or(0, local::Sender::taken);
        let mut work = match std::mem::replace(&mut self.is_begun, true) {
            true => self.notice_close(io),
            // First the greeting: a peer that is refused before it could not be told why.
            false => self.transmit(io),
        };
        work += self.grant();
        work += self.advance(io);
        if self.successor.is_some() {
            return work;
        }
        if self.peer_has_ended && !self.inflow.is_blocked() && self.session.end().is_none() {
            // Only now: what was read before is in the session.
            match &self.broken {
                Some(why) => self.session.handle_lost(why),
                None => self.session.handle_eof(),
            }
        }
        self.session.handle_timeout(io.now);
        work += self.tell_end();
        self.publish(io);
        if self.leaving.has_begun() {
            return work + usize::from(self.leaving.poll(io, self.peer_has_ended));
        }
        work += self.transmit(io);
        self.set_reading(io);
        self.hang_up(io);
        work
    }

    fn timeout(&self) -> Option<Duration> {
        match self.leaving.has_begun() {
            true => self.leaving.timeout(),
            false => {
                let sharing = self.sharing.as_ref().map(|_| self.sharing_until);
                self.session.poll_timeout().into_iter().chain(sharing).min()
            }
        }
    }

    fn is_needed(&self) -> bool {
        self.ring.is_some() || !self.leaving.has_begun()
    }

    fn is_over(&self) -> bool {
        self.leaving.is_gone() && self.ring.is_none()
    }

    fn successor(&mut self) -> Option<Box<dyn Link>> {
        self.successor.take()
    }
}

/// Whether it overtakes what came before it, where that is wanted.
fn overtakes(received: &Received<Bytes>) -> bool {
    matches!(received, Received::Control(control) if control.is_unaligned_barrier())
}
