//! The kinds of frames.

use std::fmt;

/// What a frame is. Kinds that have no name here are skipped by whoever receives them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// Rows in a form that is no longer sent. Fatal to whoever receives it.
    pub const LEGACY_DATA: Self = Self(0);
    /// An active watermark.
    pub const WATERMARK: Self = Self(1);
    /// A checkpoint barrier.
    pub const BARRIER: Self = Self(2);
    /// The end of the stream.
    pub const CLOSE: Self = Self(3);
    /// A grant of records, as a difference. The receiver's first one may carry an offer.
    pub const CREDIT_UPDATE: Self = Self(4);
    /// The barrier after a source's last record.
    pub const TERMINAL: Self = Self(5);
    /// A watermark of a stream that holds nobody back.
    pub const WATERMARK_IDLE: Self = Self(6);
    /// A batch with its schema: one Arrow IPC stream.
    pub const ARROW_BATCH: Self = Self(7);
    /// The sending subtask winds down.
    pub const DRAIN: Self = Self(8);

    /// The sender's answer to an offer. Everything after it is in the negotiated form.
    pub const ACCEPT: Self = Self(224);
    /// The schema of the batches that follow.
    pub const SCHEMA: Self = Self(225);
    /// A batch without its schema.
    pub const BATCH: Self = Self(226);
    /// A grant of rows and bytes, as absolute limits.
    pub const GRANT: Self = Self(227);
    /// The stream ends without an end, for a reason.
    pub const ABORT: Self = Self(228);
    /// The receiver has everything up to the sender's Close.
    pub const CLOSED: Self = Self(229);
    /// Nothing: what stands behind small frames so that it can be read after them.
    pub const FILLER: Self = Self(230);

    /// The name in the documentation of the wire, if the kind has one.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::LEGACY_DATA => "Data",
            Self::WATERMARK => "Watermark",
            Self::BARRIER => "Barrier",
            Self::CLOSE => "Close",
            Self::CREDIT_UPDATE => "CreditUpdate",
            Self::TERMINAL => "Terminal",
            Self::WATERMARK_IDLE => "WatermarkIdle",
            Self::ARROW_BATCH => "ArrowBatch",
            Self::DRAIN => "Drain",
            Self::ACCEPT => "Accept",
            Self::SCHEMA => "Schema",
            Self::BATCH => "Batch",
            Self::GRANT => "Grant",
            Self::ABORT => "Abort",
            Self::CLOSED => "Closed",
            Self::FILLER => "Filler",
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "kind {}", self.0),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
