//! What io_uring does to those who do not expect it.

use super::*;

fn few_chunks(chunks: u16) -> Settings {
    Settings {
        chunks,
        chunk_bytes: 1024,
        ..usual()
    }
}

#[test]
fn used_up_buffers_stop_reading_until_a_quarter_of_them_is_back() {
    in_every_mode(few_chunks(8), |mut harness| {
        let (_, mut theirs) = harness.attach_reading();
        let sent = pattern(64 << 10);
        theirs.write_all(&sent).unwrap();
        harness.settle();
        assert_eq!(harness.told.len(), 8, "all buffers, and no end");
        let mut held = std::mem::take(&mut harness.told);
        let first = held.remove(0);
        drop(held.pop());
        // One is back, which would be used up at once: reading is not even tried.
        harness.settle();
        assert!(harness.told.is_empty(), "{:?}", harness.told);
        assert!(harness.driver.io.starved.len() == 1);
        drop(held.pop());
        harness.settle();
        assert_eq!(harness.told.len(), 2, "{:?}", harness.told);
        let mut got = chunk_bytes(&first).to_vec();
        got.extend(held.iter().flat_map(|told| chunk_bytes(told).to_vec()));
        // Two of the eight went unread by this test.
        drop((first, held));
        assert!(got == sent[..6 * 1024]);
        assert!(harness.read(56 << 10) == sent[8 << 10..]);
    });
}

#[test]
fn connections_that_share_few_buffers_all_get_their_bytes() {
    in_every_mode(few_chunks(4), |mut harness| {
        let mut threads = Vec::new();
        let mut got: Vec<(ConnectionId, Vec<u8>)> = Vec::new();
        for _ in 0..20 {
            let (connection, mut theirs) = harness.attach_reading();
            got.push((connection, Vec::new()));
            threads.push(std::thread::spawn(move || {
                theirs.write_all(&pattern(50_000)).unwrap();
            }));
        }
        let start = Instant::now();
        let mut ends = 0;
        while ends < got.len() {
            assert!(start.elapsed() < LONG);
            harness
                .driver
                .wait(Some(Duration::from_millis(50)))
                .unwrap();
            harness.driver.poll(&mut harness.told).unwrap();
            for told in harness.told.drain(..) {
                match told {
                    Completion::Read { connection, chunk } => {
                        let found = got.iter_mut().find(|(id, _)| *id == connection);
                        found.unwrap().1.extend_from_slice(&chunk);
                    }
                    Completion::Eof { .. } => ends += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(got.iter().all(|(_, bytes)| *bytes == pattern(50_000)));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_body_is_read_although_all_buffers_are_used_up() {
    in_every_mode(few_chunks(2), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        theirs.write_all(&[1; 4096]).unwrap();
        harness.settle();
        assert_eq!(harness.told.len(), 2);
        harness.driver.read_body(connection, Body::new(2048));
        harness.until_told(is_body);
        let Some(Completion::Body { body, .. }) = harness.told.pop() else {
            panic!("the body is last");
        };
        assert_eq!(body.freeze(), vec![1; 2048]);
    });
}

#[test]
fn completions_that_find_no_room_are_not_lost_and_reading_goes_on_after_them() {
    let tiny = Settings {
        submissions: 4,
        completions: 8,
        ..few_chunks(64)
    };
    in_every_mode(tiny, |mut harness| {
        let mut peers: Vec<_> = (0..10).map(|_| harness.attach_reading()).collect();
        // More is asked for than the submission queue takes.
        harness.settle();
        for byte in 0..20u8 {
            for (_, theirs) in &mut peers {
                theirs.write_all(&[byte]).unwrap();
            }
        }
        // All of it comes back at once, and more than once: receiving ends silently then.
        std::thread::sleep(Duration::from_millis(20));
        let got = harness.read(200);
        for byte in 0..20u8 {
            assert_eq!(got.iter().filter(|got| **got == byte).count(), 10);
        }
        for (connection, theirs) in &mut peers {
            assert_eq!(
                harness.driver.send(*connection, &mut queue_of(&[b"back"])),
                4
            );
            theirs.write_all(b"!").unwrap();
        }
        assert_eq!(harness.read(10), [b'!'; 10]);
        harness.until(|told| told.len() == 10);
        assert_eq!(harness.sent_bytes(), 40);
    });
}

#[test]
fn an_operation_that_ends_with_a_success_is_begun_again() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.settle();
        // As after an overflow: bytes, and no promise of more.
        harness
            .driver
            .io
            .ring
            .cancel(Token::new(Operation::Receive, connection.into()));
        harness.settle();
        assert!(harness.told.is_empty(), "{:?}", harness.told);
        theirs.write_all(b"again").unwrap();
        assert_eq!(harness.read(5), b"again");
    });
}

#[test]
fn short_sends_are_completed_before_they_are_told_of() {
    let short = Settings {
        wait_all: false,
        ..usual()
    };
    in_every_mode(short, |mut harness| {
        let (connection, mut theirs) = harness.attach();
        let sent = pattern(64 << 20);
        let mut queue: VecDeque<Bytes> = VecDeque::from([Bytes::from(sent.clone())]);
        assert_eq!(harness.driver.send(connection, &mut queue), sent.len());
        harness.settle();
        assert_eq!(harness.sent_bytes(), 0, "the kernel cannot have all of it");
        let left = harness.driver.unacknowledged_bytes(connection).unwrap();
        assert!(left > 0 && left <= sent.len(), "{left}");
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; 64 << 20];
            theirs.read_exact(&mut got).unwrap();
            got
        });
        harness.until(|told| !told.is_empty());
        assert!(harness.driver.io.short_sends > 0, "none was short");
        assert_eq!((harness.told.len(), harness.sent_bytes()), (1, sent.len()));
        assert!(reader.join().unwrap() == sent);
    });
}

#[test]
fn two_sends_of_a_connection_never_interleave() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach();
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; 32 << 20];
            theirs.read_exact(&mut got).unwrap();
            got
        });
        let mut queue = VecDeque::from([vec![1; 16 << 20].into(), vec![2; 16 << 20].into()]);
        assert_eq!(harness.driver.send(connection, &mut queue), 16 << 20);
        assert_eq!(
            harness.driver.send(connection, &mut queue),
            0,
            "one is in flight"
        );
        assert_eq!(queue.len(), 1);
        harness.until(|told| !told.is_empty());
        assert_eq!(harness.driver.send(connection, &mut queue), 16 << 20);
        harness.until(|told| told.len() == 2);
        let got = reader.join().unwrap();
        assert!(got[..16 << 20] == vec![1; 16 << 20]);
        assert!(got[16 << 20..] == vec![2; 16 << 20]);
    });
}

#[test]
fn no_byte_is_lost_or_doubled_however_reading_is_switched_while_bytes_come() {
    let random = std::cell::RefCell::new(seeded());
    in_every_mode(few_chunks(16), |mut harness| {
        let random = &mut *random.borrow_mut();
        let (connection, mut theirs) = harness.attach();
        let sent = pattern(3_000_000);
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            for part in copy.chunks(7_001) {
                theirs.write_all(part).unwrap();
            }
        });
        let (mut got, mut has_body, mut over) = (Vec::new(), false, false);
        let start = Instant::now();
        while !over {
            assert!(start.elapsed() < LONG, "{} bytes", got.len());
            match random.below(8) {
                0 => harness.driver.set_reading(connection, false),
                1 if !has_body => {
                    let len = 1 + random.below(50_000) as usize;
                    harness.driver.read_body(connection, Body::new(len));
                    has_body = true;
                }
                2 => harness
                    .driver
                    .wait(Some(Duration::from_micros(100)))
                    .unwrap(),
                _ => harness.driver.set_reading(connection, true),
            }
            harness.driver.poll(&mut harness.told).unwrap();
            for told in harness.told.drain(..) {
                match told {
                    Completion::Read { chunk, .. } => {
                        assert!(!has_body, "a chunk beside a body");
                        got.extend_from_slice(&chunk);
                    }
                    Completion::BodyProgress { .. } => assert!(has_body),
                    Completion::Body { body, .. } => {
                        got.extend_from_slice(body.filled());
                        has_body = false;
                    }
                    Completion::Eof { .. } => over = true,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(got.len(), sent.len());
        assert!(got == sent);
        writer.join().unwrap();
    });
}

#[test]
fn errors_that_pass_are_not_errors_of_the_driver() {
    for passing in [Errno::INTR, Errno::TIME, Errno::BUSY, Errno::AGAIN] {
        assert_eq!(ring::unless_momentary(Err(passing.into())).unwrap(), None);
    }
    assert!(ring::unless_momentary(Err(Errno::BADF.into())).is_err());
}

#[test]
fn a_user_who_may_lock_no_memory_has_a_driver_or_hears_why_not() {
    if !in_a_process_of_its_own("a_user_who_may_lock_no_memory_has_a_driver_or_hears_why_not") {
        return;
    }
    if is_denied() {
        return;
    }
    become_a_user_who_may_lock_nothing();
    match UringDriver::with(usual()).map_err(|error| probe::denial("io_uring_setup", &error)) {
        Err(denial) => assert!(denial.what_to_do.contains("ulimit -l"), "{denial}"),
        Ok(driver) => {
            let mut harness = Harness {
                driver,
                told: Vec::new(),
            };
            let (_, mut theirs) = harness.attach_reading();
            let sent = pattern(1 << 20);
            let copy = sent.clone();
            let writer = std::thread::spawn(move || theirs.write_all(&copy).unwrap());
            assert!(harness.read(sent.len()) == sent);
            writer.join().unwrap();
        }
    }
}

fn chunk_bytes(told: &Completion) -> &[u8] {
    match told {
        Completion::Read { chunk, .. } => chunk,
        other => panic!("{other:?}"),
    }
}

/// Runs the calling test once more in a process of its own, for what changes a process. True
/// there; false once that has passed.
fn in_a_process_of_its_own(test: &str) -> bool {
    const INSIDE: &str = "RINGWAY_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let name = format!("driver::uring::tests::pitfalls::{test}");
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// As far as this process may: root may lock whatever it likes, so it stops being root.
fn become_a_user_who_may_lock_nothing() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let nothing = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Memlock, nothing).unwrap();
    if rustix::process::geteuid().is_root() {
        let nobody = rustix::process::Uid::from_raw(65_534);
        // Of this thread, which makes the ring.
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
}
