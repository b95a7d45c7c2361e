//! Random streams between random peers over random links: what was pushed arrives, in order,
//! once; and where the connection is cut, a part of it, an error, and no success anywhere.

use std::time::Duration;

use ringway_netio::frame::{Control, Ending, Extensions};
use ringway_netio::session::{Mode, Negotiation, ReceiverOptions, SenderOptions};

use crate::ends::{Element, batch};
use crate::link::Weather;
use crate::pair::Pair;
use crate::seed::Seeded;

const FORMS: [Negotiation; 3] = [Negotiation::Off, Negotiation::Prefer, Negotiation::Require];

/// A pair, and whether the two speak a form in common.
fn random_pair(seeded: &mut Seeded) -> (Pair, bool) {
    let [ours, theirs] = [(); 2].map(|()| FORMS[seeded.below(3) as usize]);
    let window_rows = 2 + seeded.below(300) as u32;
    let sender = SenderOptions {
        negotiation: ours,
        extensions: Extensions(seeded.number() as u32),
        queue_bytes: 600 + seeded.below(2000),
        ..SenderOptions::default()
    };
    let receiver = ReceiverOptions {
        negotiation: theirs,
        extensions: Extensions(seeded.number() as u32),
        window_rows,
        v1_window_rows: window_rows,
        window_bytes: 600 + seeded.below(2000),
        inbox_elements: 1 + seeded.below(300) as usize,
        ..ReceiverOptions::default()
    };
    let mut pair = Pair::new(sender, receiver, Seeded::from_seed(seeded.number()));
    pair.weather = Weather {
        chunk_bytes: 1 + seeded.below(300),
        delay_ms: seeded.below(20),
    };
    pair.appetite = 1 + seeded.below(5) as usize;
    pair.receiver.tells_rows = seeded.below(2) == 0;
    pair.fills = seeded.below(2) == 0;
    pair.to_push = (0..seeded.below(400))
        .map(|_| random_element(seeded, window_rows))
        .collect();
    let forms = [ours, theirs];
    let can_meet = !(forms.contains(&Negotiation::Off) && forms.contains(&Negotiation::Require));
    (pair, can_meet)
}

fn random_element(seeded: &mut Seeded, window_rows: u32) -> Element {
    let timestamp_ms = seeded.number() as i64;
    Element::Control(match seeded.below(8) {
        0 => Control::Watermark { timestamp_ms },
        1 => Control::WatermarkIdle { timestamp_ms },
        2 => Control::Barrier {
            id: seeded.number(),
            mode: seeded.number() as u8,
            terminal: seeded.below(2) == 0,
        },
        3 => Control::Drain {
            subtask: seeded.number() as u32,
            target_parallelism: seeded.number() as u32,
        },
        _ => {
            let rows = seeded.below(u64::from(window_rows) + 1) as u32;
            return batch(rows, seeded.below(500) as usize);
        }
    })
}

fn can_talk(sender: Mode, receiver: Mode) -> bool {
    match (sender, receiver) {
        (Mode::Negotiated(a), Mode::Negotiated(b)) => a == b,
        _ => sender == receiver,
    }
}

#[test]
fn what_is_pushed_arrives_in_order_and_once() {
    let mut seeded = Seeded::new();
    for _ in 0..150 {
        let (mut pair, can_meet) = random_pair(&mut seeded);
        let pushed: Vec<Element> = pair.to_push.iter().cloned().collect();
        pair.drive();
        if !can_meet {
            pair.sender.close(Ending::End);
            pair.drive();
            assert!(
                pair.receiver
                    .session
                    .poll_end()
                    .is_some_and(|end| end.is_err())
            );
            assert!(pair.receiver.got.is_empty(), "nothing is taken from it");
            continue;
        }
        assert!(pair.to_push.is_empty(), "{:?}", pair.sender.error());
        pair.sender.close(Ending::End);
        pair.drive();
        // Before its end, control elements alone leave the form open.
        assert!(can_talk(pair.sender.mode(), pair.receiver.session.mode()));
        assert_same(&pair.receiver.got, &pushed);
        assert!(pair.receiver.ending().is_ok());
        assert!(pair.sender.is_delivered(), "{:?}", pair.sender.error());
    }
}

/// The same elements, but for watermarks that were merged into one behind them.
fn assert_same(got: &[Element], pushed: &[Element]) {
    let mut got = got.iter().peekable();
    let mut merged: Option<Control> = None;
    for element in pushed {
        let Element::Control(control) = element else {
            assert_eq!(merged, None);
            assert_eq!(got.next(), Some(element));
            continue;
        };
        let candidate = match merged.take() {
            Some(before) => before.merge(*control).expect("only watermarks are merged"),
            None => *control,
        };
        if got.peek() == Some(&&Element::Control(candidate)) {
            got.next();
        } else {
            merged = Some(candidate);
        }
    }
    assert_eq!(merged, None);
    assert_eq!(got.next(), None);
}

#[test]
fn a_connection_that_is_cut_is_an_error_at_both_ends_and_nothing_comes_twice() {
    let mut seeded = Seeded::new();
    for _ in 0..150 {
        let (mut pair, _) = random_pair(&mut seeded);
        let pushed: Vec<Element> = pair.to_push.iter().cloned().collect();
        let half = seeded.below(pushed.len() as u64 + 1) as usize;
        let later = pair.to_push.split_off(half);
        pair.drive();
        pair.forward.is_cut = true;
        pair.backward.is_cut = true;
        pair.to_push.extend(later);
        if seeded.below(2) == 0 {
            pair.sender.close(Ending::End);
            pair.to_push.clear();
        }
        pair.drive();
        let now = pair.now + Duration::from_secs(1);
        pair.sender.handle_lost(now, "connection reset");
        pair.receiver.session.handle_lost("connection reset");
        pair.drive();
        assert!(!pair.sender.is_delivered());
        assert!(pair.sender.is_over());
        let ending = pair.receiver.ending();
        assert!(ending.is_err(), "{ending:?} without a Close");
        assert!(pair.receiver.got.len() <= half);
        assert!(pushed.starts_with(&pair.receiver.got));
    }
}
