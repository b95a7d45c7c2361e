//! Bursts that are alike, whose fronts are received by operations of their own.

use super::*;

const TAIL: usize = 64;
const BURST: usize = 328;
const STEPS: usize = 1_500;

/// A thread that sleeps now and then, and whose connection finds no chunk now and then.
fn tiny() -> Settings {
    Settings {
        submissions: 4,
        completions: 8,
        chunks: 4,
        chunk_bytes: 512,
        ..usual()
    }
}

/// Takes what has come, in order. Returns whether a body came back.
fn take(harness: &mut Harness, got: &mut Vec<u8>) -> bool {
    let mut has_body = false;
    for told in harness.told.drain(..) {
        match told {
            Completion::Read { chunk, .. } => got.extend_from_slice(&chunk),
            Completion::Body { body, .. } => {
                has_body = true;
                got.extend_from_slice(body.filled());
            }
            Completion::BodyProgress { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    has_body
}

#[test]
fn no_byte_is_lost_or_doubled_whatever_happens_while_a_front_is_asked_for() {
    let random = std::cell::RefCell::new(seeded());
    in_every_mode(tiny(), |mut harness| {
        let random = &mut *random.borrow_mut();
        let (connection, mut theirs) = harness.attach_reading();
        harness.driver.expect_tail(connection, TAIL);
        let sent = pattern(STEPS * 1_000);
        let (mut at, mut got, mut has_body) = (0, Vec::new(), false);
        for _ in 0..STEPS {
            let bytes = match random.below(24) {
                0 => 1 + random.below(1_000) as usize,
                _ => BURST,
            };
            theirs.write_all(&sent[at..at + bytes]).unwrap();
            at += bytes;
            match random.below(80) {
                0 => harness.driver.set_reading(connection, false),
                1 if !has_body => {
                    let body = Body::new(1 + random.below(700) as usize);
                    harness.driver.read_body(connection, body);
                    has_body = true;
                }
                2 => harness.driver.expect_tail(connection, TAIL),
                _ => harness.driver.set_reading(connection, true),
            }
            for _ in 0..random.below(4) {
                harness.driver.poll(&mut harness.told).unwrap();
            }
            if random.below(2) == 0 {
                let moment = Duration::from_micros(random.below(100));
                harness.driver.wait(Some(moment)).unwrap();
            }
            // Now and then nothing is let go for a while.
            if random.below(6) != 0 {
                has_body &= !take(&mut harness, &mut got);
            }
        }
        harness.driver.set_reading(connection, true);
        if has_body {
            // More than the body lacks.
            theirs.write_all(&sent[at..at + 1_000]).unwrap();
            at += 1_000;
        }
        let start = Instant::now();
        while got.len() < at {
            assert!(start.elapsed() < LONG, "{} of {at}", got.len());
            let moment = Duration::from_millis(10);
            harness.driver.wait(Some(moment)).unwrap();
            harness.driver.poll(&mut harness.told).unwrap();
            take(&mut harness, &mut got);
        }
        assert!(got == sent[..at], "bytes that nobody sent");
        drop(theirs);
        harness.until_told(is_eof);
    });
}
