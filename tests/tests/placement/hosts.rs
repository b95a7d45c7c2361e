//! Both hosts run a worker alike.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, local};
use ringway::element::StreamElement;
use ringway::placement::AllowedCpus;
use ringway::task::{Task, TaskCommand, TaskOutcome, TaskState};
use ringway::worker::{Host, HostKind, IdlePolicy};
use ringway_netio::executor::Executor;
use rustix::time::{ClockId, clock_gettime};

use super::rig::{Script, eventually, median, start, start_with};

const BOTH: [HostKind; 2] = [HostKind::Thread, HostKind::Glommio];
const POLICIES: [IdlePolicy; 3] = [IdlePolicy::Adaptive, IdlePolicy::Spin, IdlePolicy::Park];

/// Either host with either policy gives these results.
pub(crate) fn runs_and_contains_a_panic(host: &Host, policy: IdlePolicy) {
    let mut panics = Script::waits("bad[0]");
    panics.step = Box::new(|_| panic!("no such airport"));
    let tasks: Vec<Box<dyn Task>> = vec![
        Box::new(Script::counts("few[0]", 1)),
        Box::new(panics),
        Box::new(Script::counts("many[0]", 5_000)),
        Box::new(Script::waits("wait[0]")),
    ];
    let mut running = start(host, None, policy, tasks).unwrap();
    assert_eq!(running.worker.in_use().kind, host.in_use().kind);
    running.tell(TaskCommand::Commit(1));
    std::thread::sleep(Duration::from_millis(30));
    running.tell(TaskCommand::Cancel);
    let expected = [
        "bad[0] failed: bad[0] panicked: no such airport",
        "few[0] ended",
        "many[0] ended",
        "wait[0] cancelled",
    ];
    let outcomes = running.outcomes();
    // On a very busy machine the cancellation may come before the last step.
    let many = ["many[0] ended", "many[0] cancelled"];
    assert!(many.contains(&outcomes[2].as_str()), "{outcomes:?}");
    assert_eq!(outcomes.len(), 4);
    for index in [0, 1, 3] {
        assert_eq!(outcomes[index], expected[index], "{policy}");
    }
}

#[test]
fn both_hosts_run_the_same_tasks_to_the_same_ends_under_every_policy() {
    for kind in BOTH {
        for policy in POLICIES {
            runs_and_contains_a_panic(&Host::new(kind), policy);
        }
    }
}

#[test]
fn a_host_is_the_one_asked_for_or_says_why_not() {
    assert_eq!(Host::new(HostKind::Thread).in_use().kind, HostKind::Thread);
    let host = Host::new(HostKind::Glommio);
    match Executor::support() {
        Ok(()) => assert_eq!(
            (host.in_use().kind, &host.in_use().cause),
            (HostKind::Glommio, &None)
        ),
        Err(denial) => {
            assert_eq!(host.in_use().kind, HostKind::Thread);
            assert_eq!(
                host.in_use().cause.as_deref(),
                Some(denial.to_string().as_str())
            );
        }
    }
}

#[test]
fn a_parked_worker_uses_less_than_two_percent_of_a_core() {
    for policy in [IdlePolicy::Adaptive, IdlePolicy::Park] {
        for kind in BOTH {
            let used: Arc<Mutex<Option<Duration>>> = Arc::default();
            let noted = Arc::clone(&used);
            let mut task = Script::waits("wait[0]");
            task.step = Box::new(move |_| {
                let now = clock_gettime(ClockId::ThreadCPUTime);
                *noted.lock().unwrap() = Some(Duration::try_from(now).unwrap());
                (TaskState::Running, 0)
            });
            let tasks: Vec<Box<dyn Task>> = vec![Box::new(task)];
            let mut running = start(&Host::new(kind), None, policy, tasks).unwrap();
            let before = eventually(|| *used.lock().unwrap());
            std::thread::sleep(Duration::from_secs(2));
            let idle = used.lock().unwrap().unwrap() - before;
            assert!(
                idle < Duration::from_millis(40),
                "{kind} {policy}: {idle:?} in 2 s"
            );
            running.tell(TaskCommand::Cancel);
            assert_eq!(running.outcomes(), ["wait[0] cancelled"]);
        }
    }
}

#[test]
fn a_parked_worker_is_woken_by_its_bell_within_five_milliseconds() {
    for policy in [IdlePolicy::Adaptive, IdlePolicy::Park] {
        for kind in BOTH {
            let heard: Arc<Mutex<Vec<Instant>>> = Arc::default();
            let noted = Arc::clone(&heard);
            let mut task = Script::waits("wait[0]");
            task.command = Box::new(move |_| noted.lock().unwrap().push(Instant::now()));
            let tasks: Vec<Box<dyn Task>> = vec![Box::new(task)];
            let mut running = start(&Host::new(kind), None, policy, tasks).unwrap();
            let mut taken = Vec::new();
            for round in 0..21 {
                std::thread::sleep(Duration::from_millis(5));
                let rung = Instant::now();
                running.tell(TaskCommand::Abort(round));
                let at = eventually(|| heard.lock().unwrap().get(taken.len()).copied());
                taken.push(at.duration_since(rung));
            }
            let median = median(taken);
            assert!(
                median < Duration::from_millis(5),
                "{kind} {policy}: {median:?}"
            );
            running.tell(TaskCommand::Cancel);
            assert_eq!(running.outcomes(), ["wait[0] cancelled"]);
        }
    }
}

#[test]
fn timers_of_a_worker_without_other_work_fire_within_a_few_milliseconds() {
    for policy in POLICIES {
        for kind in BOTH {
            let late: Arc<Mutex<Vec<i64>>> = Arc::default();
            let noted = Arc::clone(&late);
            let mut task = Script::waits("timer[0]");
            let timer = Arc::clone(&task.timer);
            task.step = Box::new(move |clock| {
                let now = clock.processing_time(clock.now());
                let mut due = timer.lock().unwrap();
                let at = *due.get_or_insert(now + 20);
                if now < at {
                    return (TaskState::Running, 0);
                }
                *due = Some(now + 20);
                let mut late = noted.lock().unwrap();
                late.push(now - at);
                match late.len() {
                    9 => (TaskState::Finished(TaskOutcome::Ended), 1),
                    _ => (TaskState::Running, 1),
                }
            });
            let tasks: Vec<Box<dyn Task>> = vec![Box::new(task)];
            let running = start(&Host::new(kind), None, policy, tasks).unwrap();
            assert_eq!(running.outcomes(), ["timer[0] ended"]);
            let median = median(late.lock().unwrap().clone());
            assert!(median <= 5, "{kind} {policy}: {median} ms");
        }
    }
}

/// Pushes the numbers below `count` and ends.
fn pushes(count: i64, edge: Sender<Rows<i64>>) -> Box<dyn Task> {
    let mut edge = Some(edge);
    let mut next = 0;
    let mut task = Script::waits("push[0]");
    task.step = Box::new(move |_| {
        let mut row = Rows::new();
        row.push(Row::untimed(next));
        let pushed = edge.as_mut().unwrap().try_push(StreamElement::Data(row));
        match pushed.map_err(|rejected| rejected.reason) {
            Err(RejectReason::Full) => return (TaskState::Blocked, 0),
            other => other.unwrap(),
        }
        next += 1;
        if next < count {
            return (TaskState::Running, 1);
        }
        edge.take().unwrap().finish().unwrap();
        (TaskState::Finished(TaskOutcome::Ended), 1)
    });
    Box::new(task)
}

/// Takes numbers until the end, and holds them to their order.
fn pops(count: i64, mut edge: Receiver<Rows<i64>>) -> Box<dyn Task> {
    let mut next = 0;
    let mut task = Script::waits("pop[0]");
    task.step = Box::new(move |_| match edge.try_pop() {
        Popped::Empty => (TaskState::Running, 0),
        Popped::Element(element) => {
            let StreamElement::Data(rows) = element else {
                panic!("only data was sent")
            };
            assert_eq!(rows.into_vec(), [Row::untimed(next)]);
            next += 1;
            (TaskState::Running, 1)
        }
        Popped::Ended(ending) => {
            assert_eq!((ending, next), (Ending::End, count));
            (TaskState::Finished(TaskOutcome::Ended), 1)
        }
    });
    Box::new(task)
}

#[test]
fn two_workers_that_share_a_cpu_pass_elements_one_at_a_time_under_every_policy() {
    const COUNT: i64 = 2_000;
    let cpu = AllowedCpus::of_process().unwrap().cpus().first().copied();
    for kind in BOTH {
        for policy in POLICIES {
            let host = Host::new(kind);
            let (first, second) = (host.bell().unwrap(), host.bell().unwrap());
            let options = EdgeOptions::named("push -> pop").capacity(1);
            let (out, into) = local::open(options, first.clone(), second.clone());
            let pushing = vec![pushes(COUNT, out)];
            let pushing = start_with(&host, first, cpu, policy, pushing).unwrap();
            let popping = vec![pops(COUNT, into)];
            let popping = start_with(&host, second, cpu, policy, popping).unwrap();
            assert_eq!(pushing.outcomes(), ["push[0] ended"], "{kind} {policy}");
            assert_eq!(popping.outcomes(), ["pop[0] ended"], "{kind} {policy}");
        }
    }
}
