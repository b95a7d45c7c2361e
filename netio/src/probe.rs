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

/// The environment variable that denies io_uring to this process, with the value `deny`.
pub const DENY_VARIABLE: &str = "RINGWAY_IO_URING";

/// What is carried back by the self-test.
const TOKEN: u64 = 0x7269_6e67;

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
    ANSWER.get_or_init(|| {
        let forced = env::var_os(DENY_VARIABLE).is_some_and(|value| value == "deny");
        let tested = if forced {
            Err(forced_denial())
        } else {
            self_test()
        };
        tested.map_or_else(IoUring::Denied, |()| IoUring::Usable)
    })
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

fn forced_denial() -> Denial {
    Denial::new(
        format!("io_uring is switched off by {DENY_VARIABLE}=deny"),
        "unset the variable to use it",
    )
}

/// A filter may allow making a ring and forbid using it, so one operation goes all the way.
fn self_test() -> Result<(), Denial> {
    let mut ring = Ring::new(4).map_err(|error| denial("io_uring_setup", &error))?;
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|error| denial("io_uring_register", &error))?;
    if let Some(missing) = missing_operation(&probe) {
        return Err(Denial::new(
            format!("the kernel's io_uring has no operation {missing}"),
            "a kernel from 5.8 on has it",
        ));
    }
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

/// An operation that the executor cannot do without. It ends the process where one is missing.
fn missing_operation(probe: &Probe) -> Option<&'static str> {
    let needed = [
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
    let missing = needed.iter().find(|(_, code)| !probe.is_supported(*code));
    missing.map(|(name, _)| *name)
}

/// Names what most likely stands behind an error of one of io_uring's system calls.
fn denial(call: &str, error: &io::Error) -> Denial {
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
    fn the_answer_stays_the_same() {
        assert_eq!(io_uring(), io_uring());
    }

    #[test]
    fn a_kernel_that_offers_nothing_lacks_an_operation() {
        assert_eq!(missing_operation(&Probe::new()), Some("NOP"));
    }
}
