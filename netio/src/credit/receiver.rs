//! What a receiver has granted, what came, and what was taken.

use super::CreditError;

/// Grants are held back until so large a part of a window is to be granted, as long as the
/// consumer has more to take: each grant costs a send.
const GRANT_SHARE: u64 = 4;

/// The window that a receiver keeps open, and its check of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverCredit {
    rows: Window,
    /// Nothing in version 1, which counts rows alone.
    bytes: Option<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    size: u64,
    /// What came, as far as it is known.
    received: u64,
    /// What the consumer took.
    taken: u64,
    /// What the sender was told it may send.
    allowed: u64,
}

impl ReceiverCredit {
    /// A window of rows, which the first grant opens.
    pub fn counting_rows(window_rows: u32) -> Self {
        Self {
            rows: Window::new(u64::from(window_rows), 0),
            bytes: None,
        }
    }

    /// Windows of rows and bytes, which the offer has opened.
    pub fn counting_bytes(window_rows: u32, window_bytes: u64) -> Self {
        Self {
            rows: Window::new(u64::from(window_rows), u64::from(window_rows)),
            bytes: Some(Window::new(window_bytes, window_bytes)),
        }
    }

    /// A frame has come, or its header has. Rows that are not known yet are counted when they
    /// are taken.
    ///
    /// # Errors
    /// The sender ignores its window. End the connection.
    pub fn handle_received(&mut self, rows: Option<u32>, bytes: u64) -> Result<(), CreditError> {
        if let Some(window) = &mut self.bytes {
            window
                .receive(bytes)
                .map_err(|(bytes, allowed)| CreditError::BytesExceeded { bytes, allowed })?;
        }
        match rows {
            Some(rows) => self.receive_rows(rows),
            None => Ok(()),
        }
    }

    /// The consumer has taken a frame of so many bytes, whose rows were `declared` when it
    /// came, or were not known then.
    ///
    /// # Errors
    /// The sender ignores its window, or lied about the rows. End the connection.
    pub fn handle_taken(
        &mut self,
        declared: Option<u32>,
        rows: u32,
        bytes: u64,
    ) -> Result<(), CreditError> {
        match declared {
            None => self.receive_rows(rows)?,
            Some(declared) if declared != rows => {
                return Err(CreditError::RowsDiffer {
                    declared,
                    decoded: rows,
                });
            }
            Some(_) => {}
        }
        self.rows.taken += u64::from(rows);
        if let Some(window) = &mut self.bytes {
            window.taken += bytes;
        }
        Ok(())
    }

    /// The rows that the sender is to be granted more than it was before (version 1), if it
    /// is time: when the consumer has taken all there is (`idle`), or enough.
    pub fn poll_rows(&mut self, idle: bool) -> Option<u32> {
        let due = self.rows.is_due(idle);
        let before = self.rows.allowed;
        due.then(|| self.rows.open() - before)
            .and_then(|rows| u32::try_from(rows).ok())
    }

    /// Whether the consumer has taken anything that the sender was not granted again.
    pub fn owes(&self) -> bool {
        self.rows.is_due(true) || self.bytes.is_some_and(|bytes| bytes.is_due(true))
    }

    /// The limits of rows and bytes to tell the sender (negotiated form), if it is time: when
    /// the consumer has taken enough, or `all` of it is to be granted, however little.
    pub fn poll_limits(&mut self, all: bool) -> Option<(u64, u64)> {
        let bytes = self.bytes.as_mut()?;
        if !self.rows.is_due(all) && !bytes.is_due(all) {
            return None;
        }
        Some((self.rows.open(), bytes.open()))
    }

    fn receive_rows(&mut self, rows: u32) -> Result<(), CreditError> {
        self.rows
            .receive(u64::from(rows))
            .map_err(|(rows, allowed)| CreditError::RowsExceeded { rows, allowed })
    }
}

impl Window {
    fn new(size: u64, allowed: u64) -> Self {
        Self {
            size,
            received: 0,
            taken: 0,
            allowed,
        }
    }

    fn receive(&mut self, more: u64) -> Result<(), (u64, u64)> {
        self.received = self.received.saturating_add(more);
        if self.received > self.allowed {
            return Err((self.received, self.allowed));
        }
        Ok(())
    }

    fn is_due(&self, idle: bool) -> bool {
        let more = self.taken + self.size - self.allowed;
        more > 0 && (idle || more >= self.size.div_ceil(GRANT_SHARE))
    }

    fn open(&mut self) -> u64 {
        self.allowed = self.taken + self.size;
        self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_add_up_to_the_window_and_what_was_taken() {
        let mut credit = ReceiverCredit::counting_rows(2048);
        let mut granted = u64::from(credit.poll_rows(false).unwrap());
        assert_eq!(granted, 2048);
        for rows in [100, 0, 300, 7] {
            credit.handle_received(Some(rows), 10).unwrap();
            credit.handle_taken(Some(rows), rows, 10).unwrap();
            assert_eq!(credit.poll_rows(false), None, "too little to tell");
        }
        granted += u64::from(credit.poll_rows(true).unwrap());
        assert_eq!(granted, 2048 + 407);
        assert_eq!(credit.poll_rows(true), None);
    }

    #[test]
    fn a_large_part_of_the_window_is_granted_at_once() {
        let mut credit = ReceiverCredit::counting_bytes(1000, 4000);
        credit.handle_received(Some(10), 1000).unwrap();
        assert_eq!(credit.poll_limits(true), None, "nothing taken yet");
        credit.handle_taken(Some(10), 10, 1000).unwrap();
        assert_eq!(credit.poll_limits(false), Some((1010, 5000)));
    }

    #[test]
    fn a_sender_that_ignores_its_window_is_found() {
        let mut credit = ReceiverCredit::counting_bytes(1000, 4000);
        credit.handle_received(Some(1000), 3999).unwrap();
        assert!(credit.clone().handle_received(Some(1), 0).is_err());
        assert!(credit.handle_received(Some(0), 2).is_err());

        let mut credit = ReceiverCredit::counting_rows(2048);
        credit.poll_rows(true);
        credit.handle_received(None, 1).unwrap();
        assert!(credit.handle_taken(None, 5000, 1).is_err());
    }

    #[test]
    fn a_grant_counts_from_when_it_is_sent() {
        let mut credit = ReceiverCredit::counting_rows(10);
        credit.poll_rows(true);
        credit.handle_received(Some(10), 1).unwrap();
        credit.handle_taken(Some(10), 10, 1).unwrap();
        assert!(credit.clone().handle_received(Some(1), 1).is_err());
        credit.poll_rows(true);
        credit.handle_received(Some(1), 1).unwrap();
    }
}
