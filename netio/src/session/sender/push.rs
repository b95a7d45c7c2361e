//! Taking elements from the user.

use super::{Mode, Phase, SenderSession};
use crate::credit::Shortage;
use crate::frame::{Control, Ending};
use crate::session::{OutBatch, Outgoing, Refusal, Rejected, SessionError};

impl<B> SenderSession<B> {
    /// Queues a control element. It needs no credit.
    ///
    /// # Errors
    /// Gives it back where too many wait, or the stream is over: see [`Refusal`].
    pub fn push_control(&mut self, control: Control) -> Result<(), Rejected<Control>> {
        self.check_open()
            .and_then(|()| self.queue.push_control(control))
            .map_err(|why| Rejected {
                element: control,
                why,
            })
    }

    /// Queues a barrier before all that waits, and says how many elements it has overtaken.
    /// [`queued`](Self::queued) has them, after it.
    ///
    /// # Errors
    /// As [`push_control`](Self::push_control).
    pub fn push_priority(&mut self, control: Control) -> Result<usize, Rejected<Control>> {
        self.check_open()
            .and_then(|()| self.queue.push_front(control))
            .map_err(|why| Rejected {
                element: control,
                why,
            })
    }

    /// Queues the schema of the batches that follow. It takes credit for its bytes.
    ///
    /// # Errors
    /// As [`push_batch`](Self::push_batch).
    ///
    /// # Panics
    /// Unless the negotiated form is spoken: in version 1 each batch has its schema.
    pub fn push_schema(&mut self, body: B, bytes: u64) -> Result<(), Rejected<B>> {
        let is_negotiated = matches!(self.mode, Mode::Negotiated(_));
        assert!(is_negotiated, "a schema is a part of its batch here");
        if let Err(why) = self.take(0, bytes) {
            return Err(Rejected { element: body, why });
        }
        self.has_schema = true;
        self.queue.push(Outgoing::Schema { body, bytes });
        Ok(())
    }

    /// Queues a batch, and takes its credit.
    ///
    /// # Errors
    /// Gives it back, and has taken nothing: see [`Refusal`].
    ///
    /// # Panics
    /// In the negotiated form, if no schema went before, or the compression was not accepted.
    pub fn push_batch(&mut self, batch: OutBatch<B>) -> Result<(), Rejected<OutBatch<B>>> {
        if let Mode::Negotiated(extensions) = self.mode {
            assert!(self.has_schema, "a batch needs a schema before it");
            let allowed = extensions.allow(batch.codec);
            assert!(allowed, "a compression that was not accepted");
        }
        if let Err(why) = self.take(batch.rows, batch.bytes) {
            return Err(Rejected {
                element: batch,
                why,
            });
        }
        self.queue.push(Outgoing::Batch(batch));
        Ok(())
    }

    /// Ends the stream behind what waits. Doing it again changes nothing.
    pub fn close(&mut self, ending: Ending) {
        if self.phase == Phase::Open {
            self.queue.push(Outgoing::Close(ending));
            self.phase = Phase::Closing;
        }
    }

    fn check_open(&self) -> Result<(), Refusal> {
        match self.phase {
            Phase::Open => Ok(()),
            _ if self.error.is_some() => Err(Refusal::Failed),
            _ => Err(Refusal::Closed),
        }
    }

    fn take(&mut self, rows: u32, bytes: u64) -> Result<(), Refusal> {
        self.check_open()?;
        // Not even an empty batch: its form is not known yet.
        if self.mode == Mode::Undecided {
            return self.refuse_for_credit();
        }
        if !self.queue.has_room(bytes) {
            return Err(Refusal::Full);
        }
        match self.credit.take(rows, bytes) {
            Ok(()) => Ok(()),
            Err(never @ Shortage::NeverFits { .. }) => Err(Refusal::NeverFits(never)),
            Err(Shortage::Credit { .. }) => self.refuse_for_credit(),
        }
    }

    fn refuse_for_credit(&mut self) -> Result<(), Refusal> {
        if !self.is_reverse_over {
            return Err(Refusal::NoCredit);
        }
        // What was pushed before still goes out, since the receiver may have closed one
        // direction only; but nothing will ever be granted.
        self.error = Some(SessionError::lost(
            "it closed its direction, and granted too little before",
        ));
        Err(Refusal::Failed)
    }
}
