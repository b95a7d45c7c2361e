//! Which CPU each worker runs on.
//!
//! What the process may use is read once, before anything is pinned ([`AllowedCpus`]);
//! [`Placement::plan`] spreads workers over it; a worker's thread pins itself
//! ([`pin_current_thread`]), and every other thread of ours keeps the mask of the process
//! ([`spawn_side_thread`]), whoever starts it: affinity is inherited from the thread that
//! starts another.

mod allowed;
mod cores;
mod pin;
mod quota;
mod side_thread;

pub use allowed::AllowedCpus;
pub use cores::Cores;
pub use pin::{pin_current_thread, unpin_current_thread};
pub use side_thread::spawn_side_thread;

use std::fmt;

/// A CPU as the kernel numbers it. The numbers that a process may use need not begin at 0 nor
/// be consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub usize);

/// The CPU of each worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    cpus: Vec<CpuId>,
    distinct: usize,
}

/// Why workers cannot be placed, or a thread not be pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The kernel did not say which CPUs the process may use.
    #[error("cannot read the CPUs that this process may use: {0}")]
    Unreadable(String),
    /// A CPU was asked for that does not exist, or that the affinity mask or the cpuset of the
    /// process leaves out.
    #[error(
        "CPU {cpu} does not exist or is not allowed for this process; allowed: {allowed}. \
         Choose among these, or widen the affinity mask or cpuset of the process"
    )]
    NotAllowed {
        /// The CPU.
        cpu: CpuId,
        /// The CPUs that are allowed.
        allowed: String,
    },
    /// No worker was asked for.
    #[error("at least one core is needed")]
    NoWorkers,
    /// A thread could not be pinned, or is not where it was pinned to.
    #[error("cannot pin a thread to CPU {cpu}: {cause}; allowed: {allowed}")]
    NotPinned {
        /// The CPU.
        cpu: CpuId,
        /// What the kernel said.
        cause: String,
        /// The CPUs that the thread may use now.
        allowed: String,
    },
    /// A thread could not be given the mask of the process.
    #[error("cannot give a thread the CPUs of the process: {0}")]
    NotUnpinned(String),
}

impl Placement {
    /// Places workers inside the allowed set.
    ///
    /// [`Cores::Auto`] gives a worker to each allowed CPU, but not more than the CPU quota of
    /// the cgroup pays for; [`Cores::Count`] goes round the allowed CPUs, more than once if
    /// need be; [`Cores::List`] is taken as it is.
    ///
    /// # Errors
    /// [`PlacementError::NotAllowed`]: choose another CPU. [`PlacementError::NoWorkers`]: ask
    /// for one.
    pub fn plan(allowed: &AllowedCpus, requested: &Cores) -> Result<Self, PlacementError> {
        let cpus: Vec<CpuId> = match requested {
            Cores::Auto => allowed.round_robin(allowed.useful_workers()).collect(),
            Cores::Count(workers) => allowed.round_robin(*workers).collect(),
            Cores::List(cpus) => {
                cpus.iter().try_for_each(|cpu| allowed.check(*cpu))?;
                cpus.clone()
            }
        };
        if cpus.is_empty() {
            return Err(PlacementError::NoWorkers);
        }
        let mut distinct = cpus.clone();
        distinct.sort_unstable();
        distinct.dedup();
        Ok(Self {
            distinct: distinct.len(),
            cpus,
        })
    }

    /// The CPU of each worker, in the order of the workers.
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// Workers placed.
    pub fn workers(&self) -> usize {
        self.cpus.len()
    }

    /// What to warn about, if workers share a CPU: each then waits for the others to give it
    /// up, and a spinning one gives it up only every 50 microseconds.
    pub fn warning(&self) -> Option<String> {
        (self.distinct < self.cpus.len()).then(|| {
            format!(
                "{} workers share {} CPU{} ({}): latency suffers; ask for fewer cores or allow \
                 the process more CPUs",
                self.cpus.len(),
                self.distinct,
                if self.distinct == 1 { "" } else { "s" },
                allowed::ranges(&self.cpus)
            )
        })
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(cpus: &[usize], quota: Option<usize>) -> AllowedCpus {
        AllowedCpus::of_list(cpus.iter().map(|cpu| CpuId(*cpu)).collect(), quota)
    }

    fn planned(allowed: &AllowedCpus, requested: &str) -> Result<Vec<usize>, PlacementError> {
        let plan = Placement::plan(allowed, &requested.parse().unwrap())?;
        Ok(plan.cpus().iter().map(|cpu| cpu.0).collect())
    }

    #[test]
    fn workers_go_round_the_allowed_cpus_whatever_their_numbers() {
        let two_and_four = allowed(&[2, 4], None);
        assert_eq!(planned(&two_and_four, "auto").unwrap(), [2, 4]);
        assert_eq!(planned(&two_and_four, "1").unwrap(), [2]);
        assert_eq!(planned(&two_and_four, "5").unwrap(), [2, 4, 2, 4, 2]);
        assert_eq!(planned(&two_and_four, "4-4").unwrap(), [4]);
    }

    #[test]
    fn more_workers_than_cpus_is_a_warning_that_says_how_many() {
        let one = allowed(&[1], None);
        let plan = Placement::plan(&one, &Cores::Count(2)).unwrap();
        let warning = plan.warning().unwrap();
        assert!(
            warning.starts_with("2 workers share 1 CPU (1)"),
            "{warning}"
        );
        assert_eq!(Placement::plan(&one, &Cores::Auto).unwrap().warning(), None);
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_refused_with_the_list_of_those_that_are() {
        let some = allowed(&[0, 1, 2, 6], None);
        let refused = planned(&some, "0,99").unwrap_err().to_string();
        assert!(
            refused.contains("CPU 99") && refused.contains("0-2,6"),
            "{refused}"
        );
        assert_eq!(planned(&some, "0").unwrap_err(), PlacementError::NoWorkers);
    }

    #[test]
    fn as_many_workers_as_the_quota_pays_for_unless_more_are_asked_for() {
        let limited = allowed(&[0, 1, 2, 3], Some(2));
        assert_eq!(planned(&limited, "auto").unwrap(), [0, 1]);
        assert_eq!(planned(&limited, "3").unwrap(), [0, 1, 2]);
        let generous = allowed(&[0, 1], Some(8));
        assert_eq!(planned(&generous, "auto").unwrap(), [0, 1]);
    }
}
