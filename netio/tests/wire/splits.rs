//! Small sessions, cut at every byte.

use std::time::Duration;

use ringway_netio::frame::Ending;
use ringway_netio::session::{Negotiation, ReceiverOptions, SenderOptions, SenderSession};

use crate::ends::{Element, ReceiverEnd, barrier, batch, transmit, watermark};
use crate::pair::Pair;
use crate::seed::Seeded;

/// What both sides of a small session send, in one form or the other.
fn recorded(negotiation: Negotiation) -> (Vec<u8>, Vec<u8>, Vec<Element>) {
    let elements = [
        watermark(1),
        batch(3, 20),
        barrier(7, 1),
        batch(0, 4),
        watermark(i64::MAX),
    ];
    let sender = SenderOptions {
        negotiation,
        ..SenderOptions::default()
    };
    let mut pair = Pair::new(sender, ReceiverOptions::default(), Seeded::from_seed(1));
    pair.fills = true;
    pair.drive();
    pair.to_push = elements.clone().into();
    pair.drive();
    pair.sender.close(Ending::End);
    pair.drive();
    assert!(pair.sender.is_delivered());
    (pair.forward.carried, pair.backward.carried, elements.into())
}

const FORMS: [Negotiation; 2] = [Negotiation::Off, Negotiation::Prefer];

#[test]
fn a_receiver_does_not_care_where_the_bytes_are_cut() {
    for form in FORMS {
        let (forward, _, elements) = recorded(form);
        for first in 0..forward.len() {
            for step in [1, 7, forward.len()] {
                let mut end = ReceiverEnd::new(ReceiverOptions::default());
                end.transmit();
                end.receive(Duration::ZERO, &forward[..first]);
                for part in forward[first..].chunks(step) {
                    end.receive(Duration::ZERO, part);
                }
                end.take(Duration::ZERO, usize::MAX);
                assert_eq!(end.got, elements);
                assert!(end.ending().is_ok());
            }
        }
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_delivered_up_to_there_and_then_lost() {
    for form in FORMS {
        let (forward, _, elements) = recorded(form);
        for cut in 0..forward.len() {
            let mut end = ReceiverEnd::new(ReceiverOptions::default());
            end.transmit();
            end.receive(Duration::ZERO, &forward[..cut]);
            end.session.handle_eof();
            end.take(Duration::ZERO, usize::MAX);
            assert!(elements.starts_with(&end.got));
            assert!(end.ending().is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn a_sender_does_not_care_where_the_bytes_are_cut() {
    for form in FORMS {
        let (_, backward, _) = recorded(form);
        for first in 0..backward.len() {
            let options = SenderOptions {
                negotiation: form,
                ..SenderOptions::default()
            };
            let mut sender: SenderSession<Vec<u8>> = SenderSession::new(options, Duration::ZERO);
            let now = Duration::ZERO;
            // The end is pushed first, so that the answer to it is expected when it comes.
            sender.close(Ending::End);
            sender.handle_input(now, &backward[..first]);
            transmit(&mut sender);
            for part in backward[first..].chunks(5) {
                sender.handle_input(now, part);
                transmit(&mut sender);
            }
            assert_eq!(sender.error(), None, "cut at {first}");
        }
    }
}

#[test]
fn each_byte_turned_over_ends_in_elements_or_an_error_and_never_a_panic() {
    for form in FORMS {
        let (forward, backward, _) = recorded(form);
        for at in 0..forward.len() {
            let mut bytes = forward.clone();
            bytes[at] ^= 0xff;
            let mut end = ReceiverEnd::new(ReceiverOptions::default());
            end.transmit();
            end.receive(Duration::ZERO, &bytes);
            end.take(Duration::ZERO, usize::MAX);
            end.session.handle_eof();
            assert!(end.session.poll_end().is_some());
            end.transmit();
        }
        for at in 0..backward.len() {
            let mut bytes = backward.clone();
            bytes[at] ^= 0xff;
            let mut sender: SenderSession<Vec<u8>> =
                SenderSession::new(SenderOptions::default(), Duration::ZERO);
            sender.handle_input(Duration::ZERO, &bytes);
            sender.close(Ending::End);
            transmit(&mut sender);
            sender.handle_eof(Duration::ZERO);
        }
    }
}
