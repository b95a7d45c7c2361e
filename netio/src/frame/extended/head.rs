//! What the negotiated form puts before bodies, after control elements, and into grants.

use super::Codec;
use crate::frame::fields::{byte, u32_at, u64_at};
use crate::frame::{FrameError, HEAD_BYTES, Kind};

/// The place of an element in its stream. Control elements carry it behind their body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// How many elements went before, since the answer to the offer.
    pub sequence: u64,
    /// Which edge of the connection; 0 as long as a connection has one.
    pub channel: u32,
}

impl Tag {
    /// Its length: the sequence, the channel, four bytes of zeros.
    pub const BYTES: usize = 16;

    /// The tag at `at` in the body of a frame of this kind.
    ///
    /// # Errors
    /// [`FrameError::Short`] where the body ends before it does. End the connection.
    pub fn parse(kind: Kind, body: &[u8], at: usize) -> Result<Self, FrameError> {
        let fields = u64_at(body, at).zip(u32_at(body, at + 8));
        match fields {
            Some((sequence, channel)) if body.len() >= at + Self::BYTES => {
                Ok(Self { sequence, channel })
            }
            _ => Err(FrameError::Short {
                kind,
                body_bytes: body.len(),
                needed_bytes: at + Self::BYTES,
            }),
        }
    }

    pub(in crate::frame) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.channel.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    }
}

/// What stands between the header and the body of a schema or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The place in the stream.
    pub tag: Tag,
    /// How many rows the body has; 0 for a schema.
    pub rows: u32,
    /// How the body is compressed.
    pub codec: Codec,
}

impl Head {
    /// The head of a frame of this kind.
    ///
    /// # Errors
    /// [`FrameError::Short`] and [`FrameError::Malformed`] (a codec that nobody knows). End
    /// the connection.
    pub fn parse(kind: Kind, head: &[u8]) -> Result<Self, FrameError> {
        let tag = Tag::parse(kind, head, 0)?;
        let fields = u32_at(head, 16).zip(byte(head, 20));
        let Some((rows, codec)) = fields.filter(|_| head.len() >= HEAD_BYTES) else {
            return Err(FrameError::Short {
                kind,
                body_bytes: head.len(),
                needed_bytes: HEAD_BYTES,
            });
        };
        let codec = Codec::from_byte(codec).ok_or(FrameError::Malformed {
            kind,
            what: "a compression that has no name",
        })?;
        Ok(Self { tag, rows, codec })
    }

    pub(in crate::frame) fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + HEAD_BYTES;
        self.tag.write(out);
        out.extend_from_slice(&self.rows.to_be_bytes());
        out.push(self.codec.byte());
        out.resize(end, 0);
    }
}

/// How much a sender may have sent, ever since the answer to the offer. Limits never fall, so
/// a grant that is lost in a newer one costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grant {
    /// Which edge of the connection; 0 as long as a connection has one.
    pub channel: u32,
    /// Rows of batches.
    pub rows_limit: u64,
    /// Bytes of the bodies of batches and schemas.
    pub bytes_limit: u64,
}

impl Grant {
    /// Its length: the channel, four bytes of zeros, the two limits.
    pub const BYTES: usize = 24;

    /// The grant in a body.
    ///
    /// # Errors
    /// [`FrameError::Short`] where the body ends before it does. End the connection.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let limits = u64_at(body, 8).zip(u64_at(body, 16));
        match u32_at(body, 0).zip(limits) {
            Some((channel, (rows_limit, bytes_limit))) => Ok(Self {
                channel,
                rows_limit,
                bytes_limit,
            }),
            None => Err(FrameError::Short {
                kind: Kind::GRANT,
                body_bytes: body.len(),
                needed_bytes: Self::BYTES,
            }),
        }
    }

    pub(in crate::frame) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.channel.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.rows_limit.to_be_bytes());
        out.extend_from_slice(&self.bytes_limit.to_be_bytes());
    }
}
