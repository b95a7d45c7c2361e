//! What the messages of a link mean.

use ringway_shm::link::SMALL_BYTES_MAX;

use crate::edge::remote::Names;
use crate::edge::{Ending, Failure, FailureKind, RejectReason};
use crate::element::{Barrier, BarrierMode, Drain, StreamElement, Watermark};
use crate::wire::region::RegionKind;

/// A batch, as a region.
const FLAT: u32 = 1;
const MESSAGES: u32 = 2;
/// A part of a region that more follow, and the last one.
const PART: u32 = 3;
const LAST_FLAT: u32 = 4;
const LAST_MESSAGES: u32 = 5;
/// Control elements: their stamp, and what they say.
const WATERMARK: u32 = 16;
const WATERMARK_IDLE: u32 = 17;
const BARRIER: u32 = 18;
const DRAIN: u32 = 19;
/// How a stream stops, or why its receiver takes no more.
const END: u32 = 32;
const STOPPED: u32 = 33;
const CANCELLED: u32 = 34;
const UNWANTED: u32 = 35;
const FAILED: u32 = 36;
const LOST: u32 = 37;

const STAMP_BYTES: usize = 8;

/// A small message that is to be pushed.
pub(super) struct Small {
    pub(super) kind: u32,
    bytes: [u8; 24],
    length: usize,
}

impl Small {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn new(kind: u32, stamp: u64, fields: &[&[u8]]) -> Self {
        let mut small = Self {
            kind,
            bytes: [0; 24],
            length: 0,
        };
        small.put(&stamp.to_le_bytes());
        for field in fields {
            small.put(field);
        }
        small
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

/// What a message is, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Batch(RegionKind),
    Part,
    LastPart(RegionKind),
    Control,
    Ending {
        /// Everything that was pushed has come.
        is_orderly: bool,
    },
}

pub(super) fn sort_of(kind: u32) -> Option<Sort> {
    match kind {
        FLAT => Some(Sort::Batch(RegionKind::Flat)),
        MESSAGES => Some(Sort::Batch(RegionKind::Messages)),
        PART => Some(Sort::Part),
        LAST_FLAT => Some(Sort::LastPart(RegionKind::Flat)),
        LAST_MESSAGES => Some(Sort::LastPart(RegionKind::Messages)),
        WATERMARK | WATERMARK_IDLE | BARRIER | DRAIN => Some(Sort::Control),
        END | STOPPED => Some(Sort::Ending { is_orderly: true }),
        CANCELLED | UNWANTED | FAILED | LOST => Some(Sort::Ending { is_orderly: false }),
        _ => None,
    }
}

pub(super) fn kind_of_region(kind: RegionKind) -> u32 {
    match kind {
        RegionKind::Flat => FLAT,
        RegionKind::Messages => MESSAGES,
    }
}

/// The kind of a part, which is the last of a region that is held so, or none of its last.
pub(super) fn kind_of_part(last: Option<RegionKind>) -> u32 {
    match last {
        None => PART,
        Some(RegionKind::Flat) => LAST_FLAT,
        Some(RegionKind::Messages) => LAST_MESSAGES,
    }
}

/// The message of a control element; none for data.
pub(super) fn small_of<B>(element: &StreamElement<B>, stamp: u64) -> Option<Small> {
    Some(match element {
        StreamElement::Data(_) => return None,
        StreamElement::Watermark(watermark) => {
            let kind = match watermark.idle {
                false => WATERMARK,
                true => WATERMARK_IDLE,
            };
            Small::new(kind, stamp, &[&watermark.timestamp.to_le_bytes()])
        }
        StreamElement::Barrier(barrier) => small_of_barrier(barrier, stamp),
        StreamElement::Drain(drain) => Small::new(
            DRAIN,
            stamp,
            &[
                &drain.subtask.to_le_bytes(),
                &drain.target_parallelism.to_le_bytes(),
            ],
        ),
    })
}

pub(super) fn small_of_barrier(barrier: &Barrier, stamp: u64) -> Small {
    let flags = [barrier.mode.0, u8::from(barrier.terminal)];
    Small::new(BARRIER, stamp, &[&barrier.id.to_le_bytes(), &flags])
}

/// The control element of a message with its stamp. None where the message is none.
pub(super) fn control_of<B>(kind: u32, bytes: &[u8]) -> Option<(StreamElement<B>, u64)> {
    let (stamp, fields) = bytes.split_first_chunk::<STAMP_BYTES>()?;
    let element = match kind {
        WATERMARK | WATERMARK_IDLE => {
            let timestamp = i64::from_le_bytes(*exactly(fields)?);
            StreamElement::Watermark(Watermark {
                timestamp,
                idle: kind == WATERMARK_IDLE,
            })
        }
        BARRIER => {
            let (id, flags) = fields.split_first_chunk::<8>()?;
            let [mode, terminal] = *exactly(flags)?;
            StreamElement::Barrier(Barrier {
                id: u64::from_le_bytes(*id),
                terminal: match terminal {
                    0 => false,
                    1 => true,
                    _ => return None,
                },
                mode: BarrierMode(mode),
            })
        }
        DRAIN => {
            let (subtask, target) = fields.split_first_chunk::<4>()?;
            StreamElement::Drain(Drain {
                subtask: u32::from_le_bytes(*subtask),
                target_parallelism: u32::from_le_bytes(*exactly(target)?),
            })
        }
        _ => return None,
    };
    Some((element, u64::from_le_bytes(*stamp)))
}

fn exactly<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    bytes.try_into().ok()
}

/// How a stream stops, as a message.
pub(super) fn message_of_ending(ending: &Ending) -> (u32, &[u8]) {
    match ending {
        Ending::End => (END, &[]),
        Ending::Stopped => (STOPPED, &[]),
        Ending::Cancelled => (CANCELLED, &[]),
        Ending::Failed(failure) => message_of_failure(failure),
    }
}

/// Why a receiver takes no more, as a message.
pub(super) fn message_of_rejection(reason: &RejectReason) -> (u32, &[u8]) {
    match reason {
        RejectReason::Closed => (UNWANTED, &[]),
        RejectReason::Failed(failure) => message_of_failure(failure),
        RejectReason::Full => (LOST, &[]),
    }
}

fn message_of_failure(failure: &Failure) -> (u32, &[u8]) {
    match &failure.kind {
        FailureKind::PeerFailed(text)
        | FailureKind::Unsendable(text)
        | FailureKind::Undecodable(text)
        | FailureKind::Protocol(text) => (FAILED, shortened(text)),
        _ => (LOST, &[]),
    }
}

/// As much of a text as a message takes.
fn shortened(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(SMALL_BYTES_MAX)]
}

/// How a stream has stopped that ended with this message.
pub(super) fn ending_of(kind: u32, bytes: &[u8], names: &Names) -> Option<Ending> {
    Some(match kind {
        END => Ending::End,
        STOPPED => Ending::Stopped,
        CANCELLED => Ending::Cancelled,
        other => Ending::Failed(failure_of(other, bytes, names)?),
    })
}

/// Why a receiver takes no more that said so with this message.
pub(super) fn rejection_of(kind: u32, bytes: &[u8], names: &Names) -> Option<RejectReason> {
    Some(match kind {
        UNWANTED => RejectReason::Closed,
        other => RejectReason::Failed(failure_of(other, bytes, names)?),
    })
}

fn failure_of(kind: u32, bytes: &[u8], names: &Names) -> Option<Failure> {
    let kind = match kind {
        FAILED => {
            // Of a copy, since whoever wrote it may write to it still.
            let copy = bytes.to_vec();
            FailureKind::PeerFailed(String::from_utf8_lossy(&copy).into_owned())
        }
        LOST => FailureKind::PeerLost,
        _ => return None,
    };
    Some(names.failure(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::CONTROLS;

    #[test]
    fn every_control_element_comes_back_as_it_was() {
        for element in CONTROLS {
            let small = small_of(&element, 99).unwrap();
            assert_eq!(sort_of(small.kind), Some(Sort::Control));
            let read = control_of::<()>(small.kind, small.bytes());
            assert_eq!(read, Some((element, 99)));
            for length in 0..small.bytes().len() {
                assert_eq!(control_of::<()>(small.kind, &small.bytes()[..length]), None);
            }
        }
        assert!(small_of(&StreamElement::Data(()), 0).is_none());
    }

    #[test]
    fn endings_are_told_apart_and_reasons_are_cut_to_what_a_message_takes() {
        let names = Names {
            edge: "edge".to_owned(),
            peer: "peer".to_owned(),
        };
        let long = "ü".repeat(SMALL_BYTES_MAX);
        let failed =
            |text: &str| Ending::Failed(names.failure(FailureKind::PeerFailed(text.into())));
        let cut = "ü".repeat(SMALL_BYTES_MAX / 2);
        for (ending, told) in [
            (Ending::End, Ending::End),
            (Ending::Stopped, Ending::Stopped),
            (Ending::Cancelled, Ending::Cancelled),
            (failed("why"), failed("why")),
            (failed(&long), failed(&cut)),
        ] {
            let (kind, bytes) = message_of_ending(&ending);
            assert_eq!(ending_of(kind, bytes, &names), Some(told));
        }
        let (kind, bytes) = message_of_rejection(&RejectReason::Closed);
        assert_eq!(
            rejection_of(kind, bytes, &names),
            Some(RejectReason::Closed)
        );
        assert_eq!(ending_of(kind, bytes, &names), None, "that is no ending");
    }
}
