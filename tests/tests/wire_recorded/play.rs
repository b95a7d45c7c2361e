//! Playing a stream to a receiver whose consumer takes all at once.

use ringway_netio::frame::{Deframed, Deframer, Direction, FRAME_BYTES_MAX, Frame, FrameError};
use ringway_netio::session::{
    Intake, Negotiation, Received, ReceiverOptions, ReceiverSession, SessionError,
};

use crate::{NOW, named};

/// What a session delivered, and what it sent back.
pub(crate) struct Played {
    pub(crate) delivered: Vec<String>,
    pub(crate) end: String,
    pub(crate) granted: u64,
}

/// Plays a stream to a receiver whose consumer takes all at once. The rows of batches are
/// those given, or else the first four bytes of a body.
pub(crate) fn play(bytes: &[u8], negotiation: Negotiation, rows: &[u32]) -> Played {
    let options = ReceiverOptions {
        negotiation,
        window_bytes: u64::from(FRAME_BYTES_MAX),
        ..ReceiverOptions::default()
    };
    let mut session: ReceiverSession<Vec<u8>> = ReceiverSession::new(options, NOW);
    let mut rows = rows.iter();
    let mut delivered = Vec::new();
    let mut sent = Vec::new();
    session.poll_transmit(&mut sent);
    let mut input = bytes;
    loop {
        match session.handle_input(NOW, &mut input) {
            Intake::Body(wanted) => {
                let body = session.take_body(NOW, &mut input).to_vec();
                if body.len() < wanted.bytes {
                    break;
                }
                session.handle_body(body, None);
            }
            Intake::More | Intake::Ended => break,
            Intake::Full => {}
        }
        take(&mut session, &mut rows, &mut delivered);
        session.poll_transmit(&mut sent);
    }
    take(&mut session, &mut rows, &mut delivered);
    session.poll_transmit(&mut sent);
    session.handle_eof();
    Played {
        delivered,
        end: session.poll_end().map_or("open".into(), |end| match end {
            Ok(_) => "none".into(),
            Err(error) => reason(error).to_string(),
        }),
        granted: granted(&sent),
    }
}

fn take(
    session: &mut ReceiverSession<Vec<u8>>,
    rows: &mut std::slice::Iter<'_, u32>,
    delivered: &mut Vec<String>,
) {
    while let Some(received) = session.poll_element() {
        match received {
            Received::Control(control) => delivered.push(named(&control)),
            Received::Schema(_) => delivered.push("SCHEMA".into()),
            Received::Batch(batch) => {
                let first = batch.body.first_chunk().copied().unwrap_or_default();
                let own = u32::from_be_bytes(first);
                let rows = rows.next().copied().unwrap_or(own);
                if session.grant(batch.taken, rows).is_ok() {
                    delivered.push("DATA".into());
                }
            }
        }
    }
}

/// An error in the words of the recordings, where these have some.
fn reason(error: &SessionError) -> &'static str {
    match error {
        SessionError::Frame(FrameError::Empty | FrameError::TooLong { .. }) => {
            "frame length corrupt"
        }
        SessionError::Frame(FrameError::Truncated { .. }) => "frame truncated mid-body",
        SessionError::Frame(FrameError::LegacyKind) => "legacy Data frame kind",
        SessionError::Frame(FrameError::Short { .. }) => "short",
        SessionError::Credit(_) => "window",
        SessionError::PeerLost { .. } => "lost",
        _ => "other",
    }
}

/// The sum of the grants in what a receiver sent.
pub(crate) fn granted(mut bytes: &[u8]) -> u64 {
    let mut deframer = Deframer::new(Direction::FromReceiver, false, FRAME_BYTES_MAX);
    let mut sum = 0;
    while let Some(Deframed::Small { kind, body }) =
        deframer.poll(&mut bytes).expect("proper frames")
    {
        match Frame::parse(kind, body).expect("a proper frame") {
            Frame::CreditUpdate { records, .. } => sum += u64::from(records),
            other => panic!("{other:?}"),
        }
    }
    assert!(deframer.handle_eof().is_ok());
    sum
}
