//! What can be wrong with credit.

/// The peer, or this side's caller, broke the rules of credit. End the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CreditError {
    /// A grant raises what may be sent beyond what can be counted.
    #[error("grant of {granted} on top of {available} is more than any window")]
    Overflow {
        /// What could be sent before.
        available: u64,
        /// What was granted on top.
        granted: u64,
    },
    /// More rows were sent than were granted.
    #[error("{rows} rows where {allowed} were granted: the peer ignores its window")]
    RowsExceeded {
        /// How many came, since the connection began.
        rows: u64,
        /// How many were allowed.
        allowed: u64,
    },
    /// More bytes were sent than were granted.
    #[error("{bytes} bytes where {allowed} were granted: the peer ignores its window")]
    BytesExceeded {
        /// How many came, since the connection began.
        bytes: u64,
        /// How many were allowed.
        allowed: u64,
    },
    /// A batch has other rows than its frame said.
    #[error("a batch of {decoded} rows in a frame that says {declared}")]
    RowsDiffer {
        /// What the frame says.
        declared: u32,
        /// What is inside.
        decoded: u32,
    },
}

/// Why a frame can't be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// Not before the peer grants more. Try again after the next grant.
    #[error("no credit for {rows} rows and {bytes} bytes")]
    Credit {
        /// What was asked for.
        rows: u32,
        /// What was asked for.
        bytes: u64,
    },
    /// Never: it is above what the peer ever allows. Split it, or raise the window there.
    #[error("{bytes} bytes never fit the peer's limit of {limit_bytes}: raise its byte limit")]
    NeverFits {
        /// The size of the frame's body.
        bytes: u64,
        /// The most that a body may have.
        limit_bytes: u64,
    },
}
