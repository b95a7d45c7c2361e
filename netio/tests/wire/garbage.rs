//! Bytes without sense: an error or nothing, never a panic, and no memory to speak of.

use std::time::Duration;

use ringway_netio::frame::{AHEAD_BYTES_MAX, FRAME_BYTES_MAX};
use ringway_netio::session::ReceiverOptions;

use crate::corpus;
use crate::ends::ReceiverEnd;
use crate::feed::{feed_receiver, feed_sender};
use crate::seed::Seeded;

#[test]
fn random_bytes_never_panic() {
    let mut seeded = Seeded::new();
    for _ in 0..5_000 {
        let length = seeded.below(200) as usize;
        let bytes = seeded.bytes(length);
        feed_receiver(&bytes, &mut seeded);
        feed_sender(&bytes, &mut seeded);
    }
}

#[test]
fn random_frames_never_panic() {
    let mut seeded = Seeded::new();
    for _ in 0..5_000 {
        let mut bytes = Vec::new();
        for _ in 0..seeded.below(8) {
            let body = seeded.below(100) as usize;
            let kind = match seeded.below(4) {
                0 => seeded.number() as u8,
                1 => 224 + seeded.below(6) as u8,
                _ => 1 + seeded.below(8) as u8,
            };
            bytes.extend_from_slice(&(body as u32 + 1).to_be_bytes());
            bytes.push(kind);
            bytes.extend(seeded.bytes(body));
        }
        feed_receiver(&bytes, &mut seeded);
        feed_sender(&bytes, &mut seeded);
    }
}

#[test]
fn mutations_of_the_corpus_never_panic() {
    let mut seeded = Seeded::new();
    for case in corpus::read() {
        for _ in 0..200 {
            let mut bytes = case.bytes.clone();
            for _ in 0..1 + seeded.below(4) {
                mutate(&mut bytes, &mut seeded);
            }
            feed_receiver(&bytes, &mut seeded);
            feed_sender(&bytes, &mut seeded);
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, seeded: &mut Seeded) {
    let at = seeded.below(bytes.len() as u64 + 1) as usize;
    match seeded.below(4) {
        0 if at < bytes.len() => bytes[at] = seeded.number() as u8,
        1 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
        2 => bytes.truncate(at),
        _ => bytes.insert(at, seeded.number() as u8),
    }
}

#[test]
fn a_claimed_length_reserves_nothing() {
    for length in [64u32 << 20, 1 << 20] {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.push(7);
        bytes.extend_from_slice(&[1; 10]);
        let mut end = ReceiverEnd::new(ReceiverOptions::default());
        end.transmit();
        end.receive(Duration::ZERO, &bytes);
        assert!(end.session.end().is_none());
        assert!(end.ahead_bytes <= AHEAD_BYTES_MAX);
    }
    let mut end = ReceiverEnd::new(ReceiverOptions::default());
    end.receive(Duration::ZERO, &FRAME_BYTES_MAX.to_be_bytes());
    assert!(
        end.session.end().is_some(),
        "above the byte limit of the edge"
    );
}
