//! Workers inside the allowed CPUs, and everything else where it was.

use std::fs;
use std::sync::{Arc, Mutex};

use ringway::placement::{AllowedCpus, Cores, CpuId, Placement, spawn_side_thread};
use ringway::task::Task;
use ringway::worker::{Host, HostError, HostKind, IdlePolicy};
use rustix::thread::{CpuSet, sched_getaffinity};

use super::child::Child;
use super::rig::{Script, start};

const BOTH: [HostKind; 2] = [HostKind::Thread, HostKind::Glommio];

fn mask() -> Vec<CpuId> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU)
        .filter(|id| set.is_set(*id))
        .map(CpuId)
        .collect()
}

/// A task that ends after some steps and notes where it ran.
fn noting(seen: &Arc<Mutex<Vec<Vec<CpuId>>>>) -> Box<dyn Task> {
    let seen = Arc::clone(seen);
    let mut task = Script::counts("count[0]", 1_000);
    task.open = Box::new(move || seen.lock().unwrap().push(mask()));
    Box::new(task)
}

#[test]
fn two_workers_on_one_allowed_cpu_share_it_with_a_warning_and_finish() {
    let last = *AllowedCpus::of_process().unwrap().cpus().last().unwrap();
    let test = "cpus::two_workers_on_one_allowed_cpu_share_it_with_a_warning_and_finish";
    Child::of(test).on_cpu(last.0).run(|| {
        let allowed = AllowedCpus::of_process().unwrap();
        let [only] = *allowed.cpus() else {
            panic!("{allowed} should be one CPU")
        };
        let plan = Placement::plan(allowed, &Cores::Count(2)).unwrap();
        assert_eq!(plan.cpus(), [only, only]);
        assert!(plan.warning().unwrap().contains("2 workers share 1 CPU ("));
        for kind in BOTH {
            let host = Host::new(kind);
            let seen = Arc::default();
            let workers: Vec<_> = plan
                .cpus()
                .iter()
                .map(|cpu| start(&host, Some(*cpu), IdlePolicy::Spin, vec![noting(&seen)]))
                .collect();
            for worker in workers {
                assert_eq!(worker.unwrap().outcomes(), ["count[0] ended"]);
            }
            assert_eq!(*seen.lock().unwrap(), [[only], [only]], "{kind}");
        }
    });
}

#[test]
fn each_worker_is_pinned_to_its_cpu_alone() {
    let allowed = AllowedCpus::of_process().unwrap();
    let plan = Placement::plan(allowed, &Cores::Auto).unwrap();
    for kind in BOTH {
        let host = Host::new(kind);
        for cpu in plan.cpus() {
            let seen = Arc::default();
            let tasks = vec![noting(&seen)];
            let running = start(&host, Some(*cpu), IdlePolicy::Adaptive, tasks).unwrap();
            assert_eq!(running.outcomes(), ["count[0] ended"]);
            assert_eq!(*seen.lock().unwrap(), [[*cpu]], "{kind}");
        }
    }
}

#[test]
fn a_worker_that_cannot_be_pinned_does_not_run_and_the_error_says_where_it_could() {
    let allowed = AllowedCpus::of_process().unwrap();
    let absent = CpuId(1_000);
    let refused = Placement::plan(allowed, &Cores::List(vec![absent])).unwrap_err();
    assert!(
        refused.to_string().contains(&format!("allowed: {allowed}")),
        "{refused}"
    );
    for kind in BOTH {
        let seen = Arc::default();
        let host = Host::new(kind);
        let started = start(
            &host,
            Some(absent),
            IdlePolicy::Adaptive,
            vec![noting(&seen)],
        );
        let Err(HostError::Placement { name, cause }) = started else {
            panic!("a worker runs on a CPU that is not there")
        };
        assert_eq!(name, "test-worker");
        assert!(cause.to_string().contains("CPU 1000"), "{cause}");
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[test]
fn only_worker_threads_are_pinned_and_an_embedder_keeps_the_mask_it_had() {
    let test = "cpus::only_worker_threads_are_pinned_and_an_embedder_keeps_the_mask_it_had";
    Child::of(test).run(|| {
        let before = mask();
        let first = before[0];
        for kind in BOTH {
            let host = Host::new(kind);
            let seen: Arc<Mutex<Vec<Vec<CpuId>>>> = Arc::default();
            let from_callback = Arc::clone(&seen);
            let mut task = Script::waits("wait[0]");
            task.open = Box::new(move || {
                let seen = Arc::clone(&from_callback);
                let side = spawn_side_thread("side", move || seen.lock().unwrap().push(mask()));
                side.unwrap().join().unwrap();
            });
            let tasks: Vec<Box<dyn Task>> = vec![Box::new(task)];
            let mut running = start(&host, Some(first), IdlePolicy::Park, tasks).unwrap();
            assert_eq!(mask(), before);
            let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(mask)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), before);
            }
            if before.len() > 1 {
                assert_eq!(pinned_threads(), 1, "{kind}: the worker alone");
            }
            running.tell(ringway::task::TaskCommand::Cancel);
            assert_eq!(running.outcomes(), ["wait[0] cancelled"]);
            assert_eq!(
                seen.lock().unwrap().as_slice(),
                std::slice::from_ref(&before)
            );
            assert_eq!(mask(), before);
        }
    });
}

/// Threads of this process that may use one CPU only.
fn pinned_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let is_pinned = |status: &String| {
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        allowed.unwrap().trim().parse::<usize>().is_ok()
    };
    threads
        // A thread may be gone by the time it is looked at.
        .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .filter(is_pinned)
        .count()
}
