//! Bytes that nobody vouches for, at either end of a stream: what the tests of this folder and the fuzz
//! targets `receiver` and `sender` (`tests/fuzz`) share.

use std::time::Duration;

use ringway_netio::frame::{AHEAD_BYTES_MAX, Ending};
use ringway_netio::session::{ReceiverOptions, SenderOptions, SenderSession};

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
