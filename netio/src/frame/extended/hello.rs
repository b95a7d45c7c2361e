//! The offer of a receiver, and the answer of a sender that takes it.

use std::fmt;

use super::Extensions;
use crate::frame::fields::{array, byte, u16_at, u32_at, u64_at, u128_at};
use crate::frame::{FrameError, Kind};

/// Marks the trailing bytes of a first grant as an offer, and the answer as one.
const MAGIC: [u8; 4] = *b"RWAY";
/// The form of the offer and of all that follows from it.
const VERSION: u8 = 2;

/// Which edge of which job somebody is. A peer that is another one is refused, so that no
/// process of an older attempt or of another job can feed an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The job: the same number in all of its processes.
    pub job: u128,
    /// The edge, or [`Identity::ANY_EDGE`].
    pub edge: u64,
    /// The attempt of the job.
    pub attempt: u32,
}

impl Identity {
    /// The edge of a receiver that listens for all edges of a process: the sender's answer
    /// names the one that it wants.
    pub const ANY_EDGE: u64 = u64::MAX;

    const BYTES: usize = 32;
    const RECEIVER: u8 = 0;
    const SENDER: u8 = 1;

    /// Whether both are of the same job and attempt, and of the same edge or one of any.
    pub fn fits(&self, other: &Self) -> bool {
        let same_edge =
            self.edge == other.edge || self.edge == Self::ANY_EDGE || other.edge == Self::ANY_EDGE;
        self.job == other.job && self.attempt == other.attempt && same_edge
    }

    fn parse(bytes: &[u8], at: usize, direction: u8) -> Option<Self> {
        (byte(bytes, at + 28)? == direction).then_some(())?;
        Some(Self {
            job: u128_at(bytes, at)?,
            edge: u64_at(bytes, at + 16)?,
            attempt: u32_at(bytes, at + 24)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>, direction: u8) {
        out.extend_from_slice(&self.job.to_be_bytes());
        out.extend_from_slice(&self.edge.to_be_bytes());
        out.extend_from_slice(&self.attempt.to_be_bytes());
        out.extend_from_slice(&[direction, 0, 0, 0]);
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, edge, attempt } = self;
        match *edge {
            Self::ANY_EDGE => write!(f, "any edge of job {job:032x}, attempt {attempt}"),
            edge => write!(f, "edge {edge} of job {job:032x}, attempt {attempt}"),
        }
    }
}

/// What a receiver proposes behind the records of its first grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Random, new for each connection: names what the two may meet at on one host, and ties
    /// the answer to this offer.
    pub token: u128,
    /// What the receiver understands.
    pub extensions: Extensions,
    /// How many rows the sender may send to begin with, in place of the grant's records.
    pub window_rows: u32,
    /// How many bytes of bodies the sender may send to begin with.
    pub window_bytes: u64,
    /// The longest frame that the receiver takes.
    pub frame_bytes_max: u32,
    /// Who the receiver is, where [`Extensions::IDENTITY`] is offered.
    pub identity: Option<Identity>,
}

impl Offer {
    /// Its length without an identity.
    pub const BYTES: usize = 48;

    /// The offer in what trails a first grant, or nothing if that is no offer of this form:
    /// then the peer speaks version 1, or a newer form than we.
    pub fn parse(trailing: &[u8]) -> Option<Self> {
        let length = usize::from(u16_at(trailing, 6)?);
        let offer = trailing.get(..length)?;
        if array(offer, 0)? != MAGIC || byte(offer, 4)? != VERSION {
            return None;
        }
        let extensions = Extensions(u32_at(offer, 24)?);
        let identity = match extensions.has(Extensions::IDENTITY) {
            true => Some(Identity::parse(offer, Self::BYTES, Identity::RECEIVER)?),
            false => None,
        };
        let offer = Self {
            token: u128_at(offer, 8)?,
            extensions,
            window_rows: u32_at(offer, 28)?,
            window_bytes: u64_at(offer, 32)?,
            frame_bytes_max: u32_at(offer, 40)?,
            identity,
        };
        let usable = offer.window_rows > 0 && offer.window_bytes > 0 && offer.frame_bytes_max > 0;
        usable.then_some(offer)
    }

    pub(in crate::frame) fn write(&self, out: &mut Vec<u8>) {
        let extensions = match self.identity {
            Some(_) => self.extensions | Extensions::IDENTITY,
            None => self.extensions.without(Extensions::IDENTITY),
        };
        let length = Self::BYTES + self.identity.map_or(0, |_| Identity::BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, 0]);
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&self.token.to_be_bytes());
        out.extend_from_slice(&extensions.0.to_be_bytes());
        out.extend_from_slice(&self.window_rows.to_be_bytes());
        out.extend_from_slice(&self.window_bytes.to_be_bytes());
        out.extend_from_slice(&self.frame_bytes_max.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        if let Some(identity) = &self.identity {
            identity.write(out, Identity::RECEIVER);
        }
    }
}

/// A sender's answer to an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accept {
    /// The token of the offer.
    pub token: u128,
    /// What is used from here on: of what was offered, what the sender knows.
    pub extensions: Extensions,
    /// Who the sender is, where [`Extensions::IDENTITY`] is accepted.
    pub identity: Option<Identity>,
}

impl Accept {
    /// Its length; without an identity the place of it is zeros.
    pub const BYTES: usize = 32 + Identity::BYTES;

    /// The answer in a body.
    ///
    /// # Errors
    /// [`FrameError::Short`], or [`FrameError::Malformed`] where it is of another form than
    /// ours: only an offer of that form may be answered so. End the connection.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let malformed = |what| FrameError::Malformed {
            kind: Kind::ACCEPT,
            what,
        };
        let fields = u32_at(body, 8).zip(u128_at(body, 16));
        let Some((extensions, token)) = fields.filter(|_| body.len() >= Self::BYTES) else {
            return Err(FrameError::Short {
                kind: Kind::ACCEPT,
                body_bytes: body.len(),
                needed_bytes: Self::BYTES,
            });
        };
        if array(body, 0) != Some(MAGIC) || byte(body, 4) != Some(VERSION) {
            return Err(malformed("another magic or version than the offer's"));
        }
        let extensions = Extensions(extensions);
        let identity = match extensions.has(Extensions::IDENTITY) {
            true => Some(
                Identity::parse(body, 32, Identity::SENDER)
                    .ok_or(malformed("an identity that is no sender's"))?,
            ),
            false => None,
        };
        Ok(Self {
            token,
            extensions,
            identity,
        })
    }

    pub(in crate::frame) fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + Self::BYTES;
        let extensions = match self.identity {
            Some(_) => self.extensions | Extensions::IDENTITY,
            None => self.extensions.without(Extensions::IDENTITY),
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, 0]);
        out.extend_from_slice(&(Self::BYTES as u16).to_be_bytes());
        out.extend_from_slice(&extensions.0.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.token.to_be_bytes());
        if let Some(identity) = &self.identity {
            identity.write(out, Identity::SENDER);
        }
        out.resize(end, 0);
    }
}
