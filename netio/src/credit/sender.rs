//! What a sender may send.

use super::{CreditError, PIECES_PER_WINDOW, Shortage};

/// How large a frame may be so that it can be sent at all, and soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Split into pieces of so many rows what has more than `whole_rows`.
    pub rows: u32,
    /// What has no more rows than this may stay whole.
    pub whole_rows: u32,
    /// Split what has more bytes than this, unless it is a single row.
    pub bytes: u64,
}

impl Piece {
    /// The rows of each piece of a batch, the last one excepted. To be asked once a batch: the
    /// rest of a split batch is split like its beginning.
    pub fn rows_each(&self, batch_rows: u32) -> u32 {
        match batch_rows > self.whole_rows {
            true => self.rows,
            false => batch_rows,
        }
    }
}

/// The budget of a sender: it takes what a frame needs whole or not at all, and gives back
/// what it took for a frame that could not be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderCredit {
    rows: Budget,
    /// Nothing in version 1, which counts rows alone.
    bytes: Option<Budget>,
    /// The most rows that were ever available at once: what the receiver keeps room for.
    window_rows: u32,
    body_bytes_max: u64,
    piece_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Budget {
    used: u64,
    limit: u64,
}

impl SenderCredit {
    /// A budget that counts rows. It is empty until the first grant. A body has at most
    /// `body_bytes_max`.
    pub fn counting_rows(body_bytes_max: u64, piece_bytes: u64) -> Self {
        Self {
            rows: Budget::default(),
            bytes: None,
            window_rows: 0,
            body_bytes_max,
            piece_bytes: piece_bytes.min(body_bytes_max).max(1),
        }
    }

    /// A budget that counts rows and bytes, with these windows granted. A body has at most
    /// `body_bytes_max`, and at most the window.
    pub fn counting_bytes(
        window_rows: u32,
        window_bytes: u64,
        body_bytes_max: u64,
        piece_bytes: u64,
    ) -> Self {
        let budget = |limit| Budget { used: 0, limit };
        let body_bytes_max = body_bytes_max.min(window_bytes);
        let share = window_bytes / u64::from(PIECES_PER_WINDOW);
        Self {
            rows: budget(u64::from(window_rows)),
            bytes: Some(budget(window_bytes)),
            window_rows,
            body_bytes_max,
            piece_bytes: piece_bytes.min(share).min(body_bytes_max).max(1),
        }
    }

    /// A grant of version 1: so many rows more.
    ///
    /// # Errors
    /// [`CreditError::Overflow`] if more could be sent than 32 bits count. A receiver that
    /// grants what it takes never comes near.
    pub fn handle_rows(&mut self, rows: u32) -> Result<(), CreditError> {
        let limit = self.rows.limit.saturating_add(u64::from(rows));
        self.raise_rows(limit)
    }

    /// A grant of the negotiated form: absolute limits. Those below what was granted before
    /// change nothing.
    ///
    /// # Errors
    /// [`CreditError::Overflow`] if a limit leaves more to send than any window. Neither
    /// limit has changed then.
    pub fn handle_limits(&mut self, rows: u64, bytes: u64) -> Result<(), CreditError> {
        let mut raised_bytes = self.bytes;
        if let Some(budget) = &mut raised_bytes {
            // A window is at most what one frame may claim, many times over.
            budget.raise(bytes, u64::from(u32::MAX) << 8)?;
        }
        self.raise_rows(rows)?;
        self.bytes = raised_bytes;
        Ok(())
    }

    /// Takes what a frame needs, whole or not at all. No rows are free in version 1.
    ///
    /// # Errors
    /// [`Shortage`]: nothing was taken.
    pub fn take(&mut self, rows: u32, bytes: u64) -> Result<(), Shortage> {
        if bytes > self.body_bytes_max {
            return Err(Shortage::NeverFits {
                bytes,
                limit_bytes: self.body_bytes_max,
            });
        }
        let enough = u64::from(rows) <= self.rows.available()
            && self.bytes.is_none_or(|budget| bytes <= budget.available());
        if !enough {
            return Err(Shortage::Credit { rows, bytes });
        }
        self.rows.used += u64::from(rows);
        if let Some(budget) = &mut self.bytes {
            budget.used += bytes;
        }
        Ok(())
    }

    /// Gives back what was taken for a frame that is not sent after all.
    ///
    /// # Panics
    /// If more comes back than was taken.
    pub fn give_back(&mut self, rows: u32, bytes: u64) {
        assert!(u64::from(rows) <= self.rows.used, "rows never taken");
        self.rows.used -= u64::from(rows);
        if let Some(budget) = &mut self.bytes {
            assert!(bytes <= budget.used, "bytes never taken");
            budget.used -= bytes;
        }
    }

    /// How many rows can be sent now.
    pub fn available_rows(&self) -> u32 {
        u32::try_from(self.rows.available()).unwrap_or(u32::MAX)
    }

    /// How many bytes of bodies can be sent now, where bytes are counted.
    pub fn available_bytes(&self) -> Option<u64> {
        self.bytes.map(|budget| budget.available())
    }

    /// How to split batches for this peer; nothing before its first grant.
    pub fn piece(&self) -> Option<Piece> {
        (self.window_rows > 0).then(|| Piece {
            rows: (self.window_rows / PIECES_PER_WINDOW).max(1),
            whole_rows: self.window_rows,
            bytes: self.piece_bytes,
        })
    }

    fn raise_rows(&mut self, limit: u64) -> Result<(), CreditError> {
        self.rows.raise(limit, u64::from(u32::MAX))?;
        self.window_rows = self.window_rows.max(self.available_rows());
        Ok(())
    }
}

impl Budget {
    fn available(self) -> u64 {
        self.limit - self.used
    }

    fn raise(&mut self, limit: u64, available_max: u64) -> Result<(), CreditError> {
        let limit = limit.max(self.limit);
        if limit - self.used > available_max {
            return Err(CreditError::Overflow {
                available: self.available(),
                granted: limit - self.limit,
            });
        }
        self.limit = limit;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_its_rows_whole_or_not_at_all() {
        let mut credit = SenderCredit::counting_rows(1 << 20, 1 << 20);
        assert_eq!(credit.piece(), None);
        assert!(credit.take(0, 10).is_ok(), "no rows are free");
        credit.handle_rows(100).unwrap();
        let short = Shortage::Credit {
            rows: 250,
            bytes: 9,
        };
        assert_eq!(credit.take(250, 9), Err(short));
        assert_eq!(credit.available_rows(), 100);
        credit.handle_rows(200).unwrap();
        credit.take(250, 9).unwrap();
        assert_eq!(credit.available_rows(), 50);
    }

    #[test]
    fn a_grant_that_cannot_be_counted_is_an_error_and_changes_nothing() {
        let mut credit = SenderCredit::counting_rows(1 << 20, 1 << 20);
        credit.handle_rows(u32::MAX).unwrap();
        let overflow = credit.handle_rows(1);
        assert!(matches!(overflow, Err(CreditError::Overflow { .. })));
        assert_eq!(credit.available_rows(), u32::MAX);

        let mut credit = SenderCredit::counting_bytes(10, 1000, 1000, 100);
        let before = credit.clone();
        assert!(credit.handle_limits(u64::MAX, 2000).is_err());
        assert!(credit.handle_limits(20, u64::MAX).is_err());
        assert_eq!(credit, before);
    }

    #[test]
    fn what_a_failed_build_took_comes_back() {
        let mut credit = SenderCredit::counting_bytes(10, 1000, 1000, 100);
        let before = credit.clone();
        credit.take(7, 400).unwrap();
        credit.give_back(7, 400);
        assert_eq!(credit, before);
    }

    #[test]
    fn old_limits_change_nothing() {
        let mut credit = SenderCredit::counting_bytes(10, 1000, 1000, 100);
        credit.handle_limits(15, 1500).unwrap();
        credit.handle_limits(12, 1200).unwrap();
        assert_eq!(credit.available_rows(), 15);
        assert_eq!(credit.available_bytes(), Some(1500));
    }

    #[test]
    fn pieces_follow_from_what_the_peer_granted() {
        let mut credit = SenderCredit::counting_rows(1 << 20, 1 << 20);
        credit.handle_rows(2048).unwrap();
        let piece = credit.piece().unwrap();
        assert_eq!((piece.rows, piece.whole_rows), (1024, 2048));
        assert_eq!(piece.rows_each(2048), 2048);
        assert_eq!(piece.rows_each(2049), 1024);
        credit.take(2048, 1).unwrap();
        credit.handle_rows(10).unwrap();
        assert_eq!(credit.piece().unwrap().rows, 1024, "the window is known");

        let credit = SenderCredit::counting_bytes(1, 64, 1 << 20, 4 << 20);
        let piece = credit.piece().unwrap();
        assert_eq!((piece.rows, piece.bytes), (1, 32));
    }

    #[test]
    fn a_body_above_the_window_never_fits() {
        let mut credit = SenderCredit::counting_bytes(10, 1000, 1 << 20, 100);
        let never = Shortage::NeverFits {
            bytes: 1001,
            limit_bytes: 1000,
        };
        assert_eq!(credit.take(1, 1001), Err(never));
        credit.take(1, 1000).unwrap();
    }
}
