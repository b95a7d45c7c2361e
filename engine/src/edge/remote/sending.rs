//! One batch on its way into a session: cut into pieces, each encoded when its turn comes.

use arrow::array::RecordBatch;
use ringway_netio::credit::Piece;
use ringway_netio::frame::Codec;
use ringway_netio::session::{OutBatch, Refusal, Rejected, SenderSession};

use super::sender_link::OutBody;
use crate::wire::{BatchEncoder, Encoded, Pieces};

/// What is left of a batch.
pub(super) struct Work {
    pieces: Pieces,
    piece_bytes: u64,
    /// Pieces that were too large after all, the next one last.
    halves: Vec<RecordBatch>,
    ready: Option<Ready>,
    /// The last piece that is in the session, which goes when all of this does.
    last: Option<RecordBatch>,
    /// Bytes of the ring that are free when all of it is sent.
    holds: usize,
    pushed_bytes: usize,
    pushed_frames: usize,
}

/// A piece that is encoded, which can't be taken back: later ones build on it.
struct Ready {
    piece: RecordBatch,
    schema: Option<Encoded>,
    body: Encoded,
}

/// What became of a batch.
pub(super) enum Pushed {
    /// All of it is in the session.
    All,
    /// The rest has to wait.
    Wait { for_credit: bool },
    /// It can't be sent.
    Never(String),
    /// The session is over.
    Over,
}

impl Work {
    pub(super) fn new(batch: RecordBatch, piece: Piece, holds: usize) -> Self {
        Self {
            pieces: Pieces::new(batch, piece),
            piece_bytes: piece.bytes,
            halves: Vec::new(),
            ready: None,
            last: None,
            holds,
            pushed_bytes: 0,
            pushed_frames: 0,
        }
    }

    /// Pushes pieces as far as the session takes them.
    pub(super) fn push(
        &mut self,
        session: &mut SenderSession<OutBody>,
        encoder: &mut BatchEncoder,
        codec: Codec,
    ) -> Pushed {
        loop {
            let ready = match self.ready.take() {
                Some(ready) => ready,
                None => match self.next_ready(encoder) {
                    Ok(Some(ready)) => ready,
                    Ok(None) => return Pushed::All,
                    Err(why) => return Pushed::Never(why),
                },
            };
            if let Some(pushed) = self.push_ready(ready, session, encoder, codec) {
                return pushed;
            }
        }
    }

    /// The last piece that went into the session.
    pub(super) fn into_last(self) -> Option<RecordBatch> {
        self.last
    }

    /// Bytes of bodies that went into the session since the last call.
    pub(super) fn take_pushed_bytes(&mut self) -> usize {
        std::mem::take(&mut self.pushed_bytes)
    }

    /// Frames that went into the session since the last call.
    pub(super) fn take_pushed_frames(&mut self) -> usize {
        std::mem::take(&mut self.pushed_frames)
    }

    fn next_ready(&mut self, encoder: &mut BatchEncoder) -> Result<Option<Ready>, String> {
        let next = self.halves.pop();
        let Some(piece) = next.or_else(|| self.pieces.next_piece(self.piece_bytes)) else {
            return Ok(None);
        };
        let encoded = encoder.encode(&piece).map_err(|error| error.to_string())?;
        Ok(Some(Ready {
            piece,
            schema: encoded.schema,
            body: encoded.body,
        }))
    }

    /// Pushes one piece; what it returns ends the loop.
    fn push_ready(
        &mut self,
        mut ready: Ready,
        session: &mut SenderSession<OutBody>,
        encoder: &mut BatchEncoder,
        codec: Codec,
    ) -> Option<Pushed> {
        if let Some(schema) = ready.schema.take() {
            let bytes = schema.bytes();
            let body = OutBody {
                encoded: schema,
                releases: 0,
            };
            if let Err(rejected) = session.push_schema(body, bytes as u64) {
                ready.schema = Some(rejected.element.encoded);
                return self.refused(ready, rejected.why, encoder);
            }
            self.pushed_bytes += bytes;
            self.pushed_frames += 1;
        }
        let bytes = ready.body.bytes();
        let is_last = self.halves.is_empty() && self.pieces.is_over();
        let batch = OutBatch {
            body: OutBody {
                encoded: ready.body,
                releases: if is_last { self.holds } else { 0 },
            },
            bytes: bytes as u64,
            rows: u32::try_from(ready.piece.num_rows()).unwrap_or(u32::MAX),
            codec,
        };
        match session.push_batch(batch) {
            Ok(()) => {
                self.pushed_bytes += bytes;
                self.pushed_frames += 1;
                self.last = Some(ready.piece);
                None
            }
            Err(Rejected { element, why }) => {
                ready.body = element.body.encoded;
                self.refused(ready, why, encoder)
            }
        }
    }

    fn refused(
        &mut self,
        ready: Ready,
        why: Refusal,
        encoder: &mut BatchEncoder,
    ) -> Option<Pushed> {
        match why {
            Refusal::NoCredit | Refusal::Full => {
                self.ready = Some(ready);
                Some(Pushed::Wait {
                    for_credit: why == Refusal::NoCredit,
                })
            }
            Refusal::NeverFits(shortage) => {
                // What it brought along (schema, dictionaries) is not sent.
                encoder.forget();
                match Pieces::halve(ready.piece) {
                    Ok([first, second]) => {
                        self.halves.extend([second, first]);
                        None
                    }
                    Err(_) => Some(Pushed::Never(format!("a single row: {shortage}"))),
                }
            }
            Refusal::Closed | Refusal::Failed => Some(Pushed::Over),
        }
    }
}
