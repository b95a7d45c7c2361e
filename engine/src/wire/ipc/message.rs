//! The frame of an Arrow IPC message: its length and its metadata.

use arrow::ipc::{Message, MessageHeader, MetadataVersion, root_as_message};

use crate::limits::{IPC_BODY_BYTES_MAX, IPC_METADATA_BYTES_MAX};

use super::error::{IpcError, bounded};

/// Bytes of the prefix of a message.
pub const PREFIX_BYTES: usize = 8;

/// Bytes of a length, which is all the prefix that a message had before Arrow 0.15.
pub(super) const LENGTH_BYTES: usize = 4;

/// Begins every message since Arrow 0.15. As a length it would be negative, so that the two
/// forms can be told apart.
pub(super) const CONTINUATION: [u8; LENGTH_BYTES] = [0xff; LENGTH_BYTES];

/// The smallest flatbuffer that can be a message: an offset, a table, and what it points to.
const METADATA_BYTES_MIN: usize = 16;

/// What the first eight bytes of a message say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The stream ends here.
    End,
    /// Metadata of this length follows.
    Metadata {
        /// Its length, in bytes, at most [`IPC_METADATA_BYTES_MAX`].
        bytes: usize,
    },
}

impl Prefix {
    /// Reads the prefix in front of `bytes`, and says how many bytes it takes: 8, or 4 in the
    /// form of before Arrow 0.15, which has no ffffffff.
    ///
    /// # Errors
    /// [`IpcError`] when it is cut, or its length is none that a message can have.
    pub fn split(bytes: &[u8]) -> Result<(Self, usize), IpcError> {
        let truncated = IpcError::Truncated {
            within: "the length of a message",
        };
        let Some((first, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(truncated);
        };
        if *first != CONTINUATION {
            return Ok((Self::of_length(*first)?, LENGTH_BYTES));
        }
        match rest.first_chunk() {
            Some(length) => Ok((Self::of_length(*length)?, PREFIX_BYTES)),
            None => Err(truncated),
        }
    }

    fn of_length(length: [u8; LENGTH_BYTES]) -> Result<Self, IpcError> {
        let length = i32::from_le_bytes(length);
        if length == 0 {
            return Ok(Self::End);
        }
        let what = "bytes of metadata of a message";
        let bytes = bounded(what, i64::from(length), IPC_METADATA_BYTES_MAX)?;
        if bytes < METADATA_BYTES_MIN {
            return Err(IpcError::malformed(format_args!("{what}: {bytes}")));
        }
        Ok(Self::Metadata { bytes })
    }
}

/// A message whose metadata is sound: every table, vector and text in it is where it says.
#[derive(Clone, Copy, Debug)]
pub struct IpcMessage<'a> {
    message: Message<'a>,
    body_bytes: usize,
}

impl<'a> IpcMessage<'a> {
    /// Checks `metadata`, which is what followed a prefix.
    ///
    /// # Errors
    /// [`IpcError`] when it is not sound, is of a version or kind that is not supported, or
    /// announces a body that is too large.
    pub fn open(metadata: &'a [u8]) -> Result<Self, IpcError> {
        let message = root_as_message(metadata).map_err(IpcError::malformed)?;
        let version = message.version();
        if version != MetadataVersion::V4 && version != MetadataVersion::V5 {
            return Err(IpcError::malformed(format_args!(
                "metadata of version {version:?}; versions 4 and 5 can be read"
            )));
        }
        let kinds = [
            MessageHeader::Schema,
            MessageHeader::DictionaryBatch,
            MessageHeader::RecordBatch,
        ];
        let kind = message.header_type();
        if !kinds.contains(&kind) || message.header().is_none() {
            return Err(IpcError::malformed(format_args!(
                "a message of kind {kind:?}"
            )));
        }
        let what = "bytes of the body of a message";
        let body_bytes = bounded(what, message.bodyLength(), IPC_BODY_BYTES_MAX)?;
        Ok(Self {
            message,
            body_bytes,
        })
    }

    /// Bytes of the body, which follows the metadata; at most [`IPC_BODY_BYTES_MAX`].
    pub const fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    pub(super) const fn message(&self) -> &Message<'a> {
        &self.message
    }
}
