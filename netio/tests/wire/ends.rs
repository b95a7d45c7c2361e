//! What a driver does with a session, as plainly as possible.

use std::time::Duration;

use ringway_netio::frame::{BodyBuffer, Control, Ending};
use ringway_netio::session::{
    Intake, OutBatch, Received, ReceiverOptions, ReceiverSession, SenderSession, SessionError,
};

/// An element as the tests compare it. The body of a batch begins with its number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Element {
    Control(Control),
    Batch(Vec<u8>),
}

pub(crate) fn watermark(timestamp_ms: i64) -> Element {
    Element::Control(Control::Watermark { timestamp_ms })
}

pub(crate) fn barrier(id: u64, mode: u8) -> Element {
    let terminal = false;
    Element::Control(Control::Barrier { id, mode, terminal })
}

pub(crate) fn batch(rows: u32, bytes: usize) -> Element {
    let mut body = vec![rows as u8; bytes.max(4)];
    body[..4].copy_from_slice(&rows.to_be_bytes());
    Element::Batch(body)
}

pub(crate) fn rows_of(body: &[u8]) -> u32 {
    let rows = body.first_chunk().copied().unwrap_or_default();
    u32::from_be_bytes(rows)
}

/// Pushes an element, and says whether it was taken.
pub(crate) fn push(sender: &mut SenderSession<Vec<u8>>, element: &Element) -> bool {
    match element {
        Element::Control(control) => sender.push_control(*control).is_ok(),
        Element::Batch(body) => sender
            .push_batch(OutBatch {
                body: body.clone(),
                bytes: body.len() as u64,
                rows: rows_of(body),
                codec: Default::default(),
            })
            .is_ok(),
    }
}

/// A receiver with what its driver keeps for it.
pub(crate) struct ReceiverEnd {
    pub(crate) session: ReceiverSession<Vec<u8>>,
    kept: Vec<u8>,
    body: Option<BodyBuffer>,
    pub(crate) got: Vec<Element>,
    pub(crate) schemas: usize,
    /// The most memory that was held for a body beyond what had come of it.
    pub(crate) ahead_bytes: usize,
    /// Whether rows are told as soon as a body is there.
    pub(crate) tells_rows: bool,
}

impl ReceiverEnd {
    pub(crate) fn new(options: ReceiverOptions) -> Self {
        Self {
            session: ReceiverSession::new(options, Duration::ZERO),
            kept: Vec::new(),
            body: None,
            got: Vec::new(),
            schemas: 0,
            ahead_bytes: 0,
            tells_rows: true,
        }
    }

    /// Bytes have come.
    pub(crate) fn receive(&mut self, now: Duration, bytes: &[u8]) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.extend_from_slice(bytes);
        let mut input = &kept[..];
        loop {
            match self.session.handle_input(now, &mut input) {
                Intake::Body(wanted) => {
                    let body = self
                        .body
                        .get_or_insert_with(|| BodyBuffer::new(wanted.bytes));
                    body.fill(self.session.take_body(now, &mut input));
                    let come = wanted.bytes - body.missing();
                    let ahead = body.capacity_bytes() - come;
                    self.ahead_bytes = self.ahead_bytes.max(ahead);
                    if body.missing() > 0 {
                        break;
                    }
                    let body = self.body.take().expect("just filled").into_bytes();
                    let rows = self.tells_rows.then(|| rows_of(&body));
                    self.session.handle_body(body, rows);
                }
                Intake::More | Intake::Ended => break,
                Intake::Full => {
                    self.kept = input.to_vec();
                    break;
                }
            }
        }
        let reading = self.session.wants_read();
        self.session.handle_reading(now, reading);
    }

    /// Takes up to so many elements, and says how many there were.
    pub(crate) fn take(&mut self, now: Duration, most: usize) -> usize {
        let mut taken = 0;
        while taken < most {
            match self.session.poll_element() {
                None => break,
                Some(Received::Control(control)) => self.got.push(Element::Control(control)),
                Some(Received::Schema(_)) => self.schemas += 1,
                Some(Received::Batch(batch)) => {
                    let rows = rows_of(&batch.body);
                    if self.session.grant(batch.taken, rows).is_ok() {
                        self.got.push(Element::Batch(batch.body));
                    }
                }
            }
            taken += 1;
        }
        if taken > 0 {
            self.receive(now, &[]);
        }
        taken
    }

    /// All that is sent until nothing more is.
    pub(crate) fn transmit(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while self.session.poll_transmit(&mut out) {}
        out
    }

    pub(crate) fn wants_bytes(&self) -> bool {
        self.kept.is_empty() && self.session.wants_read()
    }

    pub(crate) fn ending(&self) -> Result<Ending, SessionError> {
        let end = self.session.poll_end().expect("the stream is over");
        end.map_err(Clone::clone)
    }
}

/// All that a sender sends until nothing more is sent.
pub(crate) fn transmit(sender: &mut SenderSession<Vec<u8>>) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut headers = Vec::new();
    while let Some(frame) = sender.poll_transmit(&mut headers) {
        sent.extend_from_slice(&headers[frame.header]);
        sent.extend(frame.body.into_iter().flatten());
        headers.clear();
    }
    sent
}
