//! What travels on an edge: data and the three kinds of control element, in band
//! and in one order.

/// Event time: milliseconds since the Unix epoch. Every `i64` is legal.
pub type EventTime = i64;

/// The time before all events: what a stream's watermark is before it says one.
pub const EVENT_TIME_MIN: EventTime = i64::MIN;

/// The time after all events: the watermark that says no record follows.
pub const EVENT_TIME_MAX: EventTime = i64::MAX;

/// The barrier id that a terminal barrier carries by convention.
pub const TERMINAL_BARRIER_ID: u64 = u64::MAX;

/// One element of a stream, with data of payload type `B`.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamElement<B> {
    /// A batch of records. Batch boundaries carry no meaning; a batch may be empty.
    Data(B),
    /// Progress of event time, or the news that the stream is idle.
    Watermark(Watermark),
    /// The line between the records before and after a checkpoint.
    Barrier(Barrier),
    /// The sending subtask is winding down. Advisory: passed on at once, never aligned.
    Drain(Drain),
}

impl<B> StreamElement<B> {
    /// The same element with its data, if any, replaced by `f` of it.
    pub fn map_data<C>(self, f: impl FnOnce(B) -> C) -> StreamElement<C> {
        match self {
            Self::Data(batch) => StreamElement::Data(f(batch)),
            Self::Watermark(watermark) => StreamElement::Watermark(watermark),
            Self::Barrier(barrier) => StreamElement::Barrier(barrier),
            Self::Drain(drain) => StreamElement::Drain(drain),
        }
    }

    /// Whether this is data.
    pub fn is_data(&self) -> bool {
        matches!(self, Self::Data(_))
    }
}

/// Progress of event time on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark {
    /// Active: no record with an earlier event time follows. Idle: for information only.
    pub timestamp: EventTime,
    /// The stream has nothing to say and should not hold others back.
    pub idle: bool,
}

impl Watermark {
    /// The watermark that says the stream is over.
    pub const MAX: Self = Self::active(EVENT_TIME_MAX);

    /// A watermark of an active stream.
    pub const fn active(timestamp: EventTime) -> Self {
        Self {
            timestamp,
            idle: false,
        }
    }

    /// The news that a stream whose last watermark was `timestamp` is idle.
    pub const fn idle(timestamp: EventTime) -> Self {
        Self {
            timestamp,
            idle: true,
        }
    }
}

/// How a barrier treats the records that are still ahead of it.
///
/// The byte of the wire is kept as it came: any value other than 1 behaves as aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierMode(pub u8);

impl BarrierMode {
    /// Inputs that have delivered the barrier wait for those that have not.
    pub const ALIGNED: Self = Self(0);
    /// The barrier overtakes; what it overtook becomes state of the checkpoint.
    pub const UNALIGNED: Self = Self(1);

    /// Whether barriers of this mode overtake.
    pub const fn is_unaligned(self) -> bool {
        self.0 == Self::UNALIGNED.0
    }
}

/// A checkpoint barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// The checkpoint's id. Ids ascend on an edge.
    pub id: u64,
    /// After the last record of a source that takes no final checkpoint: sinks commit at once.
    pub terminal: bool,
    /// Aligned or unaligned.
    pub mode: BarrierMode,
}

impl Barrier {
    /// An aligned barrier that is not terminal.
    pub const fn aligned(id: u64) -> Self {
        Self {
            id,
            terminal: false,
            mode: BarrierMode::ALIGNED,
        }
    }

    /// An unaligned barrier that is not terminal.
    pub const fn unaligned(id: u64) -> Self {
        Self {
            id,
            terminal: false,
            mode: BarrierMode::UNALIGNED,
        }
    }

    /// The terminal barrier of a source that takes no final checkpoint.
    pub const fn terminal() -> Self {
        Self {
            id: TERMINAL_BARRIER_ID,
            terminal: true,
            mode: BarrierMode::ALIGNED,
        }
    }
}

/// Control elements of every kind, with the values at the ends of their fields.
#[cfg(test)]
pub(crate) const CONTROLS: [StreamElement<()>; 6] = [
    StreamElement::Watermark(Watermark::active(i64::MIN)),
    StreamElement::Watermark(Watermark::idle(7)),
    StreamElement::Barrier(Barrier::unaligned(3)),
    StreamElement::Barrier(Barrier::terminal()),
    StreamElement::Barrier(Barrier {
        id: 1,
        terminal: false,
        mode: BarrierMode(255),
    }),
    StreamElement::Drain(Drain::stop(4)),
];

/// The news that a subtask is winding down, for a rescale or a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drain {
    /// The subtask that winds down.
    pub subtask: u32,
    /// The parallelism that the stage will have; 0 means that the stream stops here.
    pub target_parallelism: u32,
}

impl Drain {
    /// The last element of a stream that is stopped rather than ended.
    pub const fn stop(subtask: u32) -> Self {
        Self {
            subtask,
            target_parallelism: 0,
        }
    }

    /// Whether a close right after this element means stopped, not ended.
    pub const fn stops(self) -> bool {
        self.target_parallelism == 0
    }
}
