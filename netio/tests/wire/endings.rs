//! How streams end, told apart at both ends.

use ringway_netio::frame::{Ending, FrameError, Reason, ReasonCode};
use ringway_netio::session::{Negotiation, ReceiverOptions, Refusal, SenderOptions, SessionError};

use crate::ends::{batch, push, transmit, watermark};
use crate::pair::Pair;
use crate::seed::Seeded;

fn both_forms() -> [Pair; 2] {
    [Negotiation::Off, Negotiation::Prefer].map(|negotiation| {
        let sender = SenderOptions {
            negotiation,
            ..SenderOptions::default()
        };
        Pair::new(sender, ReceiverOptions::default(), Seeded::from_seed(1))
    })
}

#[test]
fn an_empty_stream_ends_properly() {
    for mut pair in both_forms() {
        pair.sender.close(Ending::End);
        pair.drive();
        assert!(pair.receiver.ending().is_ok());
        assert!(pair.sender.is_delivered());
    }
}

#[test]
fn a_sender_lingers_until_the_peer_has_everything() {
    for mut pair in both_forms() {
        pair.appetite = 0;
        pair.drive();
        pair.to_push = (0..10).map(|_| batch(100, 100)).collect();
        for _ in 0..600 {
            pair.to_push.push_back(watermark(1));
            pair.to_push.push_back(crate::ends::barrier(1, 0));
        }
        while !pair.to_push.is_empty() {
            pair.drive();
            pair.appetite = 1;
        }
        pair.appetite = 0;
        pair.sender.close(Ending::End);
        pair.drive();
        assert!(!pair.sender.is_over(), "the receiver reads no further");
        pair.appetite = usize::MAX;
        pair.drive();
        assert!(pair.sender.is_delivered());
        assert!(pair.receiver.ending().is_ok());
        assert_eq!(pair.receiver.got.len(), 10 + 1200);
    }
}

#[test]
fn a_connection_that_ends_without_a_close_is_a_lost_peer_and_never_an_end() {
    for mut pair in both_forms() {
        pair.to_push = [batch(3, 10), watermark(7)].into();
        pair.drive();
        pair.receiver.session.handle_eof();
        let error = pair.receiver.ending().unwrap_err();
        assert!(matches!(error, SessionError::PeerLost { .. }));
        assert_eq!(pair.receiver.got, [batch(3, 10), watermark(7)]);
    }
}

#[test]
fn what_came_before_a_broken_frame_is_delivered_and_then_the_error() {
    for mut pair in both_forms() {
        pair.to_push = [batch(3, 10)].into();
        pair.drive();
        pair.appetite = 0;
        assert!(push(&mut pair.sender, &batch(4, 10)));
        let good = transmit(&mut pair.sender);
        pair.receiver.receive(pair.now, &good);
        pair.receiver.receive(pair.now, &[0, 0, 0, 0]);
        assert!(pair.receiver.session.poll_end().is_none(), "one is unread");
        pair.appetite = 9;
        pair.drive();
        assert_eq!(pair.receiver.got.len(), 2);
        let error = pair.receiver.ending().unwrap_err();
        assert_eq!(error, SessionError::Frame(FrameError::Empty));
        assert!(
            pair.sender.is_over()
                || pair
                    .sender
                    .push_batch(ringway_netio::session::OutBatch {
                        body: vec![],
                        bytes: 0,
                        rows: 4096,
                        codec: Default::default(),
                    })
                    .is_err()
        );
    }
}

#[test]
fn in_the_negotiated_form_each_side_learns_the_others_reason() {
    let mut pair = Pair::calm();
    pair.to_push = [batch(3, 10)].into();
    pair.drive();
    let reason = Reason::new(ReasonCode::Cancelled, "somebody pressed a key");
    pair.sender.abort(pair.now, reason.clone());
    pair.drive();
    let told = SessionError::PeerAborted(reason.clone());
    assert_eq!(pair.receiver.ending(), Err(told.clone()));
    assert!(pair.sender.is_over());

    let mut pair = Pair::calm();
    pair.to_push = [batch(3, 10)].into();
    pair.drive();
    pair.receiver.session.abort(reason);
    pair.drive();
    assert_eq!(pair.sender.error(), Some(&told));
    let refused = pair
        .sender
        .push_control(ringway_netio::frame::Control::Watermark { timestamp_ms: 1 });
    assert_eq!(refused.unwrap_err().why, Refusal::Failed);
}

#[test]
fn in_version_1_an_abort_is_a_connection_without_a_close() {
    let [mut pair, _] = both_forms();
    pair.to_push = [batch(3, 10)].into();
    pair.drive();
    pair.sender
        .abort(pair.now, Reason::new(ReasonCode::Failed, "a panic"));
    pair.drive();
    let error = pair.receiver.ending().unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { .. }));
    assert!(pair.sender.is_over() && !pair.sender.is_delivered());
}

#[test]
fn a_peer_that_dies_while_the_sender_lingers_is_reported() {
    let mut pair = Pair::calm();
    pair.to_push = [batch(3, 10)].into();
    pair.drive();
    pair.sender.close(Ending::End);
    transmit(&mut pair.sender);
    pair.sender.handle_delivered();
    assert!(
        !pair.sender.is_over(),
        "delivered to a host is not received"
    );
    pair.sender.handle_eof(pair.now);
    let error = pair.sender.error().cloned();
    assert!(matches!(error, Some(SessionError::PeerLost { .. })));

    let [mut pair, _] = both_forms();
    pair.drive();
    pair.sender.close(Ending::End);
    transmit(&mut pair.sender);
    pair.sender.handle_lost(pair.now, "connection reset");
    assert!(!pair.sender.is_delivered());
}

#[test]
fn after_a_close_nothing_is_taken_and_nothing_is_read() {
    for mut pair in both_forms() {
        pair.to_push = [watermark(1)].into();
        pair.drive();
        pair.sender.close(Ending::End);
        pair.sender.close(Ending::Stopped);
        let refused = pair
            .sender
            .push_control(ringway_netio::frame::Control::Watermark { timestamp_ms: 2 });
        assert_eq!(refused.unwrap_err().why, Refusal::Closed);
        pair.drive();
        pair.receiver.receive(pair.now, &[0, 0, 0, 0, 9, 9, 9]);
        pair.drive();
        assert!(pair.receiver.ending().is_ok());
        assert!(pair.sender.is_delivered());
    }
}
