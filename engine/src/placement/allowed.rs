//! The CPUs that the process may use.

use std::fmt;
use std::sync::OnceLock;

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::quota::cpu_quota;
use super::{CpuId, PlacementError};

static OF_PROCESS: OnceLock<Result<AllowedCpus, PlacementError>> = OnceLock::new();

/// The CPUs that the process may use: its affinity mask within its cpuset, and the CPU quota
/// of its cgroup as a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedCpus {
    cpus: Vec<CpuId>,
    quota: Option<usize>,
}

impl AllowedCpus {
    /// What this process may use, read once and the same ever after.
    ///
    /// It is the mask of the main thread, whichever thread asks first, since that of a pinned
    /// thread says nothing about the process. An embedder that pins its main thread calls this
    /// before it does.
    ///
    /// # Errors
    /// [`PlacementError::Unreadable`]: the kernel refuses to tell, or numbers its CPUs beyond
    /// 1023. Run without pinning.
    pub fn of_process() -> Result<&'static Self, PlacementError> {
        OF_PROCESS.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The allowed CPUs, ascending. Never empty.
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// Whether `cpu` is allowed.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.cpus.binary_search(&cpu).is_ok()
    }

    /// CPUs that the quota of the cgroup pays for, rounded up; `None` without a quota. More
    /// workers than this are throttled together.
    pub fn quota(&self) -> Option<usize> {
        self.quota
    }

    /// Workers that are of use: one for each allowed CPU, as far as the quota goes.
    pub fn useful_workers(&self) -> usize {
        self.quota.unwrap_or(usize::MAX).clamp(1, self.cpus.len())
    }

    pub(super) fn of_list(mut cpus: Vec<CpuId>, quota: Option<usize>) -> Self {
        cpus.sort_unstable();
        cpus.dedup();
        assert!(!cpus.is_empty(), "a process runs somewhere");
        Self { cpus, quota }
    }

    pub(super) fn round_robin(&self, workers: usize) -> impl Iterator<Item = CpuId> + '_ {
        self.cpus.iter().copied().cycle().take(workers)
    }

    pub(super) fn check(&self, cpu: CpuId) -> Result<(), PlacementError> {
        if self.contains(cpu) {
            return Ok(());
        }
        Err(PlacementError::NotAllowed {
            cpu,
            allowed: self.to_string(),
        })
    }

    pub(super) fn to_set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        self.cpus.iter().for_each(|cpu| set.set(cpu.0));
        set
    }
}

impl fmt::Display for AllowedCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(&self.cpus))
    }
}

/// CPU ids as `0,2-3`, ascending.
pub(super) fn ranges(cpus: &[CpuId]) -> String {
    let mut sorted: Vec<usize> = cpus.iter().map(|cpu| cpu.0).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|left, right| left + 1 == *right);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [only] => only.to_string(),
            run => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    texts.join(",")
}

pub(super) fn cpus_of(set: &CpuSet) -> Vec<CpuId> {
    let ids = 0..CpuSet::MAX_CPU;
    ids.filter(|cpu| set.is_set(*cpu)).map(CpuId).collect()
}

fn read() -> Result<AllowedCpus, PlacementError> {
    // The id of a process is that of its main thread.
    let set = sched_getaffinity(Some(getpid()))
        .map_err(|error| PlacementError::Unreadable(error.to_string()))?;
    let cpus = cpus_of(&set);
    if cpus.is_empty() {
        return Err(PlacementError::Unreadable("the mask is empty".to_owned()));
    }
    Ok(AllowedCpus::of_list(cpus, cpu_quota()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ids_are_shown_as_ranges() {
        let text = |ids: &[usize]| ranges(&ids.iter().map(|id| CpuId(*id)).collect::<Vec<_>>());
        assert_eq!(text(&[0, 2, 3, 4, 9]), "0,2-4,9");
        assert_eq!(text(&[5, 4, 5]), "4-5");
    }

    #[test]
    fn a_pinned_thread_that_asks_learns_what_the_process_may_use() {
        let seen = std::thread::spawn(|| {
            let first = CpuId(sched_getaffinity_first());
            super::super::pin_current_thread(first).unwrap();
            read().unwrap()
        });
        assert_eq!(&seen.join().unwrap(), AllowedCpus::of_process().unwrap());
    }

    fn sched_getaffinity_first() -> usize {
        let set = sched_getaffinity(None).unwrap();
        cpus_of(&set)[0].0
    }
}
