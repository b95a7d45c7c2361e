//! Passing descriptors to another process over a Unix stream, with a few bytes that say what
//! they are for.
//!
//! Exactly so many descriptors come as both sides expect, with the first byte, and they are
//! closed at once if anything is wrong. What the bytes mean is up to the caller.

use core::fmt;
use core::mem::MaybeUninit;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// How long the bytes may be that go with the descriptors.
pub const HELLO_BYTES_MAX: usize = 4096;

/// How many descriptors go in one message at most.
const DESCRIPTORS_MAX: usize = 16;

/// The length of the hello goes before it, little endian.
const PREFIX_BYTES: usize = 4;

/// Descriptors were not sent, or not received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The stream takes nothing now. Wait until it is writable and send again.
    #[error("the stream to the peer takes nothing now: send again when it is writable")]
    WouldBlock,
    /// The peer closed the stream first. Nothing was passed.
    #[error("the peer closed the stream before it had passed its descriptors")]
    Closed,
    /// The hello is longer than [`HELLO_BYTES_MAX`].
    #[error("a hello of {bytes} bytes, at most {HELLO_BYTES_MAX} are passed: refuse the peer")]
    HelloTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The peer passed more or fewer descriptors, or not with the first byte.
    #[error("the peer passed {found} descriptors where {wanted} are expected: refuse it")]
    WrongCount {
        /// How many came.
        found: usize,
        /// How many were expected.
        wanted: usize,
    },
    /// The peer passed descriptors for which this process has no room, or others than files.
    #[error(
        "the peer passed what this process could not take: raise the limit of open files, or refuse it"
    )]
    Truncated,
    /// The stream failed otherwise.
    #[error("passing descriptors failed: {0}")]
    Io(#[from] io::Error),
}

/// Sends a hello and descriptors in one piece, or nothing.
///
/// # Errors
///
/// [`PassError::WouldBlock`]: the stream is full, send again later. [`PassError::HelloTooLong`]:
/// shorten it. [`PassError::Closed`] and [`PassError::Io`]: the peer is gone, give up.
///
/// # Panics
///
/// If there are more than 16 descriptors.
pub fn send(
    stream: impl AsFd,
    hello: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), PassError> {
    assert!(
        descriptors.len() <= DESCRIPTORS_MAX,
        "at most 16 descriptors in one message"
    );
    check_length(hello.len())?;
    let prefix = (hello.len() as u32).to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // Invariant: the space is for as many as were asserted above.
    let pushed = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    debug_assert!(pushed);
    let parts = [IoSlice::new(&prefix), IoSlice::new(hello)];
    let sent =
        retry_on_intr(|| sendmsg(stream.as_fd(), &parts, &mut ancillary, SendFlags::NOSIGNAL));
    match sent {
        Ok(sent) if sent == PREFIX_BYTES + hello.len() => Ok(()),
        // So few bytes go in one piece; if the kernel splits them all the same, the stream is of no use.
        Ok(_) => Err(PassError::Io(io::ErrorKind::WriteZero.into())),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// What a peer passed.
#[derive(Debug)]
pub struct Received<const N: usize> {
    /// The bytes that came with the descriptors.
    pub hello: Vec<u8>,
    /// The descriptors, in the order in which they were sent, closed on exec.
    pub descriptors: [OwnedFd; N],
}

/// Receives one hello with `N` descriptors, however the stream cuts it up.
pub struct Receiving<const N: usize> {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl<const N: usize> Receiving<N> {
    /// Nothing has come yet.
    pub fn new() -> Receiving<N> {
        const { assert!(N <= DESCRIPTORS_MAX) };
        Receiving {
            bytes: Vec::new(),
            descriptors: Vec::new(),
        }
    }

    /// Reads what is there. `None` means that there is more to come: call it again when the
    /// stream is readable. A stream that blocks is waited for. It reads no byte beyond the hello.
    ///
    /// # Errors
    ///
    /// All are final, and what came is closed: drop the stream, or tell the peer by it. Never
    /// [`PassError::WouldBlock`].
    pub fn poll(&mut self, stream: impl AsFd) -> Result<Option<Received<N>>, PassError> {
        let outcome = self.receive(stream.as_fd());
        if outcome.is_err() {
            self.descriptors.clear();
        }
        outcome
    }

    fn receive(&mut self, stream: BorrowedFd<'_>) -> Result<Option<Received<N>>, PassError> {
        while let Some(missing) = self.missing()? {
            let mut piece = vec![0; missing];
            let read = match self.read(stream, &mut piece) {
                Err(PassError::WouldBlock) => return Ok(None),
                other => other?,
            };
            if read == 0 {
                return Err(PassError::Closed);
            }
            self.bytes.extend_from_slice(&piece[..read]);
            self.check_count()?;
        }
        let hello = self.bytes.split_off(PREFIX_BYTES);
        self.bytes.clear();
        let found = self.descriptors.len();
        let descriptors = std::mem::take(&mut self.descriptors).try_into();
        let descriptors = descriptors.map_err(|_| PassError::WrongCount { found, wanted: N })?;
        Ok(Some(Received { hello, descriptors }))
    }

    /// How many bytes to ask for next; `None` when all are there.
    fn missing(&self) -> Result<Option<usize>, PassError> {
        let Some(prefix) = self.bytes.first_chunk::<PREFIX_BYTES>() else {
            return Ok(Some(PREFIX_BYTES - self.bytes.len()));
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        check_length(length)?;
        let missing = PREFIX_BYTES + length - self.bytes.len();
        Ok((missing > 0).then_some(missing))
    }

    fn read(&mut self, stream: BorrowedFd<'_>, piece: &mut [u8]) -> Result<usize, PassError> {
        // One more than there may be, so that too many are told from enough.
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(piece)];
        let message =
            retry_on_intr(|| recvmsg(stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC));
        let message = message.map_err(from_errno)?;
        for passed in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = passed {
                self.descriptors.extend(descriptors);
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(PassError::Truncated);
        }
        Ok(message.bytes)
    }

    /// The descriptors are all there with the first byte, and none come later.
    fn check_count(&self) -> Result<(), PassError> {
        let found = self.descriptors.len();
        if found == N {
            Ok(())
        } else {
            Err(PassError::WrongCount { found, wanted: N })
        }
    }
}

impl<const N: usize> Default for Receiving<N> {
    fn default() -> Self {
        Receiving::new()
    }
}

impl<const N: usize> fmt::Debug for Receiving<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving")
            .field("bytes", &self.bytes.len())
            .field("descriptors", &self.descriptors)
            .finish()
    }
}

/// Who is at the other end of a Unix stream, as the kernel noted when it was connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process: its number as this process sees it, 0 if it can't. It may belong to another
    /// one by now, so it is good for a message only.
    pub pid: i32,
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
}

impl Peer {
    /// Whether the peer has the effective user of this process.
    pub fn is_same_user(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}

/// Asks the kernel who is at the other end.
///
/// # Errors
///
/// The stream is no Unix socket, or it is not connected: refuse it.
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    // Not by rustix, which takes the number of a process for no zero: it is one if that process
    // is in a namespace that this one can't see.
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes into `found`, which is that long and of
    // integers.
    let done = unsafe {
        libc::getsockopt(
            stream.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut bytes,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if bytes as usize != size_of::<libc::ucred>() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Peer {
        pid: found.pid,
        uid: found.uid,
        gid: found.gid,
    })
}

fn check_length(bytes: usize) -> Result<(), PassError> {
    if bytes > HELLO_BYTES_MAX {
        return Err(PassError::HelloTooLong { bytes });
    }
    Ok(())
}

fn from_errno(errno: Errno) -> PassError {
    match errno {
        Errno::AGAIN => PassError::WouldBlock,
        Errno::PIPE | Errno::CONNRESET => PassError::Closed,
        other => PassError::Io(other.into()),
    }
}
