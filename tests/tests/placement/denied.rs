//! Where io_uring, locked memory or descriptors are short.

use std::io;

use ringway::task::Task;
use ringway::worker::{Host, HostKind, IdlePolicy};
use ringway_netio::driver::{DriverChoice, DriverKind, Why, open};
use ringway_netio::probe::{self, DENY_VARIABLE, IoUring};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::child::Child;
use super::hosts::runs_and_contains_a_panic;
use super::rig::{Script, start_with};
use super::seccomp::{deny, deny_io_uring};

/// Asks for glommio, gets the plain thread, and runs there as anywhere.
fn falls_back_to_a_thread(parts_of_the_cause: &[&str]) {
    let host = Host::new(HostKind::Glommio);
    assert_eq!(host.in_use().kind, HostKind::Thread);
    let cause = host.in_use().cause.clone().unwrap();
    for part in parts_of_the_cause {
        assert!(cause.contains(part), "{cause:?} names {part:?}");
    }
    runs_and_contains_a_panic(&host, IdlePolicy::Adaptive);
}

/// One call alone is forbidden, and the others are not: epoll takes over, and says why.
fn falls_back_to_epoll_without(test: &'static str, call: i64, named: &str) {
    Child::of(test).run(|| {
        deny(call..=call, Errno::PERM);
        let opened = open(DriverChoice::Auto).unwrap();
        assert_eq!(opened.kind, DriverKind::Epoll);
        let Why::FellBack(denial) = opened.why else {
            panic!("{:?}", opened.why);
        };
        assert_eq!(*probe::driver(), IoUring::Denied(denial.clone()));
        // Where the host denies io_uring anyway, the first call is named.
        let cause = &denial.cause;
        assert!(
            cause.contains(named) || cause.contains("io_uring_setup"),
            "{denial}"
        );
        assert!(denial.what_to_do.contains("seccomp") || denial.what_to_do.contains("sysctl"));
        assert!(open(DriverChoice::Uring).is_err());
    });
}

pub(crate) fn limit(resource: Resource, current: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(current);
    setrlimit(resource, Rlimit { current, maximum }).unwrap();
}

#[test]
fn under_a_filter_that_forbids_io_uring_workers_run_on_threads_and_the_filter_is_named() {
    let test = "denied::under_a_filter_that_forbids_io_uring_workers_run_on_threads_and_the_filter_is_named";
    Child::of(test).run(|| {
        deny_io_uring(Errno::PERM);
        falls_back_to_a_thread(&["io_uring_setup", "not permitted", "seccomp"]);
    });
}

#[test]
fn under_a_filter_that_hides_io_uring_workers_run_on_threads_and_the_kernel_is_named() {
    let test =
        "denied::under_a_filter_that_hides_io_uring_workers_run_on_threads_and_the_kernel_is_named";
    Child::of(test).run(|| {
        deny_io_uring(Errno::NOSYS);
        falls_back_to_a_thread(&["io_uring_setup", "not implemented", "kernel"]);
    });
}

#[test]
fn a_filter_that_forbids_making_a_ring_leaves_the_driver_epoll() {
    let test = "denied::a_filter_that_forbids_making_a_ring_leaves_the_driver_epoll";
    falls_back_to_epoll_without(test, 425, "io_uring_setup");
}

#[test]
fn a_filter_that_forbids_using_a_ring_leaves_the_driver_epoll() {
    let test = "denied::a_filter_that_forbids_using_a_ring_leaves_the_driver_epoll";
    falls_back_to_epoll_without(test, 426, "io_uring_enter");
}

#[test]
fn a_filter_that_forbids_registering_with_a_ring_leaves_the_driver_epoll() {
    let test = "denied::a_filter_that_forbids_registering_with_a_ring_leaves_the_driver_epoll";
    falls_back_to_epoll_without(test, 427, "io_uring_register");
}

#[test]
fn io_uring_can_be_switched_off_by_the_environment() {
    Child::of("denied::io_uring_can_be_switched_off_by_the_environment")
        .with(DENY_VARIABLE, "deny")
        .run(|| falls_back_to_a_thread(&[DENY_VARIABLE]));
}

#[test]
fn too_little_locked_memory_is_named_with_limit_and_need() {
    Child::of("denied::too_little_locked_memory_is_named_with_limit_and_need").run(|| {
        for bytes in [65_536, 0] {
            limit(Resource::Memlock, bytes);
            // Where io_uring is denied altogether, that is named instead.
            falls_back_to_a_thread(&[]);
            let cause = Host::new(HostKind::Glommio).in_use().cause.clone().unwrap();
            let named = cause.contains(&format!("may lock {bytes} bytes"));
            assert!(named || cause.contains("io_uring"), "{cause}");
        }
    });
}

#[test]
fn with_few_descriptors_a_worker_runs_or_says_what_is_short() {
    let test = "denied::with_few_descriptors_a_worker_runs_or_says_what_is_short";
    Child::of(test).run(|| {
        limit(Resource::Nofile, 32);
        let host = Host::new(HostKind::Glommio);
        let mut running = Vec::new();
        for _ in 0..16 {
            let bell = match host.bell() {
                Ok(bell) => bell,
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
                    break;
                }
            };
            let tasks: Vec<Box<dyn Task>> = vec![Box::new(Script::waits("wait[0]"))];
            let worker = start_with(&host, bell, None, IdlePolicy::Park, tasks).unwrap();
            let in_use = worker.worker.in_use().clone();
            assert_eq!(in_use.kind == HostKind::Thread, in_use.cause.is_some());
            running.push(worker);
        }
        assert!(!running.is_empty(), "{}", io::Error::from(Errno::MFILE));
        for worker in &mut running {
            worker.tell(ringway::task::TaskCommand::Cancel);
        }
        for worker in running {
            assert_eq!(worker.outcomes(), ["wait[0] cancelled"]);
        }
    });
}
