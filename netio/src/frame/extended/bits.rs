//! Which extensions there are.

use std::ops::BitOr;

/// A set of extensions, as the offer and its answer carry it. Bits without a name are kept
/// when read and never accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extensions(pub u32);

impl Extensions {
    /// No extension.
    pub const NONE: Self = Self(0);
    /// The schema goes over the edge once, not in every frame.
    pub const SCHEMA_ONCE: Self = Self(1);
    /// Grants limit bytes beside rows, and are absolute.
    pub const BYTE_CREDIT: Self = Self(1 << 1);
    /// Elements carry sequence numbers.
    pub const SEQUENCE: Self = Self(1 << 2);
    /// An end says how, an abort says why, and the receiver confirms the end.
    pub const REASONS: Self = Self(1 << 3);
    /// Both sides say which edge of which job they are.
    pub const IDENTITY: Self = Self(1 << 4);
    /// Bodies may be compressed with LZ4.
    pub const LZ4: Self = Self(1 << 5);
    /// Bodies may be compressed with ZSTD.
    pub const ZSTD: Self = Self(1 << 6);
    /// Frames to the receiver are padded, so that bodies are aligned to 64 bytes.
    pub const ALIGNED: Self = Self(1 << 7);
    /// Small frames to the receiver are followed by some that mean nothing.
    pub const FILLER: Self = Self(1 << 8);

    /// What every negotiated connection has: these are accepted together or not at all.
    pub const CORE: Self =
        Self(Self::SCHEMA_ONCE.0 | Self::BYTE_CREDIT.0 | Self::SEQUENCE.0 | Self::REASONS.0);
    /// All that have a name.
    pub const ALL: Self = Self(
        Self::CORE.0
            | Self::IDENTITY.0
            | Self::LZ4.0
            | Self::ZSTD.0
            | Self::ALIGNED.0
            | Self::FILLER.0,
    );

    /// Whether all of `other` are in it.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those that are in both.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether bodies of this codec may be sent.
    pub fn allow(self, codec: Codec) -> bool {
        match codec {
            Codec::None => true,
            Codec::Lz4 => self.has(Self::LZ4),
            Codec::Zstd => self.has(Self::ZSTD),
        }
    }
}

impl BitOr for Extensions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How the buffers of a body are compressed. Arrow IPC says the same inside of the body; here
/// it can be refused and counted without looking there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// ZSTD.
    Zstd,
}

impl Codec {
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        [Self::None, Self::Lz4, Self::Zstd]
            .into_iter()
            .find(|codec| codec.byte() == byte)
    }
}
