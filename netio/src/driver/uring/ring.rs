//! The ring itself: its making, handing over and taking back.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{
    CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue,
};
use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, recv, send, sendmsg};

use super::chunks::ChunkRing;
use super::message::Message;
use super::token::{Operation, Token};
use super::{Mode, Settings};
use crate::driver::accept_error::RETRY_AFTER_NS;
use crate::driver::outgoing::Outgoing;

/// After this long accepting is tried again when descriptors or memory were missing.
static RETRY_AFTER: Timespec = Timespec::new().nsec(RETRY_AFTER_NS);

/// A ring of operations, for the thread that made it.
///
/// What is under way is counted: an operation counts from when it is queued until the kernel
/// says that nothing more comes of it.
pub(super) struct Ring {
    /// It carries the index under which the ring is registered with the thread. A call with
    /// that costs a third less than one with the descriptor.
    submitter: Submitter<'static>,
    ring: &'static IoUring,
    /// What the two above refer to.
    owned: NonNull<IoUring>,
    /// What the submission queue had no room for.
    backlog: VecDeque<squeue::Entry>,
    in_flight: usize,
    send_flags: u32,
    event: OwnedFd,
    event_is_registered: Cell<bool>,
}

/// An operation that came back, and whether more will come of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) token: Token,
    pub(super) result: Result<u32, Errno>,
    /// The buffer that the kernel chose.
    pub(super) buffer: Option<u16>,
    /// Whether the operation goes on.
    pub(super) more: bool,
}

impl Ring {
    /// A ring with the best that the kernel offers, beginning with `settings.mode`.
    pub(super) fn new(settings: &Settings) -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let owned = NonNull::from(Box::leak(Box::new(build(settings)?)));
        // SAFETY: it is there until `drop`, and nothing refers to it otherwise.
        let ring: &'static IoUring = unsafe { owned.as_ref() };
        let mut submitter = ring.submitter();
        // Kernels before 5.18 refuse; calls then name the descriptor.
        let _ = submitter.register_ring_fd();
        Ok(Self {
            submitter,
            ring,
            owned,
            backlog: VecDeque::new(),
            in_flight: 0,
            send_flags: send_flags(settings),
            event,
            event_is_registered: Cell::new(false),
        })
    }

    /// How many operations are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Accepts until it is cancelled or fails.
    pub(super) fn accept(&mut self, listener: &impl AsFd, token: Token) {
        let entry = opcode::AcceptMulti::new(raw(listener))
            .flags(SocketFlags::CLOEXEC.bits() as i32)
            .build();
        // SAFETY: the operation refers to no memory.
        unsafe { self.push(entry, token) };
    }

    /// Comes back after a while, for those who cannot accept at the moment.
    pub(super) fn retry_later(&mut self, token: Token) {
        let entry = opcode::Timeout::new(&raw const RETRY_AFTER).build();
        // SAFETY: the time is static.
        unsafe { self.push(entry, token) };
    }

    /// Receives into the chunks until it is cancelled, fails, or they are used up.
    pub(super) fn receive_chunks(&mut self, socket: &impl AsFd, chunks: &ChunkRing, token: Token) {
        let entry = opcode::RecvMulti::new(raw(socket), chunks.group()).build();
        // SAFETY: the memory that it receives into is that of the registered chunks, which
        // their owner keeps until nothing is in flight.
        unsafe { self.push(entry, token) };
    }

    /// Receives what is there, at most so many bytes, into one of the chunks.
    pub(super) fn receive_chunk(
        &mut self,
        socket: &impl AsFd,
        chunks: &ChunkRing,
        bytes: usize,
        token: Token,
    ) {
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(raw(socket), ptr::null_mut(), len)
            .buf_group(chunks.group())
            .build()
            .flags(squeue::Flags::BUFFER_SELECT);
        // SAFETY: as in `receive_chunks`.
        unsafe { self.push(entry, token) };
    }

    /// Receives what is there, at least a byte, to `target`.
    ///
    /// # Safety
    /// The memory is used by nothing else until the operation has come back.
    pub(super) unsafe fn receive_into(
        &mut self,
        socket: &impl AsFd,
        target: &mut [u8],
        token: Token,
    ) {
        let len = u32::try_from(target.len()).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(raw(socket), target.as_mut_ptr(), len).build();
        // SAFETY: the caller promises it.
        unsafe { self.push(entry, token) };
    }

    /// Sends a message, all of it where the socket does not break.
    ///
    /// # Safety
    /// The message and what it refers to stay where they are and as they are until the
    /// operation has come back.
    pub(super) unsafe fn send(&mut self, socket: &impl AsFd, message: &Message, token: Token) {
        let entry = opcode::SendMsg::new(raw(socket), message.as_ptr().cast())
            .flags(self.send_flags)
            .build();
        // SAFETY: the caller promises it.
        unsafe { self.push(entry, token) };
    }

    /// Comes back when a descriptor is readable.
    pub(super) fn poll_readable(&mut self, descriptor: &impl AsFd, token: Token) {
        let flags = u32::from(PollFlags::IN.bits());
        let entry = opcode::PollAdd::new(raw(descriptor), flags).build();
        // SAFETY: the operation refers to no memory.
        unsafe { self.push(entry, token) };
    }

    /// Ends an operation. It may be over already, and then nothing happens; it comes back once
    /// more in any case.
    pub(super) fn cancel(&mut self, token: Token) {
        self.cancel_matching(CancelBuilder::user_data(token.to_bits()));
    }

    /// Ends every operation.
    pub(super) fn cancel_all(&mut self) {
        self.cancel_matching(CancelBuilder::any());
    }

    /// Makes the kernel choose from chunks.
    pub(super) fn register(&self, chunks: &ChunkRing) -> io::Result<()> {
        // SAFETY: the owner of the chunks keeps their memory until nothing is in flight, and
        // unregisters them before it goes.
        unsafe {
            self.submitter.register_buf_ring_with_flags(
                chunks.address(),
                chunks.count(),
                chunks.group(),
                0,
            )
        }
    }

    pub(super) fn unregister(&self, chunks: &ChunkRing) -> io::Result<()> {
        self.submitter.unregister_buf_ring(chunks.group())
    }

    /// Whether something is queued that the kernel does not have.
    pub(super) fn has_queued(&self) -> bool {
        !self.backlog.is_empty() || !self.submission().is_empty()
    }

    /// Whether something has come back, or would by handing over.
    pub(super) fn has_done(&self) -> bool {
        self.is_behind() || !self.completion().is_empty()
    }

    /// Whether completions found no room. The kernel keeps them until it is called.
    pub(super) fn has_overflowed(&self) -> bool {
        self.submission().cq_overflow()
    }

    /// Hands over what is queued and lets work run that waits for a call; without either there
    /// is none. Never blocks.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            let queued = self.fill();
            if queued == 0 && !self.is_behind() {
                return Ok(());
            }
            match unless_momentary(self.submitter.submit())? {
                Some(taken) if taken > 0 && !self.backlog.is_empty() => {}
                _ => return Ok(()),
            }
        }
    }

    /// Hands over what is queued and blocks until something has come back or `timeout` is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.fill();
        if !self.backlog.is_empty() {
            self.submit()?;
        }
        let no_iowait = self.ring.params().is_feature_no_iowait();
        let flags = if no_iowait {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        let wanted = usize::from(self.completion().is_empty());
        // What the kernel cannot count to is for ever.
        let countable = timeout.filter(|timeout| i64::try_from(timeout.as_secs()).is_ok());
        let time = countable.map(Timespec::from);
        let mut args = SubmitArgs::new();
        if let Some(time) = &time {
            args = args.timespec(time);
        }
        let waited = self
            .submitter
            .submit_with_args_and_flags(wanted, &args, flags);
        unless_momentary(waited)?;
        Ok(())
    }

    /// Appends what has come back.
    pub(super) fn reap(&mut self, done: &mut Vec<Done>) {
        let before = self.in_flight;
        let mut over = 0;
        for entry in self.completion() {
            let flags = entry.flags();
            over += usize::from(!cqueue::more(flags));
            // Invariant: only tokens of ours were pushed.
            let Some(token) = Token::from_bits(entry.user_data()) else {
                debug_assert!(false, "an operation that nobody asked for");
                continue;
            };
            let result = entry.result();
            done.push(Done {
                token,
                result: u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result)),
                buffer: cqueue::buffer_select(flags),
                more: cqueue::more(flags),
            });
        }
        debug_assert!(over <= before, "more came back than was asked for");
        self.in_flight -= over;
    }

    /// A descriptor that is readable once something comes back after this call, and at once if
    /// something is there or `more` says so.
    pub(super) fn event(&self, more: bool) -> BorrowedFd<'_> {
        let registered = self.event_is_registered.replace(true)
            || self
                .submitter
                .register_eventfd(self.event.as_raw_fd())
                .is_ok();
        // What was rung before is taken back first. Whatever rings later, or has set the flags
        // before that, is seen by either the reader of the descriptor or the look below.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        if !registered || more || self.has_queued() || self.has_done() {
            // It fails only where the count is at its end, and then it is readable.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
            self.event_is_registered.set(registered);
        }
        self.event.as_fd()
    }

    /// Whether the kernel has more to give than it could without a call: work that waits for
    /// one, or completions that found no room.
    fn is_behind(&self) -> bool {
        let submission = self.submission();
        submission.taskrun() || submission.cq_overflow()
    }

    fn cancel_matching(&mut self, which: CancelBuilder) {
        let entry = opcode::AsyncCancel2::new(which).build();
        // SAFETY: the operation refers to no memory.
        unsafe { self.push(entry, Token::sole(Operation::Cancel)) };
    }

    /// # Safety
    /// What the entry refers to stays until it has come back.
    unsafe fn push(&mut self, entry: squeue::Entry, token: Token) {
        let entry = entry.user_data(token.to_bits());
        self.in_flight += 1;
        self.backlog.push_back(entry);
        self.fill();
    }

    /// Moves what it has room for to the submission queue, and returns how much is there.
    fn fill(&mut self) -> usize {
        let mut submission = self.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: who pushed it has promised it.
            if unsafe { submission.push(entry) }.is_err() {
                break;
            }
            self.backlog.pop_front();
        }
        submission.len()
    }

    fn submission(&self) -> SubmissionQueue<'static> {
        // SAFETY: there is one of them at a time: each lives for one method of this type, none
        // of which calls another that makes one while it has its own, and the type is for one
        // thread.
        unsafe { self.ring.submission_shared() }
    }

    fn completion(&self) -> CompletionQueue<'static> {
        // SAFETY: as for the submission queue.
        unsafe { self.ring.completion_shared() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Otherwise the thread keeps the ring. Where it is not registered, this is refused.
        let _ = self.submitter.unregister_ring_fd();
        // SAFETY: it was leaked from a box in `new`. The reference and the submitter are not
        // used after this, and do nothing when they are dropped.
        drop(unsafe { Box::from_raw(self.owned.as_ptr()) });
    }
}

/// Sends without waiting what the kernel takes, and says how many bytes that were.
pub(super) fn send_at_once(socket: &impl AsFd, outgoing: &Outgoing) -> Result<usize, Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if let Some(segment) = outgoing.sole() {
        return send(socket, segment, flags);
    }
    let (slices, count) = outgoing.slices();
    let mut nothing = SendAncillaryBuffer::default();
    sendmsg(socket, &slices[..count], &mut nothing, flags)
}

/// Receives without waiting what has come, and says how many bytes that were; 0 at the end.
pub(super) fn receive_at_once(socket: &impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (bytes, _) = recv(socket, buffer, RecvFlags::DONTWAIT)?;
    Ok(bytes)
}

fn send_flags(settings: &Settings) -> u32 {
    let all = if settings.wait_all {
        RecvFlags::WAITALL.bits()
    } else {
        0
    };
    SendFlags::NOSIGNAL.bits() | all
}

fn raw(descriptor: &impl AsFd) -> Fd {
    Fd(descriptor.as_fd().as_raw_fd())
}

/// Errors that pass: an interruption, a timeout, queues that must be emptied first.
pub(super) fn unless_momentary(entered: io::Result<usize>) -> io::Result<Option<usize>> {
    match entered {
        Ok(count) => Ok(Some(count)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::INTR | Errno::TIME | Errno::BUSY | Errno::AGAIN) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Tries modes from the wanted one down, since a kernel refuses flags that it does not know.
fn build(settings: &Settings) -> io::Result<IoUring> {
    let mut refused = None;
    for mode in Mode::ALL
        .into_iter()
        .skip_while(|mode| *mode != settings.mode)
    {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(settings.completions);
        match mode {
            Mode::DeferredBare | Mode::Deferred => {
                builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag()
                    .setup_submit_all();
                if mode == Mode::DeferredBare {
                    builder.setup_no_sqarray();
                }
            }
            Mode::Cooperative => {
                builder
                    .setup_coop_taskrun()
                    .setup_taskrun_flag()
                    .setup_submit_all();
            }
            Mode::Plain => {}
        }
        match builder.build(settings.submissions) {
            Ok(ring) => return Ok(ring),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                refused = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| Errno::INVAL.into()))
}

#[cfg(test)]
impl Ring {
    /// Whether nothing has come back that was not taken.
    pub(super) fn is_empty(&self) -> bool {
        self.completion().is_empty()
    }

    /// The descriptor of the ring itself.
    pub(super) fn descriptor(&self) -> OwnedFd {
        // SAFETY: the ring is open, and stays so for this call.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        descriptor.try_clone_to_owned().unwrap()
    }
}
