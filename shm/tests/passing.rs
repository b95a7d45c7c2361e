//! Descriptors are passed whole or not at all, and what is refused is closed.

mod common;

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use common::child::alone;
use common::{open_files, pair, small};
use ringway_shm::Bell;
use ringway_shm::link::{DESCRIPTORS, Incoming, Outgoing};
use ringway_shm::passing::{HELLO_BYTES_MAX, PassError, Receiving, peer, send};

fn memory(count: usize) -> Vec<OwnedFd> {
    let make = || rustix::fs::memfd_create("passed", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    (0..count).map(|_| make()).collect()
}

fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

/// Sends so many descriptors where two are expected.
fn two_of(count: usize) -> Result<(), PassError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    send(&ours, b"hello", &borrowed(&memory(count))).unwrap();
    Receiving::<2>::new()
        .poll(&theirs)
        .map(|received| assert!(received.is_some()))
}

#[test]
fn descriptors_arrive_in_order_with_the_hello_and_are_closed_on_exec() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let sent = memory(2);
    let hello = vec![7; HELLO_BYTES_MAX];
    send(&ours, &hello, &borrowed(&sent)).unwrap();
    // What follows stays in the stream.
    (&ours).write_all(b"rest").unwrap();
    let received = Receiving::<2>::new().poll(&theirs).unwrap().unwrap();
    assert_eq!(received.hello, hello);
    for (sent, received) in sent.iter().zip(&received.descriptors) {
        let inode = |of: &OwnedFd| rustix::fs::fstat(of).unwrap().st_ino;
        assert_eq!(inode(sent), inode(received));
        let flags = rustix::io::fcntl_getfd(received).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    let mut rest = [0; 4];
    std::io::Read::read_exact(&mut &theirs, &mut rest).unwrap();
    assert_eq!(&rest, b"rest");
}

#[test]
fn an_empty_hello_without_descriptors_is_one_too() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    send(&ours, b"", &[]).unwrap();
    let received = Receiving::<0>::new().poll(&theirs).unwrap().unwrap();
    assert!(received.hello.is_empty());
}

#[test]
fn too_many_too_few_and_late_descriptors_are_refused_and_closed() {
    alone(
        "too_many_too_few_and_late_descriptors_are_refused_and_closed",
        || {
            let before = open_files();
            two_of(2).unwrap();
            for count in [0, 1, 3, 16] {
                let refused = two_of(count).unwrap_err();
                assert!(
                    matches!(
                        refused,
                        PassError::WrongCount { wanted: 2, .. } | PassError::Truncated
                    ),
                    "{refused}"
                );
            }
            // More with a later byte of the same hello.
            let (ours, theirs) = UnixStream::pair().unwrap();
            send_in_two(&ours, &memory(2));
            let refused = Receiving::<2>::new().poll(&theirs).map(drop).unwrap_err();
            assert!(matches!(refused, PassError::WrongCount { .. }), "{refused}");
            drop((ours, theirs));
            assert_eq!(open_files(), before);
        },
    );
}

/// Sends a hello of ten bytes in two pieces, each with the descriptors.
fn send_in_two(stream: &UnixStream, descriptors: &[OwnedFd]) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut prefixed = 10u32.to_le_bytes().to_vec();
    prefixed.extend_from_slice(&[0; 10]);
    for piece in [&prefixed[..6], &prefixed[6..]] {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = borrowed(descriptors);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let piece = [std::io::IoSlice::new(piece)];
        sendmsg(stream, &piece, &mut ancillary, SendFlags::empty()).unwrap();
    }
}

#[test]
fn a_hello_that_is_too_long_is_refused_on_both_sides() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let long = vec![0; HELLO_BYTES_MAX + 1];
    let refused = send(&ours, &long, &[]).unwrap_err();
    assert!(
        matches!(refused, PassError::HelloTooLong { .. }),
        "{refused}"
    );
    (&ours).write_all(&u32::MAX.to_le_bytes()).unwrap();
    let refused = Receiving::<0>::new().poll(&theirs).map(drop).unwrap_err();
    assert!(
        matches!(refused, PassError::HelloTooLong { .. }),
        "{refused}"
    );
}

#[test]
fn a_hello_that_comes_in_pieces_is_put_together_without_blocking() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut receiving = Receiving::<0>::new();
    let mut prefixed = 5u32.to_le_bytes().to_vec();
    prefixed.extend_from_slice(b"hello");
    for byte in prefixed {
        assert!(receiving.poll(&theirs).unwrap().is_none());
        (&ours).write_all(&[byte]).unwrap();
    }
    assert_eq!(receiving.poll(&theirs).unwrap().unwrap().hello, b"hello");
}

#[test]
fn a_peer_that_closes_early_is_told_from_one_that_is_slow() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&ours).write_all(&[1, 0]).unwrap();
    drop(ours);
    let refused = Receiving::<0>::new().poll(&theirs).map(drop).unwrap_err();
    assert!(matches!(refused, PassError::Closed), "{refused}");
    let refused = send(&theirs, b"hello", &[]).unwrap_err();
    assert!(matches!(refused, PassError::Closed), "{refused}");
}

#[test]
fn a_full_stream_takes_nothing_of_a_hello() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let hello = [1; HELLO_BYTES_MAX];
    let mut sent = 0;
    while send(&ours, &hello, &[]).is_ok() {
        sent += 1;
    }
    let refused = send(&ours, &hello, &[]).unwrap_err();
    assert!(matches!(refused, PassError::WouldBlock), "{refused}");
    for _ in 0..sent {
        assert_eq!(
            Receiving::<0>::new().poll(&theirs).unwrap().unwrap().hello,
            hello
        );
    }
    theirs.set_nonblocking(true).unwrap();
    assert!(Receiving::<0>::new().poll(&theirs).unwrap().is_none());
}

#[test]
fn the_kernel_tells_who_is_at_the_other_end() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let found = peer(&ours).unwrap();
    assert_eq!(found.pid, std::process::id() as i32);
    assert!(found.is_same_user());
    assert!(
        !ringway_shm::passing::Peer {
            uid: found.uid + 1,
            ..found
        }
        .is_same_user()
    );
    let (reader, _writer) = rustix::pipe::pipe().unwrap();
    peer(&reader).unwrap_err();
}

#[test]
fn two_halves_meet_over_a_stream() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || {
        let half = Incoming::new(&Bell::descriptor().unwrap()).unwrap();
        send(&theirs, b"in", &half.descriptors()).unwrap();
        let received = Receiving::<DESCRIPTORS>::new()
            .poll(&theirs)
            .unwrap()
            .unwrap();
        let mut consumer = half.meet(received.descriptors, usize::MAX).unwrap();
        let bell = consumer.consumer_bell().clone();
        while !consumer.is_ready() {
            bell.arm();
            if consumer.is_ready() {
                bell.disarm();
            } else {
                assert!(bell.park(Some(Duration::from_secs(20))));
            }
        }
        consumer.try_pop().unwrap().bytes().to_vec()
    });
    let half = Outgoing::new(&small(), &Bell::descriptor().unwrap()).unwrap();
    send(&ours, b"out", &half.descriptors()).unwrap();
    let received = Receiving::<DESCRIPTORS>::new()
        .poll(&ours)
        .unwrap()
        .unwrap();
    assert_eq!(received.hello, b"in");
    let mut producer = half.meet(received.descriptors).unwrap();
    producer.push_small(0, b"hello").unwrap();
    producer.flush();
    assert_eq!(other.join().unwrap(), b"hello");
    drop(pair(&small()));
}
