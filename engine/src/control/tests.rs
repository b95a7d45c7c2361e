//! Two ends of a control session in virtual time, and leaders under sequences of events.

use std::time::Duration;

use super::*;
use crate::element::{Barrier, BarrierMode};

const SECOND: Duration = Duration::from_secs(1);

fn hello(process: u32) -> Hello {
    Hello {
        job: "flights".to_owned(),
        version: "0.1.0".to_owned(),
        plan: 0x0123_4567_89ab_cdef,
        attempt: 1,
        process,
        processes: 3,
        run: if process == 0 { 7 } else { 0 },
        data_port: 9000,
    }
}

fn every_message() -> Vec<Message> {
    let fault = Fault {
        process: 2,
        is_cause: true,
        message: "sum[1] failed: no such luck".to_owned(),
    };
    vec![
        Message::Open(vec![
            "a:1".to_owned(),
            String::new(),
            "[::1]:65535".to_owned(),
        ]),
        Message::Opened,
        Message::Start,
        Message::Stop(StopWay::End),
        Message::Stop(StopWay::Stop),
        Message::Cancel(CancelCause::Asked),
        Message::Cancel(CancelCause::Terminate),
        Message::Failure(fault.clone()),
        Message::Finished(ProcessEnd::Cancelled, vec![1, 2, 3]),
        Message::Over(JobEnd::Ended),
        Message::Over(JobEnd::Stopped),
        Message::Over(JobEnd::Cancelled(CancelCause::Interrupt)),
        Message::Over(JobEnd::Failed(fault)),
        Message::ReportWanted,
        Message::Report(vec![0; 70_000]),
        Message::Trigger(Barrier {
            id: u64::MAX,
            mode: BarrierMode(9),
            terminal: true,
        }),
        Message::Acknowledge {
            id: 3,
            taken: false,
            part: vec![9],
        },
        Message::Abort(4),
        Message::Commit(5),
        Message::Committed(6),
    ]
}

/// Two ends, and bytes that go between them in pieces.
struct Pair {
    ends: [ControlSession; 2],
    now: Duration,
    piece: usize,
}

impl Pair {
    fn new(one: Hello, other: Hello, piece: usize) -> Self {
        let options = ControlOptions::default();
        let ends = [one, other].map(|hello| ControlSession::new(hello, options, Duration::ZERO));
        Self {
            ends,
            now: Duration::ZERO,
            piece,
        }
    }

    fn drive(&mut self) {
        for from in [0, 1, 0, 1] {
            let mut bytes = Vec::new();
            self.ends[from].poll_transmit(&mut bytes);
            for piece in bytes.chunks(self.piece) {
                self.ends[1 - from].handle_input(self.now, piece);
            }
        }
    }
}

#[test]
fn every_message_comes_as_it_was_said_however_its_bytes_are_split() {
    for piece in [1, 2, 7, 64, 4096, 1 << 20] {
        let mut pair = Pair::new(hello(0), hello(2), piece);
        for message in every_message() {
            pair.ends[1].push(Duration::ZERO, &message);
        }
        pair.drive();
        assert_eq!(pair.ends[0].peer(), Some(&hello(2)));
        let mut got = Vec::new();
        while let Some(message) = pair.ends[0].poll_message() {
            got.push(message);
        }
        assert_eq!(got, every_message());
        assert_eq!(pair.ends[0].error(), None);
    }
}

#[test]
fn peers_that_do_not_fit_are_told_why_in_words_that_name_both() {
    type Change = fn(&mut Hello);
    let changes: [(Change, [&str; 2]); 7] = [
        (|hello| hello.version = "9.9.9".into(), ["0.1.0", "9.9.9"]),
        (|hello| hello.job = "other".into(), ["flights", "other"]),
        (|hello| hello.processes = 4, ["of 3", "of 4"]),
        (|hello| hello.attempt = 2, ["attempt 1", "attempt 2"]),
        (
            |hello| hello.plan = 5,
            ["0123456789abcdef", "0000000000000005"],
        ),
        (
            |hello| hello.process = 0,
            ["process 0", "number of its own"],
        ),
        (
            |hello| hello.process = 3,
            ["process 3", "number of its own"],
        ),
    ];
    for (change, words) in changes {
        let mut other = hello(1);
        change(&mut other);
        let mut pair = Pair::new(hello(0), other, 5);
        pair.drive();
        let mut said = Vec::new();
        for end in &pair.ends {
            match end.error() {
                Some(ControlError::Mismatch(reason) | ControlError::Refused(reason)) => {
                    said.push(reason.clone());
                }
                error => panic!("{error:?}"),
            }
        }
        for word in words {
            assert!(said.iter().all(|reason| reason.contains(word)), "{said:?}");
        }
    }
}

#[test]
fn idle_ends_stay_alive_and_a_silent_one_is_lost_after_five_seconds() {
    let mut pair = Pair::new(hello(0), hello(1), 100);
    for _ in 0..100 {
        pair.now += SECOND / 2;
        let now = pair.now;
        pair.ends.iter_mut().for_each(|end| end.handle_timeout(now));
        pair.drive();
    }
    assert!(pair.ends.iter().all(|end| end.error().is_none()));
    assert_eq!(pair.ends[0].poll_message(), None, "signs of life are kept");
    let silent_since = pair.now;
    loop {
        pair.now = pair.ends[0].poll_timeout().expect("it is not lost yet");
        pair.ends[0].handle_timeout(pair.now);
        if pair.ends[0].error().is_some() {
            break;
        }
    }
    let silent = 5 * SECOND;
    assert_eq!(pair.now - silent_since, silent);
    assert_eq!(pair.ends[0].error(), Some(&ControlError::Silent { silent }));
}

#[test]
fn a_peer_that_does_not_say_who_it_is_is_given_up_whatever_else_it_says() {
    let mut session = ControlSession::new(hello(0), ControlOptions::default(), Duration::ZERO);
    // The beginning of a greeting, a byte a second.
    for (second, byte) in (1..).zip([0, 0, 1, 0]) {
        session.handle_input(SECOND * second, &[byte]);
        session.handle_timeout(SECOND * second);
        assert_eq!(session.error(), None);
    }
    let within = 5 * SECOND;
    session.handle_timeout(within);
    assert_eq!(session.error(), Some(&ControlError::Ungreeted { within }));
    // Whoever has to wait for its turn says how long.
    let options = ControlOptions {
        greet_within: 60 * SECOND,
        ..ControlOptions::default()
    };
    let mut patient = ControlSession::new(hello(1), options, Duration::ZERO);
    patient.handle_timeout(59 * SECOND);
    assert_eq!(patient.error(), None);
}

#[test]
fn times_with_which_no_session_lives_are_refused() {
    let defaults = ControlOptions::default();
    assert_eq!(defaults.validate(), Ok(()));
    assert_eq!(defaults.lost_after(SECOND / 10).validate(), Ok(()));
    assert_eq!(defaults.lost_after(60 * SECOND).heartbeat, SECOND);
    for wrong in [
        defaults.lost_after(Duration::ZERO),
        defaults.lost_after(SECOND / 11),
        ControlOptions {
            heartbeat: Duration::ZERO,
            ..defaults
        },
        ControlOptions {
            heartbeat: 5 * SECOND,
            ..defaults
        },
        ControlOptions {
            greet_within: Duration::ZERO,
            ..defaults
        },
    ] {
        assert!(wrong.validate().is_err(), "{wrong:?}");
    }
}

#[test]
fn garbage_is_an_error_and_unknown_kinds_are_passed_over() {
    let options = ControlOptions::default();
    let mut bytes = Vec::new();
    encode::message(&mut bytes, &Message::Hello(hello(1))).unwrap();
    let greeted = || {
        let mut session = ControlSession::new(hello(0), options, Duration::ZERO);
        session.handle_input(Duration::ZERO, &bytes);
        session
    };
    let mut session = greeted();
    session.handle_input(Duration::ZERO, &[0, 0, 0, 3, 199, 1, 2, 0, 0, 0, 1, 164]);
    assert_eq!(session.poll_message(), Some(Message::Opened));
    assert_eq!(session.error(), None);
    let broken: [&[u8]; 9] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xff],
        // Kind 0, a short cancel, a cause without a meaning, and texts that are longer than
        // their message, no UTF-8, and too long.
        &[0, 0, 0, 1, 0],
        &[0, 0, 0, 1, 167],
        &[0, 0, 0, 2, 167, 4],
        &[0, 0, 0, 4, 161, 0, 9, b'a'],
        &[0, 0, 0, 4, 161, 0, 1, 0xff],
        &[0, 0, 0, 3, 161, 0xff, 0xff],
    ];
    for bytes in broken {
        let mut session = greeted();
        session.handle_input(Duration::ZERO, bytes);
        assert!(
            matches!(session.error(), Some(ControlError::Broken(_))),
            "{bytes:?}: {:?}",
            session.error()
        );
    }
    // Before the greeting nothing else is heard, and nothing long is stored.
    for first in [
        &[0, 0, 0, 1, 164][..],
        &[0, 0, 0, 1, 199],
        &[0, 0x80, 0, 0, 160],
    ] {
        let mut session = ControlSession::new(hello(0), options, Duration::ZERO);
        session.handle_input(Duration::ZERO, first);
        assert!(matches!(session.error(), Some(ControlError::Broken(_))));
    }
    let mut session = greeted();
    session.handle_input(Duration::ZERO, &bytes);
    assert!(matches!(session.error(), Some(ControlError::Broken(_))));
}

#[test]
fn no_bytes_from_outside_make_a_session_panic() {
    let seed = std::env::var("RINGWAY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()));
    println!("RINGWAY_SEED={seed}");
    let mut random = seed;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    let mut valid = Vec::new();
    encode::message(&mut valid, &Message::Hello(hello(1))).unwrap();
    let greeting = valid.len();
    for message in every_message() {
        encode::message(&mut valid, &message).unwrap();
    }
    for _ in 0..500 {
        let mut bytes = valid.clone();
        for _ in 0..=next() % 4 {
            let spared = if next() % 4 == 0 { 0 } else { greeting };
            let at = spared + next() % (bytes.len() - spared).min(400);
            bytes[at] = next() as u8;
        }
        bytes.truncate(1 + next() % bytes.len());
        let mut session = ControlSession::new(hello(0), ControlOptions::default(), Duration::ZERO);
        for piece in bytes.chunks(1 + next() % 500) {
            session.handle_input(Duration::ZERO, piece);
        }
        session.handle_eof();
        assert!(session.error().is_some());
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_between_two_characters() {
    let mut pair = Pair::new(hello(0), hello(1), 999);
    pair.ends[1].push(Duration::ZERO, &Message::Refused("ä".repeat(5000)));
    pair.drive();
    assert_eq!(
        pair.ends[0].error(),
        Some(&ControlError::Refused("ä".repeat(TEXT_BYTES_MAX / 2)))
    );
}

const STOP_WITHIN: Duration = Duration::from_secs(7);

/// A leader of three processes, with what it said.
struct Led {
    leader: Leader,
    now: Duration,
}

impl Led {
    fn new() -> Self {
        let options = LeaderOptions {
            processes: 3,
            stop_within: STOP_WITHIN,
        };
        Self {
            leader: Leader::new(options),
            now: Duration::ZERO,
        }
    }

    /// All processes are there and open.
    fn started() -> Self {
        let mut led = Self::new();
        led.leader.handle_joined(1).unwrap();
        led.leader.handle_joined(2).unwrap();
        assert_eq!(led.actions(), [LeaderAction::Open]);
        (0..3).for_each(|process| led.said(process, Message::Opened));
        assert_eq!(led.actions(), [LeaderAction::Start]);
        led
    }

    fn said(&mut self, process: u32, message: Message) {
        self.leader.handle_message(self.now, process, message);
    }

    fn finished(&mut self, process: u32, end: ProcessEnd) {
        self.said(process, Message::Finished(end, Vec::new()));
    }

    fn failed(&mut self, process: u32, is_cause: bool, message: &str) {
        let message = message.to_owned();
        // Whoever says it, it happened where it was said.
        let fault = Fault {
            process: 99,
            is_cause,
            message,
        };
        self.said(process, Message::Failure(fault));
    }

    fn actions(&mut self) -> Vec<LeaderAction> {
        std::iter::from_fn(|| self.leader.poll_action()).collect()
    }
}

fn failed_in(process: u32, message: &str) -> JobEnd {
    JobEnd::Failed(Fault {
        process,
        is_cause: true,
        message: message.to_owned(),
    })
}

#[test]
fn nothing_starts_before_everything_is_open_everywhere() {
    let mut led = Led::new();
    assert_eq!(led.leader.absent(), [1, 2]);
    led.leader.handle_joined(2).unwrap();
    assert!(led.leader.handle_joined(2).is_err(), "its number is taken");
    assert!(led.leader.handle_joined(0).is_err());
    assert!(led.leader.handle_joined(3).is_err());
    assert_eq!(led.actions(), []);
    led.leader.handle_joined(1).unwrap();
    assert_eq!(led.actions(), [LeaderAction::Open]);
    for _ in 0..3 {
        led.said(0, Message::Opened);
        led.said(1, Message::Opened);
    }
    assert_eq!(led.actions(), [], "process 2 is not open");
    led.said(2, Message::Opened);
    led.said(2, Message::Opened);
    assert_eq!(led.actions(), [LeaderAction::Start]);
}

#[test]
fn a_job_has_ended_when_every_process_says_so() {
    let mut led = Led::started();
    led.finished(1, ProcessEnd::Ended);
    led.finished(1, ProcessEnd::Ended);
    led.finished(0, ProcessEnd::Ended);
    assert_eq!((led.actions(), led.leader.end()), (vec![], None));
    led.finished(2, ProcessEnd::Ended);
    assert_eq!(led.actions(), [LeaderAction::Over(JobEnd::Ended)]);
    led.leader.handle_lost(led.now, 1, "gone");
    assert_eq!(led.leader.end(), Some(&JobEnd::Ended));
}

#[test]
fn the_cause_of_a_failure_counts_whenever_it_is_heard() {
    let mut led = Led::started();
    led.failed(1, false, "the peer is gone");
    assert_eq!(led.actions(), [LeaderAction::Cancel(CancelCause::Failure)]);
    led.finished(0, ProcessEnd::Cancelled);
    led.failed(2, true, "sum[1] failed");
    led.finished(2, ProcessEnd::Failed);
    assert_eq!(led.actions(), []);
    led.finished(1, ProcessEnd::Failed);
    let end = failed_in(2, "sum[1] failed");
    assert_eq!(led.actions(), [LeaderAction::Over(end)]);
}

#[test]
fn a_flood_of_faults_is_kept_as_the_one_that_counts() {
    let mut led = Led::started();
    led.failed(1, false, "the peer is gone");
    led.failed(1, true, "the first cause");
    let before = format!("{:?}", led.leader).len();
    for _ in 0..1000 {
        led.failed(2, true, "and again");
        led.said(2, Message::Stop(StopWay::End));
        led.said(2, Message::Cancel(CancelCause::Asked));
    }
    assert!(format!("{:?}", led.leader).len() < before + 200);
    for process in 0..3 {
        led.finished(process, ProcessEnd::Failed);
    }
    assert_eq!(led.leader.end(), Some(&failed_in(1, "the first cause")));
}

#[test]
fn what_is_said_to_be_open_before_it_is_to_be_opened_is_not() {
    let mut led = Led::new();
    led.leader.handle_joined(1).unwrap();
    led.said(1, Message::Opened);
    led.leader.handle_joined(2).unwrap();
    led.said(0, Message::Opened);
    led.said(2, Message::Opened);
    assert_eq!(led.actions(), [LeaderAction::Open], "process 1 is not open");
    led.said(1, Message::Opened);
    assert_eq!(led.actions(), [LeaderAction::Start]);
}

#[test]
fn a_lost_process_fails_the_job_unless_it_had_finished() {
    let mut led = Led::started();
    led.finished(1, ProcessEnd::Ended);
    led.leader.handle_lost(led.now, 1, "killed");
    assert_eq!(led.actions(), []);
    led.failed(0, false, "the peer is gone");
    led.leader.handle_lost(led.now, 2, "killed");
    led.finished(0, ProcessEnd::Failed);
    let end = failed_in(2, "killed");
    assert_eq!(
        led.actions(),
        [
            LeaderAction::Cancel(CancelCause::Failure),
            LeaderAction::Over(end)
        ]
    );
}

#[test]
fn processes_that_do_not_stop_are_given_up_and_named() {
    let mut led = Led::started();
    led.said(2, Message::Cancel(CancelCause::Interrupt));
    led.finished(0, ProcessEnd::Cancelled);
    led.finished(2, ProcessEnd::Cancelled);
    assert_eq!(led.leader.poll_timeout(), Some(STOP_WITHIN));
    led.leader.handle_timeout(STOP_WITHIN - SECOND);
    assert_eq!(led.leader.end(), None);
    led.leader.handle_timeout(STOP_WITHIN);
    let end = failed_in(1, "it did not stop within 7 s");
    assert_eq!(led.leader.end(), Some(&end));
    assert_eq!(led.leader.poll_timeout(), None);
}

#[test]
fn a_job_that_is_cancelled_may_lose_edges_on_the_way_and_is_cancelled_all_the_same() {
    let mut led = Led::started();
    led.said(1, Message::Cancel(CancelCause::Terminate));
    led.said(0, Message::Cancel(CancelCause::Interrupt));
    led.failed(2, false, "the peer is gone");
    for process in 0..3 {
        led.finished(process, ProcessEnd::Cancelled);
    }
    assert_eq!(
        led.actions(),
        [
            LeaderAction::Cancel(CancelCause::Terminate),
            LeaderAction::Over(JobEnd::Cancelled(CancelCause::Terminate))
        ]
    );
}

#[test]
fn a_stop_is_passed_on_once_and_the_job_is_stopped() {
    let mut led = Led::started();
    for process in [2, 0, 2] {
        led.said(process, Message::Stop(StopWay::Stop));
    }
    assert_eq!(led.actions(), [LeaderAction::Stop(StopWay::Stop)]);
    led.finished(0, ProcessEnd::Ended);
    led.finished(1, ProcessEnd::Stopped);
    led.finished(2, ProcessEnd::Ended);
    assert_eq!(led.actions(), [LeaderAction::Over(JobEnd::Stopped)]);
}

#[test]
fn a_failure_before_all_are_there_ends_the_job_at_once() {
    let mut led = Led::new();
    led.leader.handle_joined(1).unwrap();
    led.failed(0, true, "process 2 did not come");
    let end = failed_in(0, "process 2 did not come");
    assert_eq!(led.actions(), [LeaderAction::Over(end)]);
    assert!(led.leader.handle_joined(2).is_err());
}

#[test]
fn a_follower_does_what_it_is_told_once_and_fails_when_its_leader_is_gone() {
    let mut follower = Follower::new();
    for message in [
        Message::Start,
        Message::Open(vec!["a:1".to_owned()]),
        Message::Open(vec!["b:1".to_owned()]),
        Message::Opened,
        Message::Start,
        Message::Start,
        Message::Stop(StopWay::End),
    ] {
        follower.handle_message(message);
    }
    follower.handle_lost("killed");
    follower.handle_message(Message::Over(JobEnd::Ended));
    follower.handle_lost("killed again");
    let actions: Vec<_> = std::iter::from_fn(|| follower.poll_action()).collect();
    assert_eq!(
        actions,
        [
            FollowerAction::Open(vec!["a:1".to_owned()]),
            FollowerAction::Start,
            FollowerAction::Stop(StopWay::End),
            FollowerAction::Cancel(CancelCause::Failure),
        ]
    );
    assert_eq!(follower.end(), Some(&failed_in(0, "killed")));
}

#[test]
fn a_follower_that_is_asked_a_thousand_times_answers_once() {
    let mut follower = Follower::new();
    for _ in 0..1000 {
        follower.handle_message(Message::ReportWanted);
        follower.handle_message(Message::Stop(StopWay::Stop));
    }
    let mut actions = || std::iter::from_fn(|| follower.poll_action()).collect::<Vec<_>>();
    let stop = FollowerAction::Stop(StopWay::Stop);
    assert_eq!(actions(), [FollowerAction::Report, stop]);
    follower.handle_message(Message::ReportWanted);
    assert_eq!(follower.poll_action(), Some(FollowerAction::Report));
}

#[test]
fn a_follower_knows_the_end_that_its_leader_decided() {
    let mut follower = Follower::new();
    let end = failed_in(2, "no such luck");
    follower.handle_message(Message::Over(end.clone()));
    follower.handle_lost("it has ended the connection");
    assert_eq!(follower.end(), Some(&end));
}
