//! Bytes without sense: an error or nothing, never a panic, and no memory to speak of.

use std::time::Duration;

use ringway_netio::frame::{AHEAD_BYTES_MAX, Ending, FRAME_BYTES_MAX};
use ringway_netio::session::{ReceiverOptions, SenderOptions, SenderSession};

use crate::corpus;
use crate::ends::{ReceiverEnd, transmit};
use crate::seed::Seeded;

/// Feeds bytes to a receiver in parts, with a consumer that takes now and then.
pub(crate) fn feed_receiver(bytes: &[u8], seeded: &mut Seeded) -> ReceiverEnd {
    let mut end = ReceiverEnd::new(ReceiverOptions::default());
    end.tells_rows = seeded.below(2) == 0;
    end.transmit();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (part, later) = rest.split_at(1 + seeded.below(rest.len() as u64) as usize);
        rest = later;
        end.receive(Duration::ZERO, part);
        if seeded.below(2) == 0 {
            end.take(Duration::ZERO, 3);
            end.transmit();
        }
    }
    while end.take(Duration::ZERO, usize::MAX) > 0 {}
    end.session.handle_eof();
    end.transmit();
    end.session.poll_hang_up();
    assert!(end.session.poll_end().is_some());
    assert!(end.ahead_bytes <= AHEAD_BYTES_MAX);
    end
}

/// Feeds bytes to a sender in parts, which does what it can meanwhile.
pub(crate) fn feed_sender(bytes: &[u8], seeded: &mut Seeded) -> SenderSession<Vec<u8>> {
    let now = Duration::ZERO;
    let mut sender = SenderSession::new(SenderOptions::default(), now);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (part, later) = rest.split_at(1 + seeded.below(rest.len() as u64) as usize);
        rest = later;
        sender.handle_input(now, part);
        transmit(&mut sender);
        sender.poll_hang_up();
        if seeded.below(8) == 0 {
            sender.close(Ending::End);
        }
    }
    sender.close(Ending::End);
    transmit(&mut sender);
    sender.handle_eof(now);
    sender.handle_lost(now, "reset");
    assert!(sender.is_over());
    sender
}

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
