//! Control elements: what travels in order with the data and is no data.

use super::fields::{byte, i64_at, u32_at, u64_at};
use super::{FrameError, Kind};

/// A control element as the wire has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Control {
    /// No more records with an event time below this come.
    Watermark {
        /// Milliseconds since the epoch; every value is legal.
        timestamp_ms: i64,
    },
    /// This stream should hold nobody back.
    WatermarkIdle {
        /// Milliseconds since the epoch, for information only.
        timestamp_ms: i64,
    },
    /// A checkpoint barrier.
    Barrier {
        /// The checkpoint.
        id: u64,
        /// 0 aligned, 1 unaligned; others are kept as they are and behave as 0.
        mode: u8,
        /// Whether it follows a source's last record.
        terminal: bool,
    },
    /// The sending subtask winds down for a change of parallelism.
    Drain {
        /// The subtask.
        subtask: u32,
        /// How many there will be; 0 hands over.
        target_parallelism: u32,
    },
}

/// The mode byte of an aligned barrier, and of one whose sender knows no modes.
const MODE_ALIGNED: u8 = 0;
const MODE_UNALIGNED: u8 = 1;

impl Control {
    /// The element in a body, or nothing if the kind is that of no control element. Bytes
    /// after those that the kind needs are ignored.
    ///
    /// # Errors
    /// [`FrameError::Short`] where the body ends before its fields do. End the connection.
    pub fn parse(kind: Kind, body: &[u8]) -> Result<Option<Self>, FrameError> {
        let parsed = match kind {
            Kind::WATERMARK => i64_at(body, 0).map(|timestamp_ms| Self::Watermark { timestamp_ms }),
            Kind::WATERMARK_IDLE => {
                i64_at(body, 0).map(|timestamp_ms| Self::WatermarkIdle { timestamp_ms })
            }
            Kind::BARRIER | Kind::TERMINAL => u64_at(body, 0).map(|id| Self::Barrier {
                id,
                mode: byte(body, 8).unwrap_or(MODE_ALIGNED),
                terminal: kind == Kind::TERMINAL,
            }),
            Kind::DRAIN => {
                u32_at(body, 0)
                    .zip(u32_at(body, 4))
                    .map(|(subtask, target_parallelism)| Self::Drain {
                        subtask,
                        target_parallelism,
                    })
            }
            _ => return Ok(None),
        };
        parsed.map(Some).ok_or(FrameError::Short {
            kind,
            body_bytes: body.len(),
            needed_bytes: 8,
        })
    }

    /// The kind of its frame.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Watermark { .. } => Kind::WATERMARK,
            Self::WatermarkIdle { .. } => Kind::WATERMARK_IDLE,
            Self::Barrier {
                terminal: false, ..
            } => Kind::BARRIER,
            Self::Barrier { terminal: true, .. } => Kind::TERMINAL,
            Self::Drain { .. } => Kind::DRAIN,
        }
    }

    /// How many bytes of a body are its own; a tag follows them where one was negotiated.
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::Barrier { .. } => 9,
            _ => 8,
        }
    }

    /// Whether it is a barrier that may overtake.
    pub fn is_unaligned_barrier(&self) -> bool {
        matches!(self, Self::Barrier { mode, .. } if *mode == MODE_UNALIGNED)
    }

    /// The one element that says as much as `self` followed by `next`, if there is one: of
    /// watermarks that nothing separates, the highest; of idle markers, the last.
    pub fn merge(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Watermark { timestamp_ms: a }, Self::Watermark { timestamp_ms: b }) => {
                Some(Self::Watermark {
                    timestamp_ms: a.max(b),
                })
            }
            (Self::WatermarkIdle { .. }, Self::WatermarkIdle { .. }) => Some(next),
            _ => None,
        }
    }

    /// Appends the body.
    pub(super) fn write_body(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Watermark { timestamp_ms } | Self::WatermarkIdle { timestamp_ms } => {
                out.extend_from_slice(&timestamp_ms.to_be_bytes());
            }
            Self::Barrier { id, mode, .. } => {
                out.extend_from_slice(&id.to_be_bytes());
                out.push(mode);
            }
            Self::Drain {
                subtask,
                target_parallelism,
            } => {
                out.extend_from_slice(&subtask.to_be_bytes());
                out.extend_from_slice(&target_parallelism.to_be_bytes());
            }
        }
    }
}
