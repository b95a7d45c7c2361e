//! When silence becomes an error, and when it does not.

use std::time::Duration;

use ringway_netio::frame::{Reason, ReasonCode};
use ringway_netio::session::{
    ABORT_LINGER, HangUp, Negotiation, ReceiverOptions, STALLED_AFTER, SenderOptions,
    SenderSession, SessionError,
};

use crate::ends::{ReceiverEnd, transmit};
use crate::pair::Pair;

fn is_stalled(error: Option<SessionError>) -> bool {
    matches!(error, Some(SessionError::PeerStalled { .. }))
}

#[test]
fn a_peer_that_is_silent_inside_of_a_frame_is_stalled() {
    for begun in [
        &[0][..],
        &[0, 0, 0, 9, 1],
        &[0, 0, 0, 9, 7, 1, 2],
        &[0, 0, 0, 9, 99, 1],
    ] {
        let mut end = ReceiverEnd::new(ReceiverOptions::default());
        let now = Duration::from_secs(100);
        end.receive(now, begun);
        assert_eq!(end.session.poll_timeout(), Some(now + STALLED_AFTER));
        end.session
            .handle_timeout(now + STALLED_AFTER - Duration::from_millis(1));
        assert!(end.session.end().is_none());
        end.session.handle_timeout(now + STALLED_AFTER);
        assert!(is_stalled(end.ending().err()));
    }
}

#[test]
fn a_slow_peer_is_not_stalled_and_an_idle_one_neither() {
    let mut end = ReceiverEnd::new(ReceiverOptions::default());
    let mut now = Duration::ZERO;
    for byte in [0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 5] {
        end.receive(now, &[byte]);
        now += STALLED_AFTER - Duration::from_millis(1);
        end.session.handle_timeout(now);
    }
    assert_eq!(end.take(now, 9), 1);
    assert_eq!(end.session.poll_timeout(), None);
    end.session.handle_timeout(now + STALLED_AFTER * 100);
    assert!(end.session.end().is_none());
}

#[test]
fn patience_without_measure_waits_for_ever() {
    let options = ReceiverOptions {
        stalled_after: Duration::MAX,
        ..ReceiverOptions::default()
    };
    let mut end = ReceiverEnd::new(options);
    let now = Duration::from_secs(100);
    end.receive(now, &[0, 0, 0, 9, 1]);
    assert_eq!(end.session.poll_timeout(), Some(Duration::MAX));
    end.session.handle_timeout(now * 1000);
    assert!(end.session.end().is_none());
}

#[test]
fn silence_does_not_count_while_nobody_reads() {
    let mut end = ReceiverEnd::new(ReceiverOptions::default());
    end.receive(Duration::ZERO, &[0, 0, 0, 9, 7, 1]);
    end.session.handle_reading(Duration::ZERO, false);
    assert_eq!(end.session.poll_timeout(), None);
    let later = STALLED_AFTER * 5;
    end.session.handle_timeout(later);
    end.session.handle_reading(later, true);
    assert_eq!(end.session.poll_timeout(), Some(later + STALLED_AFTER));
}

#[test]
fn a_peer_that_never_begins_is_overdue_where_the_negotiated_form_is_required() {
    let options = ReceiverOptions {
        negotiation: Negotiation::Require,
        ..ReceiverOptions::default()
    };
    let mut end = ReceiverEnd::new(options);
    end.transmit();
    end.session.handle_timeout(STALLED_AFTER);
    assert!(is_stalled(end.ending().err()));

    let options = SenderOptions {
        negotiation: Negotiation::Require,
        ..SenderOptions::default()
    };
    let mut sender: SenderSession<Vec<u8>> = SenderSession::new(options, Duration::ZERO);
    sender.handle_timeout(STALLED_AFTER);
    assert!(is_stalled(sender.error().cloned()));
    assert_eq!(sender.poll_hang_up(), Some(HangUp::Both));
}

#[test]
fn a_grant_that_stops_half_way_is_a_stalled_peer() {
    let mut pair = Pair::calm();
    pair.drive();
    pair.sender.handle_input(Duration::from_secs(1), &[0, 0]);
    assert!(pair.time_out());
    assert!(is_stalled(pair.sender.error().cloned()));
    pair.drive();
    let told = pair.receiver.ending().unwrap_err();
    assert!(matches!(told, SessionError::PeerAborted(_)));
}

#[test]
fn an_aborted_connection_waits_for_the_peer_only_so_long() {
    let mut pair = Pair::calm();
    pair.drive();
    let reason = Reason::new(ReasonCode::Failed, "no reason");
    pair.sender.abort(pair.now, reason);
    assert!(!transmit(&mut pair.sender).is_empty());
    assert_eq!(pair.sender.poll_hang_up(), Some(HangUp::Write));
    assert!(!pair.sender.is_over());
    pair.sender.handle_timeout(pair.now + ABORT_LINGER);
    assert!(pair.sender.is_over());
    assert_eq!(pair.sender.poll_hang_up(), Some(HangUp::Both));
}
