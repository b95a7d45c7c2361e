//! Where the calling thread runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::allowed::{cpus_of, ranges};
use super::{AllowedCpus, CpuId, PlacementError};

/// Pins the calling thread to `cpu`, and reads back that it is.
///
/// Threads that it starts from now on inherit the pin, unless they are started with
/// [`spawn_side_thread`](super::spawn_side_thread).
///
/// # Errors
/// [`PlacementError::NotPinned`]: the CPU does not exist, the cpuset leaves it out, or
/// `sched_setaffinity` is denied. The thread is not to be used as if it were pinned.
pub fn pin_current_thread(cpu: CpuId) -> Result<(), PlacementError> {
    let failed = |cause: String| PlacementError::NotPinned {
        cpu,
        cause,
        allowed: sched_getaffinity(None).map_or("unknown".to_owned(), |set| ranges(&cpus_of(&set))),
    };
    if cpu.0 >= CpuSet::MAX_CPU {
        return Err(failed(format!("ids end at {}", CpuSet::MAX_CPU - 1)));
    }
    let mut only = CpuSet::new();
    only.set(cpu.0);
    sched_setaffinity(None, &only).map_err(|error| failed(error.to_string()))?;
    // A mask that the cpuset narrows further is no error of the call.
    match sched_getaffinity(None) {
        Ok(set) if set == only => Ok(()),
        Ok(set) => Err(failed(format!("the mask is {}", ranges(&cpus_of(&set))))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Lets the calling thread run on all of `allowed`, whatever it inherited.
///
/// # Errors
/// [`PlacementError::NotUnpinned`] with the answer of `sched_setaffinity`: the thread goes on
/// where it was.
pub fn unpin_current_thread(allowed: &AllowedCpus) -> Result<(), PlacementError> {
    sched_setaffinity(None, &allowed.to_set())
        .map_err(|error| PlacementError::NotUnpinned(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Vec<CpuId> {
        cpus_of(&sched_getaffinity(None).unwrap())
    }

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_alone_until_it_is_unpinned() {
        std::thread::spawn(|| {
            let allowed = AllowedCpus::of_process().unwrap();
            for cpu in allowed.cpus() {
                pin_current_thread(*cpu).unwrap();
                assert_eq!(mask(), [*cpu]);
            }
            unpin_current_thread(allowed).unwrap();
            assert_eq!(mask(), allowed.cpus());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_pin_to_a_cpu_that_does_not_exist_is_an_error_that_names_it() {
        let before = mask();
        for cpu in [CpuId(1_023), CpuId(5_000)] {
            let refused = pin_current_thread(cpu).unwrap_err().to_string();
            let names = refused.contains(&format!("CPU {cpu}:"));
            assert!(names && refused.contains("allowed: "), "{refused}");
        }
        assert_eq!(mask(), before);
    }
}
