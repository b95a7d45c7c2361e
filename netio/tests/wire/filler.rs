//! What stands behind small frames and means nothing.

use std::time::Duration;

use ringway_netio::frame::{
    Ending, Extensions, FILLER_BYTES, FrameError, Kind, Reason, ReasonCode, encode,
};
use ringway_netio::session::{
    Mode, Negotiation, ReceiverOptions, SenderOptions, SenderSession, SessionError,
};

use crate::ends::{Element, ReceiverEnd, barrier, push, transmit, watermark};
use crate::pair::Pair;
use crate::seed::Seeded;

const NOW: Duration = Duration::ZERO;

/// A pair that has agreed, the sender with these extensions, the receiver with those.
fn agreed(ours: Extensions, theirs: Extensions) -> Pair {
    let sender = SenderOptions {
        extensions: ours,
        ..SenderOptions::default()
    };
    let receiver = ReceiverOptions {
        extensions: theirs,
        ..ReceiverOptions::default()
    };
    let mut pair = Pair::new(sender, receiver, Seeded::from_seed(1));
    pair.drive();
    pair
}

fn filler() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 60, 230];
    bytes.resize(64, 0);
    bytes
}

/// What a sender would put behind what it sends.
fn filled(sender: &SenderSession<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    assert_eq!(sender.fill(&mut out), out.len());
    out
}

/// Where each frame begins, and its kind.
fn frames(bytes: &[u8]) -> Vec<(usize, Kind)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((length, rest)) = bytes[at..].split_first_chunk() {
        found.push((at, Kind(rest[0])));
        at += 4 + u32::from_be_bytes(*length) as usize;
    }
    found
}

#[test]
fn a_filler_is_a_frame_of_64_bytes() {
    let pair = agreed(Extensions::ALL, Extensions::ALL);
    assert_eq!(filled(&pair.sender), filler());
    assert_eq!(filler().len(), FILLER_BYTES);
    let mut out = b"what was there".to_vec();
    assert_eq!(pair.sender.fill(&mut out), FILLER_BYTES);
    assert_eq!(out, [&b"what was there"[..], &filler()].concat());
}

#[test]
fn a_filler_is_sent_only_where_it_was_offered_and_accepted() {
    let without = Extensions::ALL.without(Extensions::FILLER);
    for (ours, theirs) in [
        (without, Extensions::ALL),
        (Extensions::ALL, without),
        (without, without),
    ] {
        let pair = agreed(ours, theirs);
        assert!(matches!(pair.sender.mode(), Mode::Negotiated(_)));
        assert_eq!(pair.sender.mode(), pair.receiver.session.mode());
        assert!(filled(&pair.sender).is_empty());
    }
}

#[test]
fn version_1_has_no_filler() {
    for (ours, theirs) in [
        (Negotiation::Off, Negotiation::Prefer),
        (Negotiation::Prefer, Negotiation::Off),
    ] {
        let sender = SenderOptions {
            negotiation: ours,
            ..SenderOptions::default()
        };
        let receiver = ReceiverOptions {
            negotiation: theirs,
            ..ReceiverOptions::default()
        };
        let mut pair = Pair::new(sender, receiver, Seeded::from_seed(1));
        assert!(filled(&pair.sender).is_empty(), "the form is not known");
        pair.drive();
        assert_eq!(pair.sender.mode(), Mode::V1);
        assert!(filled(&pair.sender).is_empty());
    }
}

#[test]
fn no_filler_goes_before_the_answer_to_an_offer() {
    let mut sender: SenderSession<Vec<u8>> = SenderSession::new(SenderOptions::default(), NOW);
    assert!(push(&mut sender, &watermark(1)));
    assert!(filled(&sender).is_empty());
    let offer = ReceiverEnd::new(ReceiverOptions::default()).transmit();
    sender.handle_input(NOW, &offer);
    assert!(matches!(sender.mode(), Mode::Negotiated(_)));
    assert!(filled(&sender).is_empty(), "the answer is not sent");
    transmit(&mut sender);
    assert_eq!(filled(&sender), filler());
}

#[test]
fn no_filler_follows_an_end_whether_it_is_queued_or_sent() {
    let mut pair = agreed(Extensions::ALL, Extensions::ALL);
    assert!(push(&mut pair.sender, &watermark(1)));
    pair.sender.close(Ending::End);
    assert!(filled(&pair.sender).is_empty(), "it is queued");
    let sent = transmit(&mut pair.sender);
    assert_eq!(frames(&sent).last().map(|last| last.1), Some(Kind::CLOSE));
    assert!(filled(&pair.sender).is_empty(), "it is sent");
    pair.receiver.receive(NOW, &sent);
    let answer = pair.receiver.transmit();
    pair.sender.handle_input(NOW, &answer);
    assert!(pair.sender.is_delivered());
    assert!(filled(&pair.sender).is_empty());

    let mut pair = agreed(Extensions::ALL, Extensions::ALL);
    let reason = Reason::new(ReasonCode::Failed, "a panic");
    pair.sender.abort(NOW, reason);
    assert!(filled(&pair.sender).is_empty());
    let sent = transmit(&mut pair.sender);
    assert_eq!(frames(&sent), [(0, Kind::ABORT)]);
    assert!(filled(&pair.sender).is_empty());
}

#[test]
fn a_filler_has_no_number_takes_no_credit_and_is_no_element() {
    let elements: Vec<Element> = (0..20)
        .map(|n| match n % 3 {
            0 => watermark(n),
            1 => barrier(n as u64, 0),
            _ => crate::ends::batch(n as u32, 10),
        })
        .collect();
    let mut credit = Vec::new();
    for fills in [false, true] {
        let mut pair = agreed(Extensions::ALL, Extensions::ALL);
        pair.fills = fills;
        for element in &elements {
            pair.to_push = [element.clone()].into();
            pair.drive();
        }
        assert_eq!(pair.receiver.got, elements);
        credit.push(pair.sender.credit().available_rows());
        let kinds = frames(&pair.forward.carried);
        let fillers = kinds.iter().filter(|(_, kind)| *kind == Kind::FILLER);
        assert_eq!(fillers.count() >= elements.len(), fills);
        pair.sender.close(Ending::Stopped);
        pair.drive();
        assert_eq!(pair.receiver.ending(), Ok(Ending::Stopped));
        assert!(pair.sender.is_delivered());
    }
    assert_eq!(credit[0], credit[1]);
}

#[test]
fn a_filler_moves_no_frame_off_its_alignment() {
    let mut pair = agreed(Extensions::ALL, Extensions::ALL);
    pair.fills = true;
    for n in 0..5 {
        pair.to_push = [watermark(n), barrier(n as u64, 1)].into();
        pair.drive();
    }
    let frames = frames(&pair.forward.carried);
    let (accept, kind) = frames[0];
    assert_eq!(kind, Kind::ACCEPT);
    let first = frames[1].0 - accept;
    assert!(frames.iter().any(|(_, kind)| *kind == Kind::FILLER));
    for (at, kind) in &frames[1..] {
        assert_eq!((at - first) % 64, 0, "{kind}");
    }
}

#[test]
fn a_receiver_that_has_not_offered_any_skips_fillers() {
    let without = Extensions::ALL.without(Extensions::FILLER);
    let mut pair = agreed(Extensions::ALL, without);
    pair.receiver.receive(NOW, &filler());
    for n in 0..3 {
        assert!(push(&mut pair.sender, &watermark(n)));
        let frame = transmit(&mut pair.sender);
        pair.receiver.receive(NOW, &frame);
        for byte in filler() {
            pair.receiver.receive(NOW, &[byte]);
        }
    }
    pair.receiver.take(NOW, 9);
    assert_eq!(pair.receiver.got, [0, 1, 2].map(watermark));

    let mut old = ReceiverEnd::new(ReceiverOptions {
        negotiation: Negotiation::Off,
        ..ReceiverOptions::default()
    });
    let mut bytes = vec![0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 5];
    encode::filler(&mut bytes);
    encode::close(&mut bytes);
    old.receive(NOW, &bytes);
    old.take(NOW, 9);
    assert_eq!((old.got.len(), old.ending()), (1, Ok(Ending::Unsaid)));
}

#[test]
fn a_connection_that_ends_inside_of_a_filler_is_cut_short() {
    for cut in 0..=FILLER_BYTES {
        let mut pair = agreed(Extensions::ALL, Extensions::ALL);
        pair.to_push = [watermark(1)].into();
        pair.drive();
        pair.receiver.receive(NOW, &filler()[..cut]);
        pair.receiver.session.handle_eof();
        assert_eq!(pair.receiver.got, [watermark(1)]);
        let error = pair.receiver.ending().unwrap_err();
        let received_bytes = cut;
        match cut % FILLER_BYTES {
            0 => assert!(matches!(error, SessionError::PeerLost { .. })),
            _ => assert_eq!(
                error,
                SessionError::Frame(FrameError::Truncated { received_bytes })
            ),
        }
    }
}
