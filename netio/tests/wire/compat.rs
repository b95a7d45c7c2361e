//! A sender against a peer of version 1 that is played by hand.

use std::time::Duration;

use ringway_netio::frame::{Ending, FrameError, ReasonCode};
use ringway_netio::session::{
    HangUp, Mode, Negotiation, OutBatch, ReceiverOptions, Refusal, SenderOptions, SenderSession,
    SessionError,
};

use crate::ends::{Element, ReceiverEnd, barrier, batch, push, rows_of, transmit, watermark};

const NOW: Duration = Duration::ZERO;

fn grant(records: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 5, 4];
    frame.extend_from_slice(&records.to_be_bytes());
    frame
}

/// A sender that speaks version 1 only, and one that prefers the negotiated form.
fn senders() -> [SenderSession<Vec<u8>>; 2] {
    [Negotiation::Off, Negotiation::Prefer].map(|negotiation| {
        let options = SenderOptions {
            negotiation,
            ..SenderOptions::default()
        };
        SenderSession::new(options, NOW)
    })
}

fn refusal(sender: &mut SenderSession<Vec<u8>>, element: &Element) -> Option<Refusal> {
    let Element::Batch(body) = element else {
        panic!("a batch is refused");
    };
    let (bytes, rows, codec) = (body.len() as u64, rows_of(body), Default::default());
    let pushed = sender.push_batch(OutBatch {
        body: body.clone(),
        bytes,
        rows,
        codec,
    });
    pushed.err().map(|rejected| rejected.why)
}

#[test]
fn without_credit_control_elements_pass_and_data_waits() {
    for mut sender in senders() {
        assert!(push(&mut sender, &watermark(1)));
        assert!(push(&mut sender, &barrier(2, 0)));
        let rejected = refusal(&mut sender, &batch(1, 8));
        assert_eq!(rejected, Some(Refusal::NoCredit));
        assert_eq!(transmit(&mut sender).len(), 13 + 14);
        sender.handle_input(NOW, &grant(2048));
        assert_eq!(sender.mode(), Mode::V1);
        assert!(push(&mut sender, &batch(1, 8)));
        assert_eq!(transmit(&mut sender).len(), 13);
    }
}

#[test]
fn a_batch_waits_for_all_of_its_credit() {
    for mut sender in senders() {
        sender.handle_input(NOW, &grant(100));
        assert!(!push(&mut sender, &batch(250, 8)));
        sender.handle_input(NOW, &grant(200));
        assert!(push(&mut sender, &batch(250, 8)));
        assert_eq!(sender.credit().available_rows(), 50);
    }
}

#[test]
fn a_peer_that_closes_its_direction_is_sent_what_it_granted_and_no_more() {
    for mut sender in senders() {
        sender.handle_input(NOW, &grant(10));
        sender.handle_eof(NOW);
        assert!(push(&mut sender, &batch(10, 8)));
        let rejected = refusal(&mut sender, &batch(1, 8));
        assert_eq!(rejected, Some(Refusal::Failed));
        assert!(push(&mut sender, &watermark(7)));
        sender.close(Ending::End);
        assert_eq!(transmit(&mut sender).len(), 13 + 13 + 5);
        assert_eq!(sender.poll_hang_up(), Some(HangUp::Write));
        sender.handle_delivered();
        assert!(sender.is_over() && !sender.is_delivered());
        let error = sender.error();
        assert!(matches!(error, Some(SessionError::PeerLost { .. })));
    }
}

#[test]
fn a_broken_frame_from_the_receiver_fails_the_session_at_once() {
    for mut sender in senders() {
        sender.handle_input(NOW, &[0, 0, 0, 0]);
        let error = sender.error().cloned();
        assert_eq!(error, Some(SessionError::Frame(FrameError::Empty)));
        assert!(!push(&mut sender, &watermark(5)));
        assert_eq!(sender.poll_hang_up(), Some(HangUp::Both));
    }
}

#[test]
fn a_stream_is_over_for_the_sender_when_its_peers_host_has_it() {
    for mut sender in senders() {
        sender.handle_input(NOW, &grant(10));
        sender.handle_delivered();
        assert!(!sender.is_over(), "all so far is no end");
        sender.close(Ending::End);
        sender.handle_delivered();
        assert!(!sender.is_over(), "the Close is not sent yet");
        assert_eq!(transmit(&mut sender), [0, 0, 0, 1, 3]);
        assert_eq!(sender.poll_hang_up(), Some(HangUp::Write));
        sender.handle_input(NOW, &grant(10));
        assert!(!sender.is_over());
        sender.handle_delivered();
        assert!(sender.is_delivered());
        assert_eq!(sender.poll_hang_up(), Some(HangUp::Both));
    }
}

#[test]
fn the_first_bytes_of_a_receiver_are_a_grant_that_any_peer_reads() {
    let options = |negotiation| ReceiverOptions {
        negotiation,
        ..ReceiverOptions::default()
    };
    let plain = ReceiverEnd::new(options(Negotiation::Off)).transmit();
    assert_eq!(plain, grant(2048));
    let offering = ReceiverEnd::new(options(Negotiation::Prefer)).transmit();
    assert_eq!(&offering[4..9], &plain[4..9]);
    assert_eq!(&offering[9..13], b"RWAY");
    assert_eq!(offering.len(), 4 + usize::from(offering[3]));
}

#[test]
fn what_was_pushed_after_a_failure_comes_back() {
    for mut sender in senders() {
        let reason = ringway_netio::frame::Reason::new(ReasonCode::Failed, "a panic");
        sender.abort(NOW, reason);
        assert_eq!(refusal(&mut sender, &batch(1, 8)), Some(Refusal::Failed));
        assert!(transmit(&mut sender).is_empty(), "no Close, no reason");
        assert!(sender.is_over());
    }
}
