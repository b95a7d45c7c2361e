//! Where workers run, and what hosts them.
//!
//! Goal: workers run inside the CPUs that the process may use and nothing else is moved;
//! both hosts run the same tasks with the same results; where io_uring or memory is denied, the
//! plain thread takes over with a cause that names it, and nothing panics.
//!
//! Method: tasks that count their steps, in this process, and again in processes of their own
//! whose affinity, limits or system calls are cut.

mod child;
mod cpus;
mod denied;
mod drivers;
mod edges;
mod hosts;
mod rig;
mod seccomp;
