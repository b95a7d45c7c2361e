//! What accepting may fail of, and what follows from it.

use std::io;
use std::mem;

use rustix::io::Errno;

use super::{Completion, ListenerId};

/// How long accepting pauses when no descriptor or memory is left, in nanoseconds.
pub(super) const RETRY_AFTER_NS: u32 = 50_000_000;

/// What a listener does after accepting has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// It goes on.
    Again,
    /// It goes on after [`RETRY_AFTER_NS`].
    Later,
    /// It is broken.
    Stop,
}

/// What the caller knows of the failures of one listener.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// Accepting waits.
    told: bool,
}

impl Failures {
    /// Somebody was accepted.
    pub(super) fn clear(&mut self) {
        self.told = false;
    }

    /// Judges an error, and tells the caller if it matters.
    pub(super) fn judge(
        &mut self,
        error: Errno,
        listener: ListenerId,
        done: &mut Vec<Completion>,
    ) -> Then {
        if is_of_the_connection(error) {
            return Then::Again;
        }
        let is_momentary = is_of_the_moment(error);
        let error = io::Error::from(error);
        if !is_momentary {
            done.push(Completion::ListenerFailed { listener, error });
            return Then::Stop;
        }
        if !mem::replace(&mut self.told, true) {
            done.push(Completion::AcceptDelayed { listener, error });
        }
        Then::Later
    }
}

/// The connection was over before it was accepted, or the call was interrupted: the next one
/// may be fine.
fn is_of_the_connection(error: Errno) -> bool {
    matches!(
        error,
        Errno::INTR
            | Errno::AGAIN
            | Errno::CONNABORTED
            | Errno::PERM
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
            | Errno::NETDOWN
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::NONET
            | Errno::TIMEDOUT
    )
}

/// Something is used up that others give back.
fn is_of_the_moment(error: Errno) -> bool {
    matches!(
        error,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: ListenerId = ListenerId {
        slot: 3,
        generation: 1,
    };

    #[test]
    fn what_is_used_up_is_told_once_until_somebody_is_accepted() {
        let (mut failures, mut done) = (Failures::default(), Vec::new());
        for error in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert_eq!(failures.judge(error, LISTENER, &mut done), Then::Later);
        }
        assert!(matches!(
            done[..],
            [Completion::AcceptDelayed {
                listener: LISTENER,
                ..
            }]
        ));
        failures.clear();
        assert_eq!(
            failures.judge(Errno::NOBUFS, LISTENER, &mut done),
            Then::Later
        );
        assert_eq!(done.len(), 2);
    }

    #[test]
    fn a_connection_that_is_over_already_hinders_no_other() {
        let (mut failures, mut done) = (Failures::default(), Vec::new());
        for error in [Errno::CONNABORTED, Errno::PROTO, Errno::PERM, Errno::INTR] {
            assert_eq!(failures.judge(error, LISTENER, &mut done), Then::Again);
        }
        assert!(done.is_empty());
    }

    #[test]
    fn a_broken_listener_says_why() {
        let mut done = Vec::new();
        let then = Failures::default().judge(Errno::BADF, LISTENER, &mut done);
        assert_eq!(then, Then::Stop);
        let [Completion::ListenerFailed { listener, error }] = &done[..] else {
            panic!("{done:?}");
        };
        assert_eq!((*listener, error.raw_os_error()), (LISTENER, Some(9)));
    }
}
