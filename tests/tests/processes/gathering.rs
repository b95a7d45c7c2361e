//! How the processes of a job come together, or do not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ringway::connect::Collected;
use ringway::control::{CancelCause, ControlOptions, ControlSession, Hello};
use ringway::job::{Cluster, ClusterOptions, GatherError, Hosts, Job, Plan, PlanOptions};
use ringway_tests::within::{LONG, within};

use crate::hub::Hub;
use crate::rig::Rig;

fn simple(job: &Job) {
    job.rows("numbers", 0..10_i64)
        .batched()
        .sink("collect", Collected::new().sink());
}

#[test]
fn a_process_that_does_not_come_is_named() {
    within(LONG, "the processes", || {
        let mut rig = Rig::new(3, 1);
        rig.connect_timeout = Duration::from_millis(500);
        let ended = rig.run_some(&[0, 2], |_, job| simple(job));
        let Some(Err(GatherError::Absent { names, refused, .. })) = &ended[0] else {
            panic!("{ended:?}")
        };
        assert_eq!(names, &["process 1"]);
        assert_eq!(refused, &None);
        let Some(Err(error)) = &ended[1] else {
            panic!("{ended:?}")
        };
        assert!(
            error.to_string().contains("process 1 did not come"),
            "{error}"
        );
    });
}

#[test]
fn processes_with_different_plans_do_not_run_together_and_are_told_why() {
    within(LONG, "the processes", || {
        let mut rig = Rig::new(2, 1);
        rig.connect_timeout = Duration::from_millis(1000);
        let ended = rig.run_some(&[0, 1], |process, job| {
            let name = if process == 0 { "sum" } else { "total" };
            job.rows("numbers", 0..10_i64)
                .map(|n| n)
                .named(name)
                .sink("collect", Collected::new().sink());
        });
        let Some(Err(error)) = &ended[0] else {
            panic!("{ended:?}")
        };
        let own = error.to_string();
        assert!(own.contains("process 1 did not come"), "{own}");
        let Some(Err(error)) = &ended[1] else {
            panic!("{ended:?}")
        };
        let other = error.to_string();
        for message in [own, other] {
            assert!(message.contains("process 0 has the plan"), "{message}");
            assert!(message.contains("process 1 has"), "{message}");
        }
    });
}

#[test]
fn a_process_without_a_leader_says_that_it_does_not_answer() {
    within(LONG, "the processes", || {
        let mut rig = Rig::new(2, 1);
        rig.connect_timeout = Duration::from_millis(300);
        let ended = rig.run_some(&[1], |_, job| simple(job));
        let Some(Err(GatherError::Unreachable(_))) = &ended[0] else {
            panic!("{ended:?}")
        };
    });
}

/// The plan of a job in `processes` processes.
fn planned_for(processes: usize) -> Plan {
    let job = Job::new("spread");
    simple(&job);
    let options = PlanOptions {
        processes,
        ..PlanOptions::default()
    };
    Plan::new(job.into_graph(), &options).unwrap()
}

fn planned() -> Plan {
    planned_for(2)
}

#[test]
fn strangers_do_not_keep_the_right_process_out() {
    within(LONG, "the processes", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hosts: Hosts = format!("{address},127.0.0.1:0").parse().unwrap();
        let mut silent = TcpStream::connect(address).unwrap();
        let mut garbage = TcpStream::connect(address).unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let leader = ClusterOptions {
            listener: Some(listener),
            ..ClusterOptions::new(hosts.clone(), 0)
        };
        let gather =
            |options| Cluster::gather(&planned(), options, Box::new(Hub::default()), &mut || None);
        let follower = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            gather(ClusterOptions::new(hosts, 1)).map(|cluster| cluster.process())
        });
        let leader = gather(leader).unwrap();
        assert!(leader.leads());
        assert_eq!(follower.join().unwrap().unwrap(), 1);
        drop(leader);
        // Strangers are greeted, and then the door is closed.
        let mut bytes = Vec::new();
        silent.read_to_end(&mut bytes).unwrap();
        assert!(bytes.len() > 8 && &bytes[5..9] == b"RWCT");
    });
}

#[test]
fn one_that_is_slow_to_say_who_it_is_does_not_go_for_those_behind_it() {
    within(LONG, "the processes", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hosts: Hosts = format!("{address},127.0.0.1:0").parse().unwrap();
        let options = ClusterOptions {
            listener: Some(listener),
            ..ClusterOptions::new(hosts, 0)
        };
        let plan = planned();
        let own = Hello {
            job: plan.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: plan.hash,
            attempt: 1,
            process: 1,
            processes: 2,
            run: 0,
            data_port: 7,
        };
        let leader = std::thread::spawn(move || {
            let hub = Box::new(Hub::default());
            Cluster::gather(&plan, options, hub, &mut || None).map(|cluster| cluster.leads())
        });
        let mut slow = TcpStream::connect(address).unwrap();
        let strangers: Vec<TcpStream> = (0..100)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        // Those that are let in are greeted at once; the others wait before the door.
        (&strangers[0]).read_exact(&mut [0; 8]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let mut session = ControlSession::new(own, ControlOptions::default(), Duration::ZERO);
        let mut hello = Vec::new();
        session.poll_transmit(&mut hello);
        slow.write_all(&hello).unwrap();
        assert!(leader.join().unwrap().unwrap(), "all are there");
    });
}

#[test]
fn more_processes_than_fit_the_door_come_at_once() {
    within(LONG, "the processes", || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let count = 90;
        let mut hosts = vec![address.to_string()];
        hosts.resize(count, "127.0.0.1:0".to_owned());
        let hosts: Hosts = hosts.join(",").parse().unwrap();
        let mut listener = Some(listener);
        let gathering: Vec<_> = (0..count)
            .map(|process| {
                let options = ClusterOptions {
                    listener: listener.take(),
                    ..ClusterOptions::new(hosts.clone(), process)
                };
                std::thread::spawn(move || {
                    let hub = Box::new(Hub::default());
                    let plan = planned_for(count);
                    Cluster::gather(&plan, options, hub, &mut || None).map(|_| ())
                })
            })
            .collect();
        for gathered in gathering {
            gathered.join().unwrap().unwrap();
        }
    });
}

#[test]
fn times_that_leave_no_time_are_refused_before_anything_happens() {
    let hosts: Hosts = "127.0.0.1:0,127.0.0.1:0".parse().unwrap();
    let usual = || ClusterOptions::new(hosts.clone(), 0);
    let at_once = ControlOptions::default().lost_after(Duration::ZERO);
    for (options, words) in [
        (
            ClusterOptions {
                control: at_once,
                ..usual()
            },
            "lost after 0 ms",
        ),
        (
            ClusterOptions {
                connect_timeout: Duration::ZERO,
                ..usual()
            },
            "need some time to come",
        ),
    ] {
        let hub = Box::new(Hub::default());
        let refused = Cluster::gather(&planned(), options, hub, &mut || None);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_wait_for_processes_can_be_cancelled() {
    within(LONG, "the processes", || {
        let hosts: Hosts = "127.0.0.1:0,127.0.0.1:0".parse().unwrap();
        let cancelled = Cluster::gather(
            &planned(),
            ClusterOptions::new(hosts, 0),
            Box::new(Hub::default()),
            &mut || Some(CancelCause::Interrupt),
        );
        let Err(GatherError::Cancelled(CancelCause::Interrupt)) = cancelled else {
            panic!("it was cancelled")
        };
    });
}
