//! Why a segment could not be made, or why that of a peer was refused.

use std::io;

use rustix::fs::SealFlags;
use rustix::io::Errno;

/// A segment could not be made, or what a peer passed is none that may be used.
///
/// The first four are about this process, [`BellHasNoDescriptor`](OpenError::BellHasNoDescriptor)
/// about its caller, the others about the peer: refuse it, and use a socket if it is of another
/// version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The kernel has not so much memory left, for this process or its control group.
    #[error(
        "no memory for a segment of {bytes} bytes ({source}): make the arena of the edge smaller, or raise \
         the memory limit of the process"
    )]
    NoMemory {
        /// The size that was asked for.
        bytes: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The limit of the size of files, which counts for segments too, is lower.
    #[error(
        "a segment of {bytes} bytes is above the limit of file sizes, {limit} bytes: raise it (ulimit -f) or \
         make the arena of the edge smaller"
    )]
    FileSizeLimit {
        /// The size that was asked for.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The process or the system has no descriptor left.
    #[error("no descriptor left for a segment ({0}): raise the limit of open files (ulimit -n)")]
    NoDescriptors(io::Error),
    /// A call that is needed for segments failed in another way; a sandbox may deny it.
    #[error("{call} failed for a segment ({source}): allow it in the sandbox, or use a socket")]
    System {
        /// The call.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The bell of this side has no descriptor that a peer could ring.
    #[error(
        "the bell of an edge between processes needs a descriptor: make it with Bell::descriptor"
    )]
    BellHasNoDescriptor,
    /// What was passed is no memory that can be sealed.
    #[error("the peer passed a descriptor that is no memory segment ({0}): refuse it")]
    NotMemory(io::Error),
    /// The peer could still change the size of its segment or take its memory away.
    #[error("the segment of the peer lacks the seals {missing}: refuse it")]
    SealsMissing {
        /// Their names.
        missing: String,
    },
    /// The memory of the segment is not there up front, so that reading it could fail.
    #[error("the segment of the peer has {reserved} of its {bytes} bytes reserved: refuse it")]
    NotReserved {
        /// What is reserved.
        reserved: u64,
        /// The size of the segment.
        bytes: u64,
    },
    /// The file is not as long as the header says, or too short for any.
    #[error("the segment of the peer has {found} bytes where its header needs {needed}: refuse it")]
    WrongSize {
        /// The size of the file.
        found: u64,
        /// The size by the header.
        needed: u64,
    },
    /// The segment is larger than this side maps.
    #[error(
        "the segment of the peer has {found} bytes, at most {max} are mapped: give both sides the same limit"
    )]
    TooLarge {
        /// The size of the file.
        found: u64,
        /// The bound of this side.
        max: u64,
    },
    /// The segment does not begin as one of ours.
    #[error("the segment of the peer does not begin with the mark of one: refuse it")]
    NotASegment,
    /// The peer lays its segment out in another way.
    #[error(
        "the segment of the peer has layout version {theirs}, this side knows {ours}: use a socket"
    )]
    Version {
        /// The version of the peer.
        theirs: u32,
        /// The version of this side.
        ours: u32,
    },
    /// A field of the header has a value that it can't have.
    #[error("the segment of the peer has {found} in the header field {field}: refuse it")]
    WrongHeader {
        /// The field.
        field: &'static str,
        /// What stands there.
        found: u64,
    },
    /// What was passed as the peer's bell is none.
    #[error("the peer passed a descriptor that is no bell ({found}): refuse it")]
    NotABell {
        /// What it is.
        found: String,
    },
}

impl OpenError {
    /// Whether the peer is only of another version, so that a socket is the way to it.
    pub fn is_version(&self) -> bool {
        matches!(self, OpenError::Version { .. })
    }

    /// Sorts what the kernel said to a call that takes memory or a descriptor.
    pub(crate) fn from_call(call: &'static str, bytes: u64, errno: Errno) -> OpenError {
        let source = io::Error::from(errno);
        match errno {
            Errno::NOMEM | Errno::NOSPC | Errno::AGAIN => OpenError::NoMemory { bytes, source },
            Errno::MFILE | Errno::NFILE => OpenError::NoDescriptors(source),
            _ => OpenError::System { call, source },
        }
    }

    pub(crate) fn seals_missing(missing: SealFlags) -> OpenError {
        let names: Vec<&str> = missing.iter_names().map(|(name, _)| name).collect();
        OpenError::SealsMissing {
            missing: names.join(" "),
        }
    }
}
