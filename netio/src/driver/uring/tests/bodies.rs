//! Bodies that are read straight to where they belong.

use super::*;
use crate::buffer::{BEYOND_BYTES_MAX, BodyPool};

/// Takes the body, and the bytes that were told of it.
fn take_body(harness: &mut Harness) -> (Body, usize) {
    let (mut found, mut counted) = (None, 0);
    for told in std::mem::take(&mut harness.told) {
        match told {
            Completion::BodyProgress { bytes, .. } => {
                assert!(found.is_none(), "progress after the body");
                counted += bytes;
            }
            Completion::Body { bytes, body, .. } => {
                assert!(found.is_none(), "one body");
                counted += bytes;
                found = Some(body);
            }
            other => harness.told.push(other),
        }
    }
    (found.unwrap(), counted)
}

#[test]
fn a_body_is_read_straight_and_reading_into_chunks_goes_on_after_it() {
    in_every_mode(usual(), |mut harness| {
        let pool = BodyPool::default();
        let (connection, mut theirs) = harness.attach_reading();
        harness.settle();
        let sent = pattern(3_000_000);
        let copy = sent.clone();
        // From here on the bytes belong to the body, and none is under way.
        harness.driver.read_body(connection, pool.body(2_500_000));
        harness.settle();
        let writer = std::thread::spawn(move || {
            theirs.write_all(&copy).unwrap();
            theirs
        });
        harness.until_told(is_body);
        let (body, counted) = take_body(&mut harness);
        assert_eq!(counted, 2_500_000);
        assert!(body.freeze() == sent[..2_500_000]);
        assert!(harness.driver.copied_bytes() <= BEYOND_BYTES_MAX as u64);
        let mut rest = harness.take_read();
        rest.extend(harness.read(500_000 - rest.len()));
        assert!(rest == sent[2_500_000..]);
        drop(writer.join().unwrap());
        harness.until_told(is_eof);
    });
}

/// As a stream of large frames is read: what a body's end brings along has the head of the next
/// frame, and hardly anything is copied.
#[test]
fn bodies_that_follow_each_other_are_read_straight() {
    const BODIES: usize = 20;
    const BODY_BYTES: usize = 200_000;
    const HEAD_BYTES: usize = 13;
    in_every_mode(usual(), |mut harness| {
        let pool = BodyPool::default();
        let (connection, mut theirs) = harness.attach_reading();
        harness.settle();
        let frame = HEAD_BYTES + BODY_BYTES;
        let sent = pattern(BODIES * frame + 1000);
        let copy = sent.clone();
        harness.driver.read_body(connection, pool.body(frame));
        harness.settle();
        let writer = std::thread::spawn(move || {
            theirs.write_all(&copy).unwrap();
            theirs
        });
        let mut at = 0;
        for number in 0..BODIES {
            harness.until_told(is_body);
            let (body, _) = take_body(&mut harness);
            let body = body.freeze();
            assert!(body == sent[at..at + body.len()]);
            at += body.len();
            if number + 1 == BODIES {
                break;
            }
            let mut ahead = harness.take_read();
            if ahead.len() < HEAD_BYTES {
                ahead.extend(harness.read(HEAD_BYTES - ahead.len()));
            }
            assert!(ahead[..HEAD_BYTES] == sent[at..at + HEAD_BYTES]);
            at += HEAD_BYTES;
            let mut next = pool.body(BODY_BYTES);
            next.extend_from_slice(&ahead[HEAD_BYTES..]);
            harness.driver.read_body(connection, next);
        }
        let mut rest = harness.take_read();
        rest.extend(harness.read(sent.len() - at - rest.len()));
        assert!(rest == sent[at..]);
        drop(writer.join().unwrap());
        harness.until_told(is_eof);
    });
}

#[test]
fn bytes_under_way_to_chunks_are_copied_into_the_body_and_what_is_beyond_it_is_read() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.settle();
        theirs.write_all(b"body and more").unwrap();
        // Under way: the kernel has put them into a chunk, and nobody has polled it.
        while harness.driver.io.ring.is_empty() {
            harness.driver.io.ring.submit().unwrap();
        }
        harness.driver.read_body(connection, Body::new(4));
        harness.until_told(|told| matches!(told, Completion::Read { .. }));
        let (body, counted) = take_body(&mut harness);
        assert_eq!((&body.freeze()[..], counted), (&b"body"[..], 4));
        assert_eq!(harness.take_read(), b" and more");
        assert_eq!(harness.driver.copied_bytes(), 4);
        theirs.write_all(b", still").unwrap();
        assert_eq!(harness.read(7), b", still");
    });
}

#[test]
fn a_body_is_told_of_as_it_comes_and_comes_back_when_the_connection_is_over() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        let mut body = Body::new(1 << 20);
        body.extend_from_slice(b"begun ");
        harness.driver.read_body(connection, body);
        harness.settle();
        theirs.write_all(b"but not ").unwrap();
        harness.until(|told| !told.is_empty());
        assert!(matches!(
            harness.told[0],
            Completion::BodyProgress { bytes: 8, .. }
        ));
        theirs.write_all(b"ended").unwrap();
        drop(theirs);
        harness.until_told(is_eof);
        let eof = harness.told.pop();
        assert!(eof.is_some_and(|told| is_eof(&told)), "the end is last");
        let (body, counted) = take_body(&mut harness);
        assert_eq!((body.filled(), counted), (&b"begun but not ended"[..], 13));
    });
}

#[test]
fn a_body_is_read_also_while_reading_is_off() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach();
        theirs.write_all(b"bodychunk").unwrap();
        harness.driver.read_body(connection, Body::new(4));
        harness.until_told(is_body);
        assert_eq!(&take_body(&mut harness).0.freeze()[..], b"body");
        harness.settle();
        assert!(harness.told.is_empty(), "{:?}", harness.told);
        harness.driver.set_reading(connection, true);
        assert_eq!(harness.read(5), b"chunk");
    });
}

#[test]
fn a_body_that_needs_nothing_or_can_get_nothing_comes_back_at_once() {
    in_every_mode(usual(), |mut harness| {
        let (connection, theirs) = harness.attach_reading();
        harness.driver.read_body(connection, Body::new(0));
        harness.driver.poll(&mut harness.told).unwrap();
        assert_eq!(take_body(&mut harness).1, 0);
        drop(theirs);
        harness.until_told(is_eof);
        harness.driver.read_body(connection, Body::new(5));
        harness.driver.poll(&mut harness.told).unwrap();
        assert_eq!(take_body(&mut harness).0.filled(), b"");
    });
}

#[test]
fn a_connection_that_is_given_back_gives_its_body_back_first() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.driver.read_body(connection, Body::new(1 << 20));
        theirs.write_all(b"some").unwrap();
        harness.until(|told| !told.is_empty());
        harness.driver.detach(connection);
        harness.until_told(|told| matches!(told, Completion::Detached { .. }));
        let Some(Completion::Detached {
            socket: Socket::Tcp(mut ours),
            ..
        }) = harness.told.pop()
        else {
            panic!("the socket is last");
        };
        assert_eq!(take_body(&mut harness).0.filled(), b"some");
        theirs.write_all(b"thing").unwrap();
        let mut got = [0; 5];
        ours.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"thing");
    });
}
