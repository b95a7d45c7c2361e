//! The sender's side of a link: from the ring of the user to the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway_netio::frame::{Codec, Ending as WireEnding, Extensions, Identity};
use ringway_netio::session::{HangUp, Mode, OutBatch, Refusal, SenderSession};

use super::leaving::Leaving;
use super::links::{Event, Io, Link, Links};
use super::outflow::Outflow;
use super::reasons::{Goodbye, Names, goodbye_of_ending};
use super::sending::{Pushed, Work};
use super::shared::{Carrier, RemoteStats, Shared};
use super::shared_sending::SharedSending;
use super::sharing::{Meeting, Met};
use crate::batch::Payload;
use crate::edge::shared::{Ordered, SharedOptions};
use crate::edge::{EdgeOptions, Ending, FailureKind, Popped, RejectReason, local};
use crate::element::StreamElement;
use crate::limits::WIRE_BATCH_ROWS_MAX;
use crate::wire::{BatchEncoder, Compression, Encoded, Form, PayloadCodec, control_of, guarded};

/// Bytes of bodies that are encoded ahead of the connection: two sends. What is beyond waits
/// as elements in the ring.
const AHEAD_BYTES_MAX: usize = 2 * ringway_netio::driver::SEND_BYTES_MAX;

/// Frames that are encoded ahead of the connection. Below the number at which the session
/// would merge watermarks.
const AHEAD_FRAMES_MAX: usize = 96;

/// Batches whose memory is given back after the send. Where there are more, nobody waits for one.
const SPENT_MAX: usize = 8;

/// How long what was accepted is still sent after the user has cancelled or failed the stream.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether the peer's host has everything (version 1).
const DELIVERY_POLL: Duration = Duration::from_millis(1);

const _: () = assert!(AHEAD_FRAMES_MAX < ringway_netio::session::CONTROL_MERGE_FROM);

/// The body of a frame, and the bytes of the ring that are free again when it is sent.
#[derive(Debug)]
pub(super) struct OutBody {
    pub(super) encoded: Encoded,
    pub(super) releases: usize,
}

/// Sends the elements of one edge.
pub(super) struct SenderLink<B: Payload> {
    ring: Option<local::Receiver<B>>,
    session: SenderSession<OutBody>,
    codec: Arc<dyn PayloadCodec<B>>,
    compression: Compression,
    encoder: Option<(BatchEncoder, Codec)>,
    /// What was taken from the ring and is not in the session yet.
    waiting: Waiting<B>,
    /// Batches that are in the session, until they were sent: giving memory back takes as long as
    /// sending a row, which its receiver may be waiting for.
    spent: Vec<RecordBatch>,
    outflow: Outflow,
    /// Bytes of the ring that are free when so many bytes were sent.
    held: VecDeque<(u64, usize)>,
    ahead_bytes: usize,
    ahead_frames: usize,
    /// How the stream goes that has no end, and when at the latest.
    goodbye: Option<(Goodbye, Duration)>,
    names: Names,
    shared: Arc<Shared>,
    stats: RemoteStats,
    /// What the user sees of them.
    published: RemoteStats,
    leaving: Leaving,
    peer_has_ended: bool,
    broken: Option<String>,
    is_begun: bool,
    is_lingering: bool,
    is_starved: bool,
    /// The user could not be shown the figures.
    owes_figures: bool,
    /// Until it is known whether the edge goes over this connection or over shared memory.
    meeting: Option<Box<Meeting<B>>>,
    /// What goes on with the connection if it is the latter.
    successor: Option<Box<dyn Link>>,
}

enum Waiting<B> {
    Nothing,
    Control(StreamElement<B>),
    /// A batch that is not encoded, since the form of the wire is not known, and its bytes.
    Data(B, usize),
    Work(Box<Work>),
}

impl<B: Payload> SenderLink<B> {
    pub(super) fn new(
        ring: local::Receiver<B>,
        session: SenderSession<OutBody>,
        codec: Arc<dyn PayloadCodec<B>>,
        compression: Compression,
        names: Names,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            ring: Some(ring),
            session,
            codec,
            compression,
            encoder: None,
            waiting: Waiting::Nothing,
            spent: Vec::new(),
            outflow: Outflow::default(),
            held: VecDeque::new(),
            ahead_bytes: 0,
            ahead_frames: 0,
            goodbye: None,
            names,
            shared,
            stats: RemoteStats::default(),
            published: RemoteStats::default(),
            leaving: Leaving::default(),
            peer_has_ended: false,
            broken: None,
            is_begun: false,
            is_lingering: false,
            is_starved: false,
            owes_figures: false,
            meeting: None,
            successor: None,
        }
    }

    /// Lets it find out whether the edge goes over shared memory.
    pub(super) fn set_sharing(
        &mut self,
        ordered: Ordered<B>,
        edge: EdgeOptions,
        options: SharedOptions,
        identity: Option<Identity>,
        patience: Duration,
    ) {
        let meeting = Meeting::new(ordered, edge, options, identity, patience);
        self.meeting = Some(Box::new(meeting));
    }

    /// Finds out what carries the edge, as far as that can be now. Returns whether the offer may
    /// be answered, if it has come.
    fn meet(&mut self, io: &mut Io<'_>) -> bool {
        let Some(meeting) = self.meeting.take() else {
            return true;
        };
        if self.session.error().is_some() {
            return true;
        }
        let met = match meeting.poll(&self.session, io) {
            // An answer may be on its way still, an offer is not.
            Met::Waiting(meeting) if self.peer_has_ended && !meeting.has_knocked() => {
                meeting.without("the receiver is gone, and has made no offer".to_owned())
            }
            met => met,
        };
        match met {
            Met::Waiting(meeting) => {
                let has_knocked = meeting.has_knocked();
                self.meeting = Some(meeting);
                return has_knocked;
            }
            Met::Connection(why) => {
                let edge = &self.names.edge;
                tracing::info!(edge, why, "the edge goes over a socket, not shared memory");
                self.shared.set_carrier(Carrier::Connection(why));
            }
            Met::Memory(sharer) => {
                if let Some(ring) = self.ring.take() {
                    let (codec, names) = (Arc::clone(&self.codec), self.names.clone());
                    let shared = Arc::clone(&self.shared);
                    let sending = SharedSending::new(ring, *sharer, codec, names, shared, io.bell);
                    self.successor = Some(Box::new(sending));
                }
            }
            Met::Failed(why) => self.fail(FailureKind::Refused(why), io.now),
        }
        true
    }

    /// The connection has ended, but the receiver may have answered before, and have said in its
    /// memory that it wants no more. Returns what goes on then.
    fn meet_at_the_end(&mut self, io: &mut Io<'_>) -> Option<&mut Box<dyn Link>> {
        if self.meeting.as_ref().is_some_and(|at| at.has_knocked()) {
            self.meet(io);
        }
        self.successor.as_mut()
    }

    /// Moves elements into the session, as many as it takes.
    fn take_elements(&mut self, now: Duration) -> usize {
        let mut taken = 0;
        while self.ahead_frames < AHEAD_FRAMES_MAX && self.ahead_bytes < AHEAD_BYTES_MAX {
            let waiting = std::mem::replace(&mut self.waiting, Waiting::Nothing);
            let pushed = match waiting {
                Waiting::Nothing => match self.next_element() {
                    Some(waiting) => {
                        self.waiting = waiting;
                        continue;
                    }
                    None => break,
                },
                Waiting::Control(element) => self.push_control(element),
                Waiting::Data(batch, bytes) => self.begin_batch(batch, bytes, now),
                Waiting::Work(work) => self.push_work(*work, now),
            };
            match pushed {
                true => taken += 1,
                false => break,
            }
        }
        taken
    }

    /// The next element of the ring, if there is one.
    fn next_element(&mut self) -> Option<Waiting<B>> {
        let ring = self.ring.as_mut()?;
        // A barrier goes when what it was pushed behind has gone: what waits on this side of
        // the connection is recorded by nobody, so it is not overtaken. It overtakes at the
        // receiver.
        if ring
            .priority_position()
            .is_some_and(|at| at <= ring.position())
            && let Some((barrier, _)) = ring.poll_priority()
        {
            return Some(Waiting::Control(StreamElement::Barrier(barrier)));
        }
        match ring.pop_held() {
            (Popped::Empty, _) => None,
            (Popped::Element(StreamElement::Data(batch)), bytes) => {
                Some(Waiting::Data(batch, bytes))
            }
            (Popped::Element(control), _) => Some(Waiting::Control(control)),
            (Popped::Ended(ending), _) => {
                self.end(&ending);
                None
            }
        }
    }

    /// The user has ended the stream, and everything is taken from the ring.
    fn end(&mut self, ending: &Ending) {
        self.ring = None;
        match goodbye_of_ending(ending) {
            Some(goodbye) => self.goodbye = Some((goodbye, Links::now() + FLUSH_MAX)),
            None if *ending == Ending::Stopped => self.session.close(WireEnding::Stopped),
            None => self.session.close(WireEnding::End),
        }
    }

    /// Returns whether it was taken.
    fn push_control(&mut self, element: StreamElement<B>) -> bool {
        let Some(control) = control_of(&element) else {
            return true;
        };
        match self.session.push_control(control) {
            Ok(()) => {
                self.ahead_frames += 1;
                true
            }
            Err(rejected) => {
                if matches!(rejected.why, Refusal::Full | Refusal::NoCredit) {
                    self.waiting = Waiting::Control(element);
                }
                false
            }
        }
    }

    /// Makes the frames of a batch, as soon as it is known what they look like. Returns whether
    /// that is so.
    fn begin_batch(&mut self, batch: B, bytes: usize, now: Duration) -> bool {
        let Some((form, piece)) = self.form().zip(self.session.piece()) else {
            self.waiting = Waiting::Data(batch, bytes);
            if self.peer_has_ended {
                // The session says what it thinks of a batch that can never be granted.
                self.probe_end(now);
            }
            return false;
        };
        if self.encoder.is_none() {
            self.encoder = Some(encoder(form, self.session.mode(), self.compression));
        }
        match guarded(|| self.codec.encode(batch)) {
            Ok(batch) if batch.num_rows() > WIRE_BATCH_ROWS_MAX => {
                let rows = batch.num_rows();
                let why = format!("a batch has {rows} rows, {WIRE_BATCH_ROWS_MAX} is the limit");
                self.fail(FailureKind::Unsendable(why), now);
                false
            }
            Ok(batch) => self.push_work(Work::new(batch, piece, bytes), now),
            Err(error) => {
                self.fail(FailureKind::Unsendable(error), now);
                false
            }
        }
    }

    /// Pushes frames of a batch. Returns whether all of them were taken.
    fn push_work(&mut self, mut work: Work, now: Duration) -> bool {
        let Some((encoder, codec)) = &mut self.encoder else {
            return false;
        };
        let pushed = work.push(&mut self.session, encoder, *codec);
        self.ahead_bytes += work.take_pushed_bytes();
        self.ahead_frames += work.take_pushed_frames();
        match pushed {
            Pushed::All => {
                self.is_starved = false;
                if self.spent.len() < SPENT_MAX {
                    self.spent.extend(work.into_last());
                }
                return true;
            }
            Pushed::Wait { for_credit } => {
                if for_credit && !std::mem::replace(&mut self.is_starved, true) {
                    self.stats.saturations += 1;
                }
                self.waiting = Waiting::Work(Box::new(work));
            }
            Pushed::Never(why) => self.fail(FailureKind::Unsendable(why), now),
            Pushed::Over => self.settle(now),
        }
        false
    }

    /// How batches look, once it is known.
    fn form(&self) -> Option<Form> {
        match self.session.mode() {
            Mode::Undecided => None,
            Mode::V1 => Some(Form::Stream),
            Mode::Negotiated(extensions) => Some(Form::Messages {
                aligned: extensions.has(Extensions::ALIGNED),
            }),
        }
    }

    /// Lets the session find that a peer which has ended its direction grants nothing more.
    fn probe_end(&mut self, now: Duration) {
        let nothing = OutBatch {
            body: OutBody {
                encoded: Encoded::default(),
                releases: 0,
            },
            bytes: 0,
            rows: 1,
            codec: Codec::None,
        };
        // Nothing was granted, so it is refused.
        drop(self.session.push_batch(nothing));
        self.settle(now);
    }

    /// Gathers frames into a send.
    fn transmit(&mut self, io: &mut Io<'_>) -> usize {
        let mut frames = 0;
        while self.outflow.wants_more() {
            let session = &mut self.session;
            let mut transmit = None;
            let mut copied = 0;
            self.outflow.append(|out, segments| {
                let Some(frame) = session.poll_transmit(out) else {
                    return 0;
                };
                let header = frame.header.len();
                let body = frame.body.map_or((0, 0), |body: OutBody| {
                    let bytes = body.encoded.bytes();
                    copied = body.encoded.gather(out, segments);
                    (bytes, body.releases)
                });
                transmit = Some(body);
                header + body.0
            });
            let Some((bytes, releases)) = transmit else {
                break;
            };
            if releases > 0 {
                self.held
                    .push_back((self.outflow.gathered_total(), releases));
            }
            if bytes > 0 {
                self.stats.frames += 1;
            }
            self.stats.copied_bytes += copied as u64;
            self.ahead_bytes = self.ahead_bytes.saturating_sub(bytes);
            self.ahead_frames = self.ahead_frames.saturating_sub(1);
            frames += 1;
        }
        let session = &self.session;
        self.outflow.send(io, |out| session.fill(out));
        frames
    }

    fn handle_sent(&mut self, bytes: usize) {
        self.outflow.handle_sent(bytes);
        let sent = self.outflow.sent_total();
        self.stats.wire_bytes = sent;
        while let Some(&(at, bytes)) = self.held.front()
            && at <= sent
        {
            self.held.pop_front();
            if let Some(ring) = &mut self.ring {
                ring.release(bytes);
            }
        }
    }

    /// The stream ends here: the user is told this, and the peer that it failed.
    fn fail(&mut self, kind: FailureKind, now: Duration) {
        let failure = self.names.failure(kind);
        let told = ringway_netio::frame::Reason::new(
            ringway_netio::frame::ReasonCode::Failed,
            failure.kind.to_string(),
        );
        self.conclude(Err(RejectReason::Failed(failure)));
        self.session.abort(now, told);
    }

    /// Tells the user if the session has failed, or the peer has everything.
    fn settle(&mut self, now: Duration) {
        if self.session.is_delivered() {
            self.conclude(Ok(()));
        }
        let Some(error) = self.session.error() else {
            return;
        };
        let rejection = self.names.rejection(error, self.broken.as_deref());
        self.conclude(Err(rejection));
        if !self.session.is_over() && self.peer_has_ended {
            self.session.handle_lost(now, "it has ended its direction");
        }
    }

    fn conclude(&mut self, outcome: Result<(), RejectReason>) {
        if let Err(reason) = &outcome {
            if self.shared.outcome().is_none() {
                let Names { edge, peer } = &self.names;
                tracing::debug!(edge, peer, %reason, "edge over");
            }
            self.waiting = Waiting::Nothing;
            if let Some(ring) = self.ring.take() {
                ring.reject(reason.clone());
            }
        }
        self.shared.conclude(outcome);
    }

    /// Says goodbye when everything that was accepted is sent, or it takes too long.
    fn say_goodbye(&mut self, io: &mut Io<'_>) {
        let Some((_, until)) = &self.goodbye else {
            return;
        };
        let waits = !matches!(self.waiting, Waiting::Nothing)
            || self.session.wants_transmit()
            || !self.outflow.is_empty()
            || self.session.mode() == Mode::Undecided && !self.session.is_over();
        if waits && io.now < *until && !self.session.is_over() {
            return;
        }
        self.waiting = Waiting::Nothing;
        match self.goodbye.take() {
            Some((Goodbye::Reason(reason), _)) => self.session.abort(io.now, reason),
            Some((Goodbye::Silent, _)) => self.leaving.begin(io, self.peer_has_ended),
            None => {}
        }
    }

    /// Shuts down what the session says, once everything before it is sent.
    fn hang_up(&mut self, io: &mut Io<'_>) {
        // Before it goes: afterwards nobody looks.
        self.settle(io.now);
        let is_lost = self.session.is_over() && self.session.error().is_some();
        let is_stuck = !self.outflow.is_empty();
        if is_stuck && !is_lost {
            return;
        }
        match self.session.poll_hang_up() {
            Some(HangUp::Write) => {
                io.driver.shutdown_write(io.connection);
                self.is_lingering = true;
            }
            Some(HangUp::Both) if self.broken.is_some() || is_stuck => self.leaving.finish(io),
            Some(HangUp::Both) => self.leaving.begin(io, self.peer_has_ended),
            None => {}
        }
    }

    /// Looks whether the peer's host has everything, which is all that version 1 tells.
    fn poll_delivery(&mut self, io: &mut Io<'_>) {
        if self.awaits_delivery() && io.driver.unacknowledged_bytes(io.connection) == Some(0) {
            self.session.handle_delivered();
        }
    }

    /// Looks whether the peer's host has broken a connection on which nothing more is read, so that
    /// the driver does not find out (version 1: the receiver had ended its direction in order).
    fn poll_broken(&mut self, io: &mut Io<'_>) {
        if self.awaits_delivery() && io.driver.unacknowledged_bytes(io.connection).is_none() {
            let why = "its host has broken the connection before it had everything";
            self.session.handle_lost(io.now, why);
        }
    }

    fn awaits_delivery(&self) -> bool {
        self.is_lingering && self.session.mode() == Mode::V1 && !self.session.is_over()
    }

    fn publish(&mut self, io: &Io<'_>) {
        let mode = self.session.mode();
        let stats = RemoteStats {
            driver: Some(io.driver.kind()),
            mode: (mode != Mode::Undecided).then_some(mode),
            credit_rows: self.session.credit().available_rows(),
            grants: self.session.grants(),
            ..self.stats
        };
        self.stats = stats;
        self.owes_figures = stats != self.published && !self.shared.publish(stats);
        if !self.owes_figures {
            self.published = stats;
        }
    }
}

impl<B: Payload> Link for SenderLink<B> {
    fn handle(&mut self, event: Event, io: &mut Io<'_>) {
        if matches!(event, Event::Eof | Event::Lost(_))
            && let Some(successor) = self.meet_at_the_end(io)
        {
            return successor.handle(event, io);
        }
        match event {
            Event::Sent(bytes) => self.handle_sent(bytes),
            Event::Read(chunk) => self.session.handle_input(io.now, &chunk),
            Event::Eof => {
                self.peer_has_ended = true;
                // The end may be on its way without this side having looked at that.
                self.hang_up(io);
                self.poll_delivery(io);
                self.session.handle_eof(io.now);
                // The connection may be gone by now, and then nothing pumps it any more.
                self.settle(io.now);
            }
            Event::Lost(why) => {
                self.poll_delivery(io);
                self.outflow.clear();
                self.session.handle_lost(io.now, &why);
                self.broken = Some(why);
                self.peer_has_ended = true;
            }
            Event::BodyProgress(_) | Event::Body(..) => {}
        }
    }

    fn has_news(&self) -> bool {
        // What it waits for while it meets its peer over shared memory is no event of its own.
        self.owes_figures
            || self.meeting.is_some()
            || self.ring.as_ref().is_some_and(local::Receiver::has_news)
    }

    fn sends(&self) -> bool {
        true
    }

    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        if !std::mem::replace(&mut self.is_begun, true) {
            io.driver.set_reading(io.connection, true);
        }
        if self.leaving.has_begun() {
            return usize::from(self.leaving.poll(io, self.peer_has_ended));
        }
        self.session.handle_timeout(io.now);
        let may_answer = self.meet(io);
        if self.successor.is_some() {
            return 1;
        }
        let mut work = 0;
        if self.meeting.is_none() {
            work += self.take_elements(io.now);
            self.say_goodbye(io);
        }
        if may_answer {
            work += self.transmit(io);
        }
        self.spent.clear();
        self.poll_delivery(io);
        self.poll_broken(io);
        self.hang_up(io);
        self.publish(io);
        work + usize::from(self.leaving.has_begun())
    }

    fn timeout(&self) -> Option<Duration> {
        if self.leaving.has_begun() {
            return self.leaving.timeout();
        }
        let goodbye = self.goodbye.as_ref().map(|(_, until)| *until);
        let lingers = self.is_lingering && self.session.mode() == Mode::V1;
        let delivery = lingers.then(|| Links::now() + DELIVERY_POLL);
        let meeting = self.meeting.as_ref();
        let answer = meeting.and_then(|meeting| meeting.look_at(Links::now()));
        [self.session.poll_timeout(), goodbye, delivery, answer]
            .into_iter()
            .flatten()
            .min()
    }

    fn is_needed(&self) -> bool {
        !self.leaving.has_begun()
    }

    fn is_over(&self) -> bool {
        self.leaving.is_gone()
    }

    fn successor(&mut self) -> Option<Box<dyn Link>> {
        self.successor.take()
    }
}

impl<B: Payload> Drop for SenderLink<B> {
    /// Whoever waits for the outcome waits for ever if the link goes without one, as it does
    /// when its thread ends.
    fn drop(&mut self) {
        let goes_on = matches!(self.shared.carrier(), Some(Carrier::Memory(..)));
        if !goes_on && self.shared.outcome().is_none() {
            let failure = self.names.failure(FailureKind::PeerLost);
            self.conclude(Err(RejectReason::Failed(failure)));
        }
    }
}

fn encoder(form: Form, mode: Mode, wanted: Compression) -> (BatchEncoder, Codec) {
    let codec = match wanted {
        Compression::None => Codec::None,
        Compression::Lz4 => Codec::Lz4,
        Compression::Zstd => Codec::Zstd,
    };
    let is_allowed = match mode {
        Mode::Negotiated(extensions) => extensions.allow(codec),
        // Whether such a peer can expand anything is not known.
        Mode::V1 | Mode::Undecided => codec == Codec::None,
    };
    match is_allowed {
        true => (BatchEncoder::new(form, wanted), codec),
        false => (BatchEncoder::new(form, Compression::None), Codec::None),
    }
}
