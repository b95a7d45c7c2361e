//! Closing, giving back, dropping.

use super::*;

/// Tells when the last reference to its bytes is gone.
struct Owner {
    bytes: Vec<u8>,
    gone: std::sync::Arc<()>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn observed(len: usize) -> (Bytes, std::sync::Arc<()>) {
    let gone = std::sync::Arc::new(());
    let owner = Owner {
        bytes: vec![5; len],
        gone: gone.clone(),
    };
    let owned = std::sync::Arc::strong_count(&owner.gone);
    assert_eq!(owned, 2);
    (Bytes::from_owner(owner), gone)
}

fn is_gone(gone: &std::sync::Arc<()>) -> bool {
    std::sync::Arc::strong_count(gone) == 1
}

#[test]
fn a_connection_that_reads_is_closed_for_its_peer_too() {
    in_every_mode(usual(), |mut harness| {
        for polled in [false, true] {
            let (connection, mut theirs) = harness.attach_reading();
            if polled {
                harness.settle();
            }
            harness.driver.close(connection);
            harness.driver.close(connection);
            harness.until_told(is_closed);
            // It would wait for ever if the receiving operation kept the socket.
            assert_eq!(theirs.read(&mut [0; 10]).unwrap(), 0);
            harness.settle();
            assert_eq!(harness.told.len(), 1, "{:?}", harness.told);
            harness.told.clear();
        }
    });
}

#[test]
fn after_a_close_nothing_comes_but_its_end_and_buffers_live_until_then() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        let (bytes, gone) = observed(64 << 20);
        harness.send(connection, bytes);
        harness.settle();
        theirs.write_all(b"unread").unwrap();
        harness.driver.close(connection);
        assert!(!is_gone(&gone), "the kernel still reads it");
        harness.until_told(is_closed);
        assert_eq!(harness.told.len(), 1, "{:?}", harness.told);
        assert!(is_gone(&gone));
    });
}

#[test]
fn the_name_of_a_closed_connection_is_a_name_of_nothing() {
    in_every_mode(usual(), |mut harness| {
        let (old, _theirs) = harness.attach_reading();
        harness.driver.close(old);
        harness.until_told(is_closed);
        let (new, mut theirs) = harness.attach_reading();
        assert_ne!(old, new);
        harness.told.clear();
        harness.driver.close(old);
        harness.driver.set_reading(old, false);
        harness.driver.detach(old);
        harness.driver.shutdown_write(old);
        assert_eq!(harness.send(old, &b"x"[..]), 0);
        assert_eq!(harness.driver.unacknowledged_bytes(old), None);
        theirs.write_all(b"new").unwrap();
        assert_eq!(harness.read(3), b"new");
        assert!(harness.told.is_empty(), "{:?}", harness.told);
    });
}

#[test]
fn a_socket_that_is_given_back_has_lost_no_byte() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.send(connection, pattern(8 << 20));
        let sent = pattern(300_000);
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            theirs.write_all(&copy).unwrap();
            let mut got = vec![0; 8 << 20];
            theirs.read_exact(&mut got).unwrap();
            assert!(got == pattern(8 << 20));
        });
        let mut got = harness.read(1);
        harness.driver.detach(connection);
        harness.until_told(|told| matches!(told, Completion::Detached { .. }));
        let Some(Completion::Detached {
            socket: Socket::Tcp(mut ours),
            ..
        }) = harness.told.pop()
        else {
            panic!("the socket is last");
        };
        got.extend(harness.take_read());
        let read = got.len();
        got.resize(sent.len(), 0);
        ours.read_exact(&mut got[read..]).unwrap();
        assert!(got == sent);
        assert_eq!(harness.sent_bytes(), 8 << 20);
        writer.join().unwrap();
    });
}

#[test]
fn dropping_a_driver_ends_what_is_in_flight_before_its_memory_goes() {
    in_every_mode(usual(), |mut harness| {
        let (sending, mut unread) = harness.attach_reading();
        let (bytes, gone) = observed(64 << 20);
        harness.send(sending, bytes);
        let (with_body, mut theirs) = harness.attach();
        harness.driver.read_body(with_body, Body::new(200 << 20));
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        harness.driver.listen(listening.into()).unwrap();
        theirs.write_all(&[1; 1000]).unwrap();
        harness.settle();
        // Accepted by the kernel, and known to nobody yet.
        let mut unknown = TcpStream::connect(address).unwrap();
        assert!(!is_gone(&gone));
        drop(harness);
        assert!(is_gone(&gone));
        for stream in [&mut theirs, &mut unknown] {
            stream.set_read_timeout(Some(LONG)).unwrap();
            assert!(matches!(stream.read(&mut [0; 10]), Ok(0) | Err(_)));
        }
        let mut got = Vec::new();
        let _ = unread.read_to_end(&mut got);
        assert!(got.len() < 64 << 20, "it ended in the middle");
        assert!(TcpStream::connect(address).is_err());
    });
}

#[test]
fn dropping_a_driver_that_was_never_polled_is_fine() {
    in_every_mode(usual(), |mut harness| {
        let (connection, _theirs) = harness.attach_reading();
        let (bytes, gone) = observed(10);
        harness.send(connection, bytes);
        drop(harness);
        assert!(is_gone(&gone));
    });
}

#[test]
fn a_chunk_outlives_its_driver() {
    in_every_mode(usual(), |mut harness| {
        let (_, mut theirs) = harness.attach_reading();
        theirs.write_all(b"still here").unwrap();
        harness.until(|told| !told.is_empty());
        let told = std::mem::take(&mut harness.told);
        drop(harness);
        assert!(matches!(&told[0], Completion::Read { chunk, .. } if **chunk == *b"still here"));
    });
}
