//! What accepting may fail of.

use rustix::io::Errno;

/// The connection was over before it was accepted, or the call was interrupted: the next one
/// may be fine.
pub(super) fn is_of_the_connection(error: Errno) -> bool {
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
pub(super) fn is_of_the_moment(error: Errno) -> bool {
    matches!(
        error,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM
    )
}
