//! What is sent to the sender.

use super::{Mode, ReceiverSession};
use crate::frame::{Grant, encode};
use crate::session::{HangUp, Negotiation};

impl<B> ReceiverSession<B> {
    /// Appends what is to be sent now, and says whether that is anything. What the consumer
    /// has taken since the last poll is granted at once, or kept for a later grant if it is
    /// little: in version 1 as long as more waits to be taken, in the negotiated form until
    /// [`LITTLE_GRANT_AFTER`](crate::session::LITTLE_GRANT_AFTER).
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        if !self.is_greeted {
            self.is_greeted = true;
            self.write_first_grant(out);
        }
        if let Some(reason) = self.abort.take() {
            encode::abort(out, &reason);
            self.hang_up_all();
        } else if self.owes_closed {
            self.owes_closed = false;
            encode::closed(out);
            self.hang_up_all();
        } else if !matches!(self.end, Some(Err(_))) {
            self.write_grant(out);
        }
        out.len() > start
    }

    /// What to shut down, once, when all that was polled before is sent.
    pub fn poll_hang_up(&mut self) -> Option<HangUp> {
        // A peer of version 1 is granted all that was taken, even at the end: it counts.
        if self.mode == Mode::V1 && matches!(self.end, Some(Ok(_))) && self.is_drained() {
            self.hang_up_all();
        }
        self.hang_up.take()
    }

    fn write_first_grant(&mut self, out: &mut Vec<u8>) {
        let offer = (self.options.negotiation != Negotiation::Off).then(|| self.offer());
        if let Some(rows) = self.credit.poll_rows(true) {
            encode::credit_update(out, rows, offer.as_ref());
        }
    }

    fn write_grant(&mut self, out: &mut Vec<u8>) {
        match self.mode {
            Mode::Negotiated(_) if self.end.is_some() => {}
            Mode::Negotiated(_) => {
                let all = std::mem::take(&mut self.grants_little);
                if let Some((rows_limit, bytes_limit)) = self.credit.poll_limits(all) {
                    let grant = Grant {
                        channel: 0,
                        rows_limit,
                        bytes_limit,
                    };
                    encode::grant(out, &grant);
                }
            }
            Mode::V1 | Mode::Undecided => {
                if let Some(rows) = self.credit.poll_rows(self.is_drained()) {
                    encode::credit_update(out, rows, None);
                }
            }
        }
    }
}
