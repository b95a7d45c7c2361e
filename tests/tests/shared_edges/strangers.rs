//! Peers that are not what they seem: each is told apart by name, ends no edge but its own, and
//! leaves nothing behind.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use arrow::array::RecordBatch;
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, Popped, RejectReason, Sender, Transport};
use ringway_netio::driver::DriverChoice;
use ringway_netio::frame::Ending as WireEnding;
use ringway_shm::Bell;
use ringway_shm::link::{Incoming, LinkConfig, Outgoing};
use ringway_shm::passing;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::sockets::pair;
use ringway_tests::within::{LONG, until};

use crate::by_hand::{
    HELLO_BYTES, HandReceiver, HandSender, PATIENCE, RECEIVER, RIGHT, SENDER, UNHURRIED, WRONG,
    address, edge, edge_over, open_receiver, open_sender,
};
use crate::rig::{all, are_all, data, held};

fn failure(ending: &Ending) -> String {
    match ending {
        Ending::Failed(failure) => failure.to_string(),
        other => panic!("failed, not {other}"),
    }
}

#[track_caller]
fn why_closed(sender: &mut Sender<RecordBatch>) -> String {
    until(LONG, "the sender fails", || sender.is_closed());
    let rejected = sender.try_push(data(0..1)).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::Failed(_)));
    rejected.reason.to_string()
}

#[test]
fn a_sender_that_knocks_with_a_wrong_hello_shares_no_memory_and_is_named() {
    let bell = Bell::descriptor().unwrap();
    for wrong in WRONG {
        for sharing in [Sharing::Require, Sharing::Prefer] {
            let (mut sender, mut receiver) = open_receiver(sharing, UNHURRIED);
            let outgoing = Outgoing::new(&LinkConfig::default(), &bell).unwrap();
            let knock = UnixStream::connect_addr(&address(sender.token())).unwrap();
            wrong.send(&knock, SENDER, sender.token(), outgoing.descriptors());
            sender.session.close(WireEnding::End);
            sender.transmit();
            let (batches, ending) = all(&mut receiver);
            assert!(batches.is_empty());
            assert_eq!(receiver.transport(), Transport::Socket, "{}", wrong.what);
            match sharing {
                Sharing::Require => {
                    let failure = failure(&ending);
                    assert!(failure.contains("no shared memory"), "{failure}");
                    assert!(failure.contains(wrong.said), "{}: {failure}", wrong.what);
                    assert!(failure.contains("strangers"), "{failure}");
                }
                _ => {
                    assert_eq!(ending, Ending::End, "{}", wrong.what);
                    let why = receiver.why_not_shared().unwrap();
                    assert!(why.contains(wrong.said), "{}: {why}", wrong.what);
                }
            }
        }
    }
}

#[test]
fn a_receiver_that_answers_with_a_wrong_hello_is_named_and_nothing_is_sent() {
    let bell = Bell::descriptor().unwrap();
    for wrong in WRONG {
        let (mut sender, receiver) = open_sender(Sharing::Prefer, UNHURRIED);
        sender.push(data(0..10)).unwrap();
        let knock = receiver.accept();
        let incoming = Incoming::new(&bell).unwrap();
        wrong.send(&knock, RECEIVER, receiver.token, incoming.descriptors());
        // Not over the socket either: the receiver may believe that it has the edge.
        let why = why_closed(&mut sender);
        assert!(why.contains(wrong.said), "{}: {why}", wrong.what);
        assert!(why.contains("strangers"), "{why}");
        drop(receiver);
    }
}

/// It may have taken the memory for the edge, so the socket is no way out.
#[test]
fn a_receiver_that_goes_silent_after_the_knock_is_waited_for_so_long_and_named() {
    const ROUNDS: usize = 20;
    for sharing in [Sharing::Prefer, Sharing::Require] {
        let before = held();
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|_| open_sender(sharing, PATIENCE))
            .collect();
        let rounds: Vec<_> = rounds
            .into_iter()
            .map(|(mut sender, receiver)| {
                // On a busy machine it may have been given up by now.
                let _ = sender.push(data(0..10));
                let knock = receiver.accept();
                (sender, receiver, knock)
            })
            .collect();
        for (mut sender, mut receiver, mut knock) in rounds {
            let why = why_closed(&mut sender);
            assert!(
                why.contains("has not answered at its Unix socket for 300ms"),
                "{why}"
            );
            assert_eq!(sender.transport(), Transport::Socket);
            drop(sender);
            // Both connections end, and nothing of the edge has gone over either.
            let passed = passing::Receiving::<3>::new().poll(&knock).unwrap();
            assert_eq!(passed.unwrap().hello.len(), HELLO_BYTES);
            assert_eq!(knock.read(&mut [0; 1]).unwrap(), 0);
            let mut said = Vec::new();
            receiver.stream.read_to_end(&mut said).unwrap();
            assert!(said.len() < 512, "{} bytes", said.len());
        }
        // Others may open edges meanwhile, but not so many for long.
        until(LONG, "nothing is left", || {
            let now = held();
            now.0 < before.0 + ROUNDS && now.1 < before.1 + ROUNDS
        });
    }
}

#[test]
fn a_receiver_that_refuses_the_knock_gets_the_edge_over_its_socket() {
    let (mut sender, receiver) = open_sender(Sharing::Prefer, UNHURRIED);
    drop(receiver.accept());
    until(LONG, "it is decided", || sender.poll_transport().is_some());
    assert_eq!(sender.transport(), Transport::Socket);
    let why = sender.why_not_shared().unwrap();
    assert!(why.contains("has refused to share memory"), "{why}");

    let (mut sender, receiver) = open_sender(Sharing::Require, UNHURRIED);
    drop(receiver.accept());
    let why = why_closed(&mut sender);
    assert!(why.contains("no shared memory"), "{why}");
}

#[test]
fn a_sender_that_never_answers_the_offer_is_waited_for_so_long_and_named() {
    let (sender, mut receiver) = open_receiver(Sharing::Require, PATIENCE);
    let (_, ending) = all(&mut receiver);
    let failure = failure(&ending);
    let said = "the sender has not answered the offer for 300ms";
    assert!(failure.contains(said), "{failure}");
    // Nobody listens for it any more.
    until(LONG, "the door is shut", || {
        UnixStream::connect_addr(&address(sender.token())).is_err()
    });
}

#[test]
fn a_receiver_that_is_gone_before_its_answer_is_a_lost_peer() {
    let (mut sender, receiver) = open_sender(Sharing::Require, UNHURRIED);
    let _knock = receiver.accept();
    drop(receiver);
    let why = why_closed(&mut sender);
    assert!(!why.contains("has not answered"), "{why}");
}

/// Its answer and its end may be seen at once, while the thread does something else: here it lets
/// others in.
#[test]
fn a_sender_that_is_gone_when_it_is_let_in_is_a_lost_peer() {
    const SENDERS: usize = 20;
    let bell = Bell::descriptor().unwrap();
    for driver in [DriverChoice::Epoll, DriverChoice::Auto] {
        let edge = edge_over(driver, Sharing::Require, UNHURRIED);
        let opened = (0..SENDERS).map(|_| {
            let (out, back) = pair();
            let receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("strangers"));
            let sender = HandSender::greet(out);
            let outgoing = Outgoing::new(&LinkConfig::default(), &bell).unwrap();
            let knock = UnixStream::connect_addr(&address(sender.token())).unwrap();
            RIGHT.send(&knock, SENDER, sender.token(), outgoing.descriptors());
            (sender, receiver, knock)
        });
        let opened: Vec<_> = opened.collect();
        let left: Vec<_> = opened
            .into_iter()
            .map(|(mut sender, receiver, knock)| {
                sender.transmit();
                drop((sender, knock));
                receiver
            })
            .collect();
        for mut receiver in left {
            let (batches, ending) = all(&mut receiver);
            assert!(batches.is_empty());
            failure(&ending);
        }
    }
}

#[test]
fn a_receiver_that_is_gone_before_its_offer_is_a_lost_peer() {
    for sharing in [Sharing::Prefer, Sharing::Require] {
        let remote = RemoteOptions::default().sharing(sharing);
        let edge = RemoteEdge::new("strangers", DriverChoice::Epoll, remote);
        let (out, back) = pair();
        let mut sender: Sender<RecordBatch> = edge.sender(out, &EdgeOptions::named("strangers"));
        sender.push(data(0..10)).unwrap();
        drop(back);
        why_closed(&mut sender);
    }
}

/// Names of doors can be listed by anybody, and anybody may stand before one.
#[test]
fn strangers_that_fill_the_queue_of_a_door_make_its_edge_one_over_a_socket() {
    for sharing in [Sharing::Prefer, Sharing::Require] {
        let (out, back) = pair();
        let receiver = HandReceiver::offer(back);
        let door = address(receiver.token);
        let crowd: Vec<UnixStream> = std::iter::from_fn(|| {
            let stranger = rustix::net::socket_with(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::STREAM,
                rustix::net::SocketFlags::NONBLOCK,
                None,
            );
            let stranger = stranger.unwrap();
            let name = door.as_abstract_name().unwrap();
            let name = rustix::net::SocketAddrUnix::new_abstract_name(name).unwrap();
            let connected = rustix::net::connect(&stranger, &name);
            connected.ok().map(|()| UnixStream::from(stranger))
        })
        .take(10_000)
        .collect();
        assert!(!crowd.is_empty() && crowd.len() < 10_000);
        let edge = edge(sharing, UNHURRIED);
        let mut sender: Sender<RecordBatch> = edge.sender(out, &EdgeOptions::named("strangers"));
        match sharing {
            Sharing::Require => {
                let why = why_closed(&mut sender);
                assert!(why.contains("cannot be met at a Unix socket"), "{why}");
            }
            _ => {
                until(LONG, "it is decided", || sender.poll_transport().is_some());
                assert_eq!(sender.transport(), Transport::Socket);
                let why = sender.why_not_shared().unwrap();
                assert!(why.contains("cannot be met at a Unix socket"), "{why}");
            }
        }
    }
}

/// A peer that has met may still say what it likes where the two began.
#[test]
fn bytes_on_the_connection_of_a_shared_edge_mean_nothing() {
    const END: u32 = 32;
    let bell = Bell::descriptor().unwrap();
    let (mut sender, mut receiver) = open_receiver(Sharing::Require, UNHURRIED);
    let outgoing = Outgoing::new(&LinkConfig::default(), &bell).unwrap();
    let mut knock = UnixStream::connect_addr(&address(sender.token())).unwrap();
    RIGHT.send(&knock, SENDER, sender.token(), outgoing.descriptors());
    sender.transmit();
    let answer = passing::Receiving::<3>::new()
        .poll(&knock)
        .unwrap()
        .unwrap();
    let mut producer = outgoing.meet(answer.descriptors).unwrap();
    for _ in 0..100 {
        sender.stream.write_all(&[0xff; 1000]).unwrap();
        knock.write_all(&[0xff; 100]).unwrap();
    }
    until(LONG, "they have met", || {
        receiver.poll_transport() == Some(Transport::Shared)
    });
    assert_eq!(receiver.try_pop(), Popped::Empty);
    producer.push_small(END, &[]).unwrap();
    producer.flush();
    let (batches, ending) = all(&mut receiver);
    assert!(batches.is_empty());
    assert_eq!(ending, Ending::End);
}

#[test]
fn strangers_at_the_door_keep_the_sender_out_of_nothing() {
    let (out, back) = pair();
    let edge = edge(Sharing::Require, UNHURRIED);
    let mut receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("strangers"));
    // The name of the door is in the offer, and in /proc/net/unix for anybody.
    let mut peeked = [0; 512];
    until(LONG, "the offer is there", || {
        out.peek(&mut peeked).unwrap() > 60
    });
    let doors = std::fs::read_to_string("/proc/net/unix").unwrap();
    let doors = doors.lines().filter_map(|line| line.split_once('@'));
    let doors: Vec<_> = doors
        .filter(|(_, name)| name.starts_with("ringway-edge-"))
        .filter_map(|(_, name)| SocketAddr::from_abstract_name(name).ok())
        .filter_map(|door| UnixStream::connect_addr(&door).ok())
        .collect();
    assert!(!doors.is_empty());
    for (number, stranger) in doors.iter().enumerate() {
        let own: Vec<OwnedFd> = vec![stranger.as_fd().try_clone_to_owned().unwrap()];
        let own: Vec<_> = own.iter().map(AsFd::as_fd).collect();
        match number % 2 {
            0 => drop(passing::send(stranger, b"hello", &own)),
            _ => drop((&*stranger).write(&[0xff; 64])),
        }
    }
    let mut sender: Sender<RecordBatch> = edge.sender(out, &EdgeOptions::named("strangers"));
    sender.push(data(0..10)).unwrap();
    until(LONG, "they have met", || {
        sender.poll_transport() == Some(Transport::Shared)
    });
    sender.finish().unwrap();
    let (batches, ending) = all(&mut receiver);
    assert_eq!(ending, Ending::End);
    are_all(&batches, 10);
}
