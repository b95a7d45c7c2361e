//! Sending, reading, accepting.

use super::*;

#[test]
fn bytes_come_in_order_and_the_end_after_them() {
    in_every_mode(usual(), |mut harness| {
        let (_, mut theirs) = harness.attach_reading();
        let sent = pattern(1_000_000);
        let copy = sent.clone();
        let writer = std::thread::spawn(move || theirs.write_all(&copy).unwrap());
        assert!(harness.read(sent.len()) == sent);
        writer.join().unwrap();
        harness.until_told(is_eof);
        harness.settle();
        assert_eq!(harness.told.len(), 1, "{:?}", harness.told);
        assert_eq!(harness.driver.copied_bytes(), 0);
    });
}

#[test]
fn a_send_gathers_what_is_queued_and_is_told_once_the_kernel_has_it() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach();
        let mut queue = queue_of(&[b"one ", b"", b"two ", b"three"]);
        assert_eq!(harness.driver.send(connection, &mut queue), 13);
        assert!(queue.is_empty());
        harness.until(|told| !told.is_empty());
        assert_eq!((harness.told.len(), harness.sent_bytes()), (1, 13));
        let mut got = [0; 13];
        theirs.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"one two three");
        assert_eq!(harness.driver.send(connection, &mut VecDeque::new()), 0);
    });
}

#[test]
fn many_small_segments_go_in_turns_of_as_many_as_one_send_takes() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach();
        let mut queue: VecDeque<Bytes> = (0..200u8).map(|at| Bytes::from(vec![at])).collect();
        let mut bytes = 0;
        while bytes < 200 {
            bytes += harness.driver.send(connection, &mut queue);
            harness.until(|told| !told.is_empty());
            assert!(harness.sent_bytes() <= super::super::super::SEND_SEGMENTS_MAX);
            harness.told.clear();
        }
        let mut got = [0; 200];
        theirs.read_exact(&mut got).unwrap();
        assert!(
            got.iter()
                .enumerate()
                .all(|(at, byte)| at == usize::from(*byte))
        );
    });
}

#[test]
fn the_end_of_the_sending_direction_follows_the_send_in_flight() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.send(connection, pattern(3 << 20));
        harness.driver.shutdown_write(connection);
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).unwrap();
            theirs.write_all(b"thanks").unwrap();
            got
        });
        assert_eq!(harness.read(6), b"thanks");
        assert!(reader.join().unwrap() == pattern(3 << 20));
        assert_eq!(harness.sent_bytes(), 3 << 20);
        harness.until_told(is_eof);
        assert_eq!(
            harness.send(connection, &b"late"[..]),
            0,
            "nothing more can be sent"
        );
    });
}

#[test]
fn peers_are_accepted_until_the_listener_is_stopped() {
    in_every_mode(usual(), |mut harness| {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        let listener = harness.driver.listen(listening.into()).unwrap();
        harness.driver.poll(&mut harness.told).unwrap();
        let clients: Vec<_> = (0..20)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        harness.until(|told| told.len() == clients.len());
        let mut peers: Vec<_> = harness
            .told
            .drain(..)
            .map(|told| match told {
                Completion::Accepted {
                    listener: at,
                    peer,
                    socket: Socket::Tcp(_),
                } if at == listener => peer.unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let mut wanted: Vec<_> = clients
            .iter()
            .map(|client| client.local_addr().unwrap())
            .collect();
        peers.sort();
        wanted.sort();
        assert_eq!(peers, wanted);
        harness.driver.stop_listening(listener);
        harness.driver.stop_listening(listener);
        harness.settle();
        assert!(
            TcpStream::connect(address).is_err(),
            "nobody listens any more"
        );
        assert!(harness.told.is_empty(), "{:?}", harness.told);
    });
}

#[test]
fn an_accepted_socket_can_be_attached_and_a_listener_cannot() {
    in_every_mode(usual(), |mut harness| {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        let other = listening.try_clone().unwrap();
        harness.driver.listen(listening.into()).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        harness.until(|told| !told.is_empty());
        let Some(Completion::Accepted { socket, .. }) = harness.told.pop() else {
            panic!("nobody was accepted");
        };
        let connection = harness.driver.attach(socket).unwrap();
        harness.driver.set_reading(connection, true);
        client.write_all(b"hello").unwrap();
        assert_eq!(harness.read(5), b"hello");
        assert!(harness.driver.attach(other.into()).is_err());
        assert!(harness.driver.listen(client.into()).is_err());
    });
}

#[test]
fn a_connection_that_does_not_read_holds_the_peer_back() {
    in_every_mode(usual(), |mut harness| {
        let (connection, theirs) = harness.attach_reading();
        harness.settle();
        harness.driver.set_reading(connection, false);
        harness.settle();
        theirs.set_nonblocking(true).unwrap();
        let sent = pattern(64 << 20);
        let taken = (&theirs).write(&sent).unwrap();
        assert!(
            taken < sent.len(),
            "the kernel takes no more than its buffers"
        );
        harness.settle();
        assert!(harness.told.is_empty(), "{:?}", harness.told);
        harness.driver.set_reading(connection, true);
        assert!(harness.read(taken) == sent[..taken]);
    });
}

#[test]
fn a_broken_connection_is_lost_once_and_takes_no_more() {
    in_every_mode(usual(), |mut harness| {
        let (connection, theirs) = harness.attach_reading();
        reset(theirs);
        harness.until_told(is_lost);
        assert_eq!(harness.send(connection, &b"more"[..]), 0);
        harness.settle();
        assert_eq!(harness.told.len(), 1, "{:?}", harness.told);
        harness.driver.close(connection);
        harness.until_told(is_closed);
        assert_eq!(harness.told.len(), 2, "{:?}", harness.told);
    });
}

#[test]
fn what_the_peer_sent_before_a_send_fails_is_read_before_the_loss_is_told() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach();
        let sent = pattern(50_000);
        theirs.write_all(&sent).unwrap();
        drop(theirs);
        // The peer is gone: the first send is answered with a reset, the next one fails.
        for _ in 0..2 {
            harness.send(connection, &b"who reads this?"[..]);
            harness.settle();
        }
        assert_eq!(harness.count(is_lost), 0, "{:?}", harness.told);
        harness.driver.set_reading(connection, true);
        harness.until_told(|told| is_lost(told) || is_eof(told));
        assert!(harness.take_read() == sent);
        assert_eq!(harness.count(is_lost), 1, "{:?}", harness.told);
    });
}

/// Closes so that the other end sees a broken connection.
pub(super) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}
