//! Whether io_uring may be used here.
//!
//! It is often denied: the default profiles of container runtimes refuse its system calls, a
//! sysctl switches it off, old kernels lack it. A library that assumes it panics then, so
//! nothing of ours touches io_uring before it was probed.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::sync::OnceLock;

use io_uring::{IoUring as Ring, Probe, opcode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::driver::uring;

/// The environment variable that denies io_uring to this process, with the value `deny`.
pub const DENY_VARIABLE: &str = "RINGWAY_IO_URING";

/// What is carried back by the self-test.
const TOKEN: u64 = 0x7269_6e67;

/// The first kernel whose receiving goes on by itself.
const DRIVER_KERNEL: &str = "6.0";

/// What the driver sends through its ring.
const DRIVER_OPERATIONS: [(&str, u8); 6] = [
    ("ACCEPT", opcode::AcceptMulti::CODE),
    ("ASYNC_CANCEL", opcode::AsyncCancel2::CODE),
    ("POLL_ADD", opcode::PollAdd::CODE),
    ("RECV", opcode::RecvMulti::CODE),
    ("SENDMSG", opcode::SendMsg::CODE),
    ("TIMEOUT", opcode::Timeout::CODE),
];

/// What the executor cannot do without. It ends the process where one is missing.
const EXECUTOR_OPERATIONS: [(&str, u8); 23] = [
    ("NOP", opcode::Nop::CODE),
    ("READV", opcode::Readv::CODE),
    ("WRITEV", opcode::Writev::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("READ_FIXED", opcode::ReadFixed::CODE),
    ("WRITE_FIXED", opcode::WriteFixed::CODE),
    ("POLL_ADD", opcode::PollAdd::CODE),
    ("POLL_REMOVE", opcode::PollRemove::CODE),
    ("SENDMSG", opcode::SendMsg::CODE),
    ("RECVMSG", opcode::RecvMsg::CODE),
    ("TIMEOUT", opcode::Timeout::CODE),
    ("TIMEOUT_REMOVE", opcode::TimeoutRemove::CODE),
    ("ACCEPT", opcode::Accept::CODE),
    ("LINK_TIMEOUT", opcode::LinkTimeout::CODE),
    ("CONNECT", opcode::Connect::CODE),
    ("FALLOCATE", opcode::Fallocate::CODE),
    ("OPENAT", opcode::OpenAt::CODE),
    ("CLOSE", opcode::Close::CODE),
    ("STATX", opcode::Statx::CODE),
    ("READ", opcode::Read::CODE),
    ("WRITE", opcode::Write::CODE),
    ("SEND", opcode::Send::CODE),
    ("RECV", opcode::Recv::CODE),
];

/// Whether io_uring may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoUring {
    /// An operation went through a ring and came back.
    Usable,
    /// It cannot be used.
    Denied(Denial),
}

/// Why something of the kernel cannot be used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Denial {
    /// The cause, such as `io_uring_setup: operation not permitted`.
    pub cause: String,
    /// What whoever runs the process can do.
    pub what_to_do: String,
}

/// Probes io_uring by sending an operation through a ring. The answer is that of the first
/// call, ever after.
pub fn io_uring() -> &'static IoUring {
    static ANSWER: OnceLock<IoUring> = OnceLock::new();
    ANSWER.get_or_init(|| answer(self_test))
}

/// Probes what the driver over io_uring needs, by moving bytes with it. The answer is that of the
/// first call, ever after.
pub fn driver() -> &'static IoUring {
    static ANSWER: OnceLock<IoUring> = OnceLock::new();
    ANSWER.get_or_init(|| answer(driver_test))
}

impl IoUring {
    /// `Ok` if usable.
    ///
    /// # Errors
    /// Why it is not: fall back, and tell.
    pub fn usable(&self) -> Result<(), Denial> {
        match self {
            Self::Usable => Ok(()),
            Self::Denied(denial) => Err(denial.clone()),
        }
    }
}

impl Denial {
    pub(crate) fn new(cause: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            what_to_do: what_to_do.into(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.what_to_do)
    }
}

/// The locked memory that this process may have, in bytes; `None` for any amount.
pub(crate) fn memlock_max_bytes() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

fn answer(test: impl FnOnce() -> Result<(), Denial>) -> IoUring {
    let forced = env::var_os(DENY_VARIABLE).is_some_and(|value| value == "deny");
    let tested = if forced { Err(forced_denial()) } else { test() };
    tested.map_or_else(IoUring::Denied, |()| IoUring::Usable)
}

fn forced_denial() -> Denial {
    Denial::new(
        format!("io_uring is switched off by {DENY_VARIABLE}=deny"),
        "unset the variable to use it",
    )
}

/// A filter may allow making a ring and forbid using it, so one operation goes all the way.
fn self_test() -> Result<(), Denial> {
    let (mut ring, offered) = small_ring()?;
    require(&EXECUTOR_OPERATIONS, &offered, "5.8")?;
    let nop = opcode::Nop::new().build().user_data(TOKEN);
    // SAFETY: the operation refers to no memory and no descriptor.
    let queued = unsafe { ring.submission().push(&nop) };
    // Invariant: the ring was made with more than one entry, and this is its first.
    queued.expect("a new ring has room for one operation");
    ring.submit_and_wait(1)
        .map_err(|error| denial("io_uring_enter", &error))?;
    let returned = ring
        .completion()
        .next()
        .map(|done| (done.user_data(), done.result()));
    if returned == Some((TOKEN, 0)) {
        return Ok(());
    }
    Err(Denial::new(
        format!("an operation sent through io_uring came back as {returned:?}"),
        "run on another kernel",
    ))
}

/// The driver itself tells best whether it works.
fn driver_test() -> Result<(), Denial> {
    let (ring, offered) = small_ring()?;
    require(&DRIVER_OPERATIONS, &offered, DRIVER_KERNEL)?;
    let parameters = ring.params();
    if !parameters.is_feature_ext_arg() || !parameters.is_feature_nodrop() {
        return Err(lacks("waiting with a time limit", DRIVER_KERNEL));
    }
    uring::self_test().map_err(|failure| {
        if Errno::from_io_error(&failure.error) == Some(Errno::INVAL) {
            lacks(failure.step, DRIVER_KERNEL)
        } else {
            denial(failure.step, &failure.error)
        }
    })
}

fn small_ring() -> Result<(Ring, Probe), Denial> {
    let ring = Ring::new(4).map_err(|error| denial("io_uring_setup", &error))?;
    let mut offered = Probe::new();
    ring.submitter()
        .register_probe(&mut offered)
        .map_err(|error| denial("io_uring_register", &error))?;
    Ok((ring, offered))
}

fn require(needed: &[(&str, u8)], offered: &Probe, kernel: &str) -> Result<(), Denial> {
    let missing = needed.iter().find(|(_, code)| !offered.is_supported(*code));
    missing.map_or(Ok(()), |(name, _)| {
        Err(lacks(&format!("operation {name}"), kernel))
    })
}

fn lacks(what: &str, kernel: &str) -> Denial {
    Denial::new(
        format!("the kernel's io_uring has no {what}"),
        format!("a kernel from {kernel} on has it"),
    )
}

/// Names what most likely stands behind an error of one of io_uring's system calls.
pub(crate) fn denial(call: &str, error: &io::Error) -> Denial {
    let cause = format!("{call} failed ({error})");
    let what_to_do = match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => permission(switch().as_deref()),
        Some(Errno::NOSYS) => {
            "the kernel is older than 5.8 or built without io_uring, or a sandbox \
             hides it: run on another kernel, or let the sandbox pass it"
                .to_owned()
        }
        Some(Errno::NOMEM) => format!(
            "the process may lock too little memory ({}): raise `ulimit -l`",
            memlock_max_bytes().map_or("no limit".to_owned(), |max| format!("{max} bytes"))
        ),
        Some(Errno::MFILE | Errno::NFILE) => {
            "no file descriptor is left: raise `ulimit -n`".to_owned()
        }
        _ => "run on another kernel".to_owned(),
    };
    Denial::new(cause, what_to_do)
}

/// The kernel's switch: `0` allows io_uring, `1` to a group, `2` to nobody.
fn switch() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    Some(text.trim().to_owned())
}

fn permission(switch: Option<&str>) -> String {
    match switch {
        Some("1") => "the sysctl kernel.io_uring_disabled is 1: join the group of \
             kernel.io_uring_group, or set it to 0"
            .to_owned(),
        Some("2") => "the sysctl kernel.io_uring_disabled is 2: set it to 0".to_owned(),
        _ => "a seccomp filter denies it, as the default profiles of container runtimes do: \
             allow io_uring_setup, io_uring_enter and io_uring_register in the profile"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(call: &str, errno: Errno) -> String {
        denial(call, &io::Error::from(errno)).to_string()
    }

    #[test]
    fn a_denial_names_the_call_the_likely_cause_and_what_to_do() {
        let missing = said("io_uring_setup", Errno::NOSYS);
        assert!(missing.starts_with("io_uring_setup failed"), "{missing}");
        assert!(missing.contains("kernel is older"), "{missing}");
        let memory = said("io_uring_setup", Errno::NOMEM);
        assert!(memory.contains("ulimit -l"), "{memory}");
        let descriptors = said("io_uring_setup", Errno::MFILE);
        assert!(descriptors.contains("ulimit -n"), "{descriptors}");
    }

    #[test]
    fn a_switched_off_kernel_is_told_apart_from_a_filter() {
        assert!(permission(Some("2")).contains("kernel.io_uring_disabled is 2"));
        assert!(permission(Some("1")).contains("io_uring_group"));
        assert!(permission(Some("0")).contains("seccomp"));
        assert!(permission(None).contains("seccomp"));
    }

    #[test]
    fn the_answers_stay_the_same() {
        assert_eq!(io_uring(), io_uring());
        assert_eq!(driver(), driver());
    }

    #[test]
    fn a_kernel_that_offers_nothing_lacks_an_operation() {
        let nothing = Probe::new();
        for (needed, first) in [
            (&EXECUTOR_OPERATIONS[..], "no operation NOP"),
            (&DRIVER_OPERATIONS[..], "no operation ACCEPT"),
        ] {
            let denial = require(needed, &nothing, "6.0").unwrap_err().to_string();
            assert!(
                denial.contains(first) && denial.contains("from 6.0 on"),
                "{denial}"
            );
        }
    }

    #[test]
    fn a_driver_that_is_denied_is_not_made() {
        let made = uring::UringDriver::new();
        assert_eq!(made.err(), driver().usable().err());
    }
}
