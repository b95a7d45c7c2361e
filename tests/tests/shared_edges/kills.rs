//! One of two processes is killed at a random moment, again and again: the other takes what was
//! sent, learns that its peer is gone, and keeps nothing of it.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, Transport};
use ringway::element::StreamElement;
use ringway_netio::driver::DriverChoice;
use ringway_shm::Bell;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::process::{Process, hear, part, tell};
use ringway_tests::seed::Seeded;
use ringway_tests::within::{LONG, until};

use crate::rig::{all, data, held, values};

/// Rows of a batch: some are copied out, some stay where they are.
const ROWS: [i64; 3] = [1, 100, 2_000];

/// Batches of a stream that ends.
const BATCHES: i64 = 300;

fn rounds() -> u64 {
    let rounds = std::env::var("RINGWAY_KILL_ROUNDS").ok();
    rounds.map_or(50, |rounds| rounds.parse().expect("a number"))
}

fn listen(plane: &DataPlane) -> ringway::data_plane::Listener<RecordBatch> {
    let options = ListenOptions::new("127.0.0.1", 0).transport(TransportChoice::Shared);
    plane.listen(options, Bell::thread()).unwrap()
}

fn connect(plane: &DataPlane, port: u16) -> Sender<RecordBatch> {
    let options = ConnectOptions::default().transport(TransportChoice::Shared);
    plane
        .connect("127.0.0.1", port, Bell::thread(), options)
        .unwrap()
}

/// Pushes the numbers from 0 on, in batches of different lengths, until there are so many or the
/// receiver is gone.
fn push_all(sender: &mut Sender<RecordBatch>, batches: i64) -> Result<i64, RejectReason> {
    let mut next = 0;
    for number in 0..batches {
        let rows = ROWS[number as usize % ROWS.len()];
        sender
            .push(data(next..next + rows))
            .map_err(|rejected| rejected.reason)?;
        next += rows;
    }
    Ok(next)
}

/// Takes everything, of which every third batch is kept: how many numbers came, and the end.
fn take_all(receiver: &mut Receiver<RecordBatch>) -> (i64, Ending, Vec<RecordBatch>) {
    let (mut next, mut kept) = (0, Vec::new());
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => {
                let rows = batch.num_rows() as i64;
                assert!(values(&batch).iter().copied().eq(next..next + rows));
                next += rows;
                if kept.len() < 100 && rows > 100 {
                    kept.push(batch);
                }
            }
            Popped::Ended(ending) => return (next, ending, kept),
            other => panic!("data or the end, not {other:?}"),
        }
    }
}

/// The other process, which is killed.
fn play(part: &str) {
    let plane = DataPlane::new();
    match part {
        "receives" => {
            let listener = listen(&plane);
            tell("port", listener.port());
            let mut receiver = listener.accept().unwrap();
            take_all(&mut receiver);
        }
        part => {
            let port = hear().unwrap().parse().unwrap();
            let mut sender = connect(&plane, port);
            tell("connected", 1);
            let is_endless = part == "sends";
            let batches = if is_endless { i64::MAX } else { BATCHES };
            push_all(&mut sender, batches).unwrap();
            sender.finish().unwrap();
            // It lives on until it is killed.
            while hear().is_some() {}
        }
    }
}

const TEST: &str = "kills::whoever_is_left_takes_what_was_sent_and_keeps_nothing";

#[test]
fn whoever_is_left_takes_what_was_sent_and_keeps_nothing() {
    if let Some(part) = part() {
        return play(&part);
    }
    let mut seed = Seeded::new();
    let plane = DataPlane::new();
    let (mut before, mut whole_streams) = (None, 0);
    for round in 0..rounds() {
        let after = Duration::from_micros(seed.below(20_000));
        match round % 3 {
            0 => {
                let mut child = Process::start(TEST, "receives");
                let port = child.number("port") as u16;
                let mut sender = connect(&plane, port);
                let killing = std::thread::spawn(move || {
                    std::thread::sleep(after);
                    child.kill();
                });
                let reason = push_all(&mut sender, i64::MAX).unwrap_err();
                assert!(matches!(reason, RejectReason::Failed(_)), "{reason}");
                killing.join().unwrap();
            }
            kind => {
                let part = if kind == 1 { "sends" } else { "sends some" };
                let mut child = Process::start(TEST, part);
                let listener = listen(&plane);
                child.say(listener.port());
                let mut receiver = listener.accept().unwrap();
                let killing = std::thread::spawn(move || {
                    child.number("connected");
                    std::thread::sleep(after);
                    child.kill();
                });
                let (rows, ending, kept) = take_all(&mut receiver);
                killing.join().unwrap();
                let whole = (0..BATCHES)
                    .map(|n| ROWS[n as usize % ROWS.len()])
                    .sum::<i64>();
                match ending {
                    Ending::End => {
                        assert_eq!((kind, rows), (2, whole), "a false end");
                        whole_streams += 1;
                    }
                    Ending::Failed(_) => {}
                    other => panic!("round {round}: {other}"),
                }
                assert_eq!(receiver.transport(), Transport::Shared);
                drop(receiver);
                // The sender is gone, and what is kept is as it was.
                for batch in &kept {
                    let first = values(batch)[0];
                    let rows = batch.num_rows() as i64;
                    assert!(values(batch).iter().copied().eq(first..first + rows));
                }
            }
        }
        match before {
            // What the first rounds leave is of the data plane.
            None if round == 3 => before = Some(held()),
            None => {}
            Some(before) => until(LONG, "nothing is left of a round", || {
                let now = held();
                now.0 <= before.0 && now.1 <= before.1
            }),
        }
    }
    let rounds = rounds();
    println!("{rounds} rounds; {whole_streams} streams had ended, nothing was left");
}

const MEETING: &str = "kills::a_peer_that_is_killed_while_they_meet_is_gone_and_leaves_nothing";

fn strict() -> RemoteEdge {
    let remote = RemoteOptions::default().sharing(Sharing::Require);
    RemoteEdge::new("meeting", DriverChoice::Epoll, remote)
}

/// One half, until it is killed.
fn meet(part: &str) {
    let named = EdgeOptions::named("edge");
    match part {
        "sends" => {
            let port = hear().unwrap().parse().unwrap();
            let out = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let edge = strict();
            tell("begins", 1);
            let mut sender: Sender<RecordBatch> = edge.sender(out, &named);
            let _ = sender.push(data(0..10));
            while hear().is_some() {}
        }
        _ => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            tell("port", listener.local_addr().unwrap().port());
            let edge = strict();
            let (back, _) = listener.accept().unwrap();
            tell("begins", 1);
            let mut receiver: Receiver<RecordBatch> = edge.receiver(back, &named);
            while !matches!(receiver.pop(), Popped::Ended(_)) {}
        }
    }
}

/// At whatever instruction between its connection and its first batch.
#[test]
fn a_peer_that_is_killed_while_they_meet_is_gone_and_leaves_nothing() {
    if let Some(part) = part() {
        return meet(&part);
    }
    let mut seed = Seeded::new();
    let (edge, named) = (strict(), EdgeOptions::named("edge"));
    let before = held();
    let rounds = rounds() as usize;
    for round in 0..rounds {
        let after = Duration::from_micros(seed.below(3_000));
        let kill = |mut child: Process| {
            child.number("begins");
            std::thread::sleep(after);
            child.kill();
        };
        if round % 2 == 0 {
            let mut child = Process::start(MEETING, "sends");
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            child.say(listener.local_addr().unwrap().port());
            let (back, _) = listener.accept().unwrap();
            let mut receiver: Receiver<RecordBatch> = edge.receiver(back, &named);
            kill(child);
            let (batches, ending) = all(&mut receiver);
            assert!(batches.len() <= 1);
            assert!(matches!(ending, Ending::Failed(_)), "{ending}");
        } else {
            let mut child = Process::start(MEETING, "receives");
            let port = child.number("port") as u16;
            let out = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let mut sender: Sender<RecordBatch> = edge.sender(out, &named);
            kill(child);
            // Who sends nothing need not know.
            let _ = sender.push(data(0..10));
            until(LONG, "the sender learns of it", || {
                sender.poll_transport();
                sender.is_closed()
            });
            assert!(sender.push(data(0..1)).is_err());
        }
    }
    // Others may open edges meanwhile, but not so many for long.
    until(LONG, "nothing is left", || {
        let now = held();
        now.0 < before.0 + rounds.div_ceil(2) && now.1 < before.1 + rounds.div_ceil(2)
    });
    println!("{rounds} rounds while they met, and nothing was left of any");
}
