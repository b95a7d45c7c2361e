//! Which form two peers end up with.

use std::time::Duration;

use ringway_netio::frame::{Ending, Extensions, Identity, Kind};
use ringway_netio::session::{
    CONTROL_ELEMENTS_MAX, Mode, Negotiation, ReceiverOptions, STALLED_AFTER, SenderOptions,
    SessionError,
};

use crate::ends::{ReceiverEnd, batch, push, transmit, watermark};
use crate::pair::Pair;
use crate::seed::Seeded;

fn pair(sender: SenderOptions, receiver: ReceiverOptions) -> Pair {
    let mut pair = Pair::new(sender, receiver, Seeded::from_seed(1));
    pair.to_push = [watermark(1), batch(3, 10), watermark(2)].into();
    pair.drive();
    pair
}

fn sender(negotiation: Negotiation) -> SenderOptions {
    SenderOptions {
        negotiation,
        ..SenderOptions::default()
    }
}

fn receiver(negotiation: Negotiation) -> ReceiverOptions {
    ReceiverOptions {
        negotiation,
        token: 42,
        ..ReceiverOptions::default()
    }
}

fn identity(edge: u64, attempt: u32) -> Option<Identity> {
    Some(Identity {
        job: 7,
        edge,
        attempt,
    })
}

#[test]
fn two_new_peers_negotiate_and_the_token_is_known_to_both() {
    let mut pair = pair(sender(Negotiation::Prefer), receiver(Negotiation::Prefer));
    let all = Extensions::ALL.without(Extensions::IDENTITY);
    assert_eq!(pair.sender.mode(), Mode::Negotiated(all));
    assert_eq!(pair.receiver.session.mode(), Mode::Negotiated(all));
    assert_eq!(pair.sender.offer().unwrap().token, 42);
    assert_eq!(pair.receiver.schemas, 1);
    pair.sender.close(Ending::Stopped);
    pair.drive();
    assert_eq!(pair.receiver.ending(), Ok(Ending::Stopped));
    assert!(pair.sender.is_delivered());
}

#[test]
fn whoever_speaks_version_1_only_makes_the_other_speak_it() {
    for (ours, theirs) in [
        (Negotiation::Off, Negotiation::Off),
        (Negotiation::Off, Negotiation::Prefer),
        (Negotiation::Prefer, Negotiation::Off),
    ] {
        let mut pair = pair(sender(ours), receiver(theirs));
        assert_eq!(pair.sender.mode(), Mode::V1);
        assert_eq!(pair.receiver.session.mode(), Mode::V1);
        assert_eq!(pair.receiver.got.len(), 3);
        assert_eq!(pair.receiver.schemas, 0);
        pair.sender.close(Ending::Stopped);
        pair.drive();
        assert_eq!(pair.receiver.ending(), Ok(Ending::Unsaid));
        assert!(pair.sender.is_delivered());
    }
}

#[test]
fn whoever_requires_the_negotiated_form_fails_without_it() {
    let lone = pair(sender(Negotiation::Require), receiver(Negotiation::Off));
    let refused = |error| matches!(error, Some(SessionError::NotNegotiated { .. }));
    assert!(refused(lone.sender.error().cloned()));
    assert!(lone.receiver.got.is_empty(), "nothing was sent to it");

    let lone = pair(sender(Negotiation::Off), receiver(Negotiation::Require));
    assert!(refused(lone.receiver.ending().err()));
}

#[test]
fn only_what_both_know_is_used() {
    let ours = SenderOptions {
        extensions: Extensions::LZ4 | Extensions::ALIGNED,
        ..SenderOptions::default()
    };
    let theirs = ReceiverOptions {
        extensions: Extensions::LZ4 | Extensions::ZSTD,
        ..ReceiverOptions::default()
    };
    let pair = pair(ours, theirs);
    let both = Extensions::CORE | Extensions::LZ4;
    assert_eq!(pair.sender.mode(), Mode::Negotiated(both));
    assert_eq!(pair.receiver.session.mode(), Mode::Negotiated(both));
}

#[test]
fn a_peer_of_another_edge_or_attempt_is_refused_with_its_name() {
    let with = |ours, theirs| {
        let sender = SenderOptions {
            identity: ours,
            ..SenderOptions::default()
        };
        let receiver = ReceiverOptions {
            identity: theirs,
            ..ReceiverOptions::default()
        };
        pair(sender, receiver)
    };
    let fine = with(identity(5, 1), identity(5, 1));
    assert_eq!(fine.receiver.got.len(), 3);

    let any = with(identity(5, 1), identity(Identity::ANY_EDGE, 1));
    assert_eq!(any.receiver.session.identity().copied(), identity(5, 1));

    for theirs in [identity(6, 1), identity(5, 2)] {
        let wrong = with(identity(5, 1), theirs);
        let error = wrong.sender.error().cloned();
        assert!(matches!(error, Some(SessionError::WrongPeer { .. })));
        let told = wrong.receiver.ending().unwrap_err();
        assert!(matches!(told, SessionError::PeerAborted(_)), "{told}");
        assert!(told.to_string().contains("attempt"), "{told}");
    }
}

#[test]
fn a_peer_that_does_not_say_who_it_is_is_refused() {
    let ours = SenderOptions {
        identity: identity(5, 1),
        ..SenderOptions::default()
    };
    let nameless = pair(ours, receiver(Negotiation::Prefer));
    let error = nameless.sender.error().cloned();
    assert!(matches!(error, Some(SessionError::NotNegotiated { .. })));

    let theirs = ReceiverOptions {
        identity: identity(5, 1),
        ..ReceiverOptions::default()
    };
    let nameless = pair(sender(Negotiation::Prefer), theirs);
    let error = nameless.receiver.ending().unwrap_err();
    assert!(matches!(error, SessionError::NotNegotiated { .. }));
    let told = nameless.sender.error().cloned();
    assert!(matches!(told, Some(SessionError::PeerAborted(_))));
}

#[test]
fn control_elements_may_go_before_the_answer_and_batches_may_not() {
    let mut pair = Pair::calm();
    assert!(push(&mut pair.sender, &watermark(4)));
    assert!(!push(&mut pair.sender, &batch(0, 4)), "of which form?");
    let early = transmit(&mut pair.sender);
    assert_eq!(early.len(), 13, "a plain watermark");
    pair.receiver.receive(pair.now, &early);
    pair.drive();
    assert_eq!(pair.forward.carried[4], Kind::ACCEPT.0);
    pair.to_push = [watermark(5), batch(0, 4)].into();
    pair.drive();
    assert_eq!(pair.receiver.got, [watermark(4), watermark(5), batch(0, 4)]);
}

#[test]
fn a_receiver_that_requires_an_answer_takes_nothing_before_it_and_loses_nothing() {
    let mut pair = Pair::new(
        sender(Negotiation::Prefer),
        receiver(Negotiation::Require),
        Seeded::from_seed(1),
    );
    for timestamp in 0..3 {
        assert!(push(&mut pair.sender, &watermark(timestamp)));
    }
    let early = transmit(&mut pair.sender);
    pair.receiver.receive(pair.now, &early);
    assert_eq!(pair.receiver.take(pair.now, 9), 0);
    pair.drive();
    assert_eq!(pair.receiver.got, [0, 1, 2].map(watermark));
}

#[test]
fn a_sender_that_never_answers_can_not_fill_the_memory_of_one_who_requires_it() {
    let mut end = ReceiverEnd::new(ReceiverOptions {
        inbox_elements: 1,
        ..receiver(Negotiation::Require)
    });
    end.transmit();
    let barrier = [0, 0, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 5];
    for _ in 0..CONTROL_ELEMENTS_MAX {
        end.receive(Duration::ZERO, &barrier);
        assert!(end.wants_bytes());
    }
    end.receive(Duration::ZERO, &barrier);
    let error = end.ending().unwrap_err();
    assert!(matches!(error, SessionError::NotNegotiated { .. }));
}

#[test]
fn an_end_waits_for_the_form_it_is_told_in_but_not_for_ever() {
    let mut pair = Pair::calm();
    pair.sender.close(Ending::Stopped);
    assert!(transmit(&mut pair.sender).is_empty());
    pair.drive();
    assert_eq!(pair.receiver.ending(), Ok(Ending::Stopped));

    let mut pair = Pair::calm();
    pair.sender.close(Ending::Stopped);
    assert_eq!(pair.sender.poll_timeout(), Some(STALLED_AFTER));
    pair.sender.handle_timeout(STALLED_AFTER);
    assert_eq!(transmit(&mut pair.sender), [0, 0, 0, 1, 3]);
    assert_eq!(pair.sender.mode(), Mode::V1);
    pair.sender.handle_delivered();
    assert!(pair.sender.is_delivered());
}
