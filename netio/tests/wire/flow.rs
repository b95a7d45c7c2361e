//! Credit, order and bounds between two endpoints.

use ringway_netio::credit::{Shortage, WINDOW_ROWS};
use ringway_netio::frame::{Control, Ending};
use ringway_netio::session::{
    CONTROL_ELEMENTS_MAX, LITTLE_GRANT_AFTER, Negotiation, Outgoing, Received, ReceiverOptions,
    Refusal, SenderOptions,
};

use crate::ends::{Element, barrier, batch, push, watermark};
use crate::pair::Pair;
use crate::seed::Seeded;

fn v1() -> Pair {
    let sender = SenderOptions {
        negotiation: Negotiation::Off,
        ..SenderOptions::default()
    };
    Pair::new(sender, ReceiverOptions::default(), Seeded::from_seed(1))
}

fn small_windows() -> Pair {
    let receiver = ReceiverOptions {
        window_rows: 100,
        window_bytes: 1000,
        ..ReceiverOptions::default()
    };
    Pair::new(SenderOptions::default(), receiver, Seeded::from_seed(1))
}

fn granted(carried: &[u8]) -> u64 {
    carried
        .chunks(9)
        .map(|frame| u64::from(u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]])))
        .sum()
}

#[test]
fn grants_of_version_1_add_up_to_the_window_and_what_was_taken() {
    let sender = SenderOptions::default();
    let receiver = ReceiverOptions {
        negotiation: Negotiation::Off,
        ..ReceiverOptions::default()
    };
    let mut pair = Pair::new(sender, receiver, Seeded::from_seed(1));
    pair.to_push = (0..50).map(|_| batch(64, 100)).collect();
    pair.to_push.push_back(batch(0, 4));
    pair.drive();
    pair.sender.close(Ending::End);
    pair.drive();
    assert_eq!(pair.receiver.got.len(), 51);
    assert_eq!(granted(&pair.backward.carried), 2048 + 50 * 64);
    assert_eq!(pair.sender.credit().available_rows(), 2048);
    let grants = pair.backward.carried.len() as u64 / 9;
    assert_eq!(pair.sender.grants(), grants);
}

#[test]
fn a_stopped_consumer_stops_the_sender_within_the_window() {
    for (mut pair, rows_max, bytes_max) in [(v1(), 2048, u64::MAX), (small_windows(), 100, 1000)] {
        pair.appetite = 0;
        pair.to_push = (0..5000).map(|_| batch(10, 40)).collect();
        pair.drive();
        let bytes = |received: &Received<Vec<u8>>| match received {
            Received::Batch(batch) => Some(batch.taken.bytes()),
            _ => None,
        };
        let held: Vec<u64> = pair.receiver.session.waiting().filter_map(bytes).collect();
        assert!(held.len() as u64 * 10 <= rows_max);
        assert!(held.iter().sum::<u64>() <= bytes_max);
        assert!(held.len() >= 10, "it did send");
        pair.appetite = usize::MAX;
        pair.drive();
        assert_eq!(pair.receiver.got.len(), 5000);
    }
}

#[test]
fn control_elements_pass_without_credit_and_stay_in_order() {
    for mut pair in [v1(), small_windows()] {
        pair.appetite = 0;
        pair.drive();
        pair.to_push = [batch(2048, 100), batch(1, 4)].into();
        if pair.sender.piece().unwrap().whole_rows < 2048 {
            pair.to_push = [batch(100, 100), batch(1, 4)].into();
        }
        pair.drive();
        assert_eq!(pair.to_push.len(), 1, "no credit for the second");
        for id in 0..20 {
            assert!(push(&mut pair.sender, &barrier(id, 1)));
        }
        pair.drive();
        let (first, ahead) = pair.receiver.session.take_unaligned().unwrap();
        let id = 0;
        let (mode, terminal) = (1, false);
        assert_eq!(first, Control::Barrier { id, mode, terminal });
        assert!(ahead == 1 || ahead == 2, "behind the batch and its schema");
        pair.appetite = usize::MAX;
        pair.drive();
        assert_eq!(pair.receiver.got.len(), 1 + 19 + 1);
        assert_eq!(pair.receiver.got.last(), Some(&batch(1, 4)));
    }
}

#[test]
fn a_priority_barrier_overtakes_what_was_not_sent() {
    let mut pair = Pair::calm();
    pair.to_push = [batch(1, 4)].into();
    pair.drive();
    for element in [batch(2, 4), watermark(9), batch(3, 4)] {
        assert!(push(&mut pair.sender, &element));
    }
    let (id, mode, terminal) = (1, 1, false);
    let overtaken = pair
        .sender
        .push_priority(Control::Barrier { id, mode, terminal })
        .unwrap();
    assert_eq!(overtaken, 3);
    let rows: Vec<u32> = pair
        .sender
        .queued()
        .skip(1)
        .filter_map(|outgoing| match outgoing {
            Outgoing::Batch(batch) => Some(batch.rows),
            _ => None,
        })
        .collect();
    assert_eq!(rows, [2, 3]);
    pair.drive();
    let got = [
        batch(1, 4),
        barrier(1, 1),
        batch(2, 4),
        watermark(9),
        batch(3, 4),
    ];
    assert_eq!(pair.receiver.got, got);
}

#[test]
fn waiting_watermarks_merge_and_other_control_elements_are_bounded() {
    let mut pair = Pair::calm();
    for timestamp in 0..10_000 {
        assert!(push(&mut pair.sender, &watermark(timestamp)));
    }
    assert!(pair.sender.queued().count() <= CONTROL_ELEMENTS_MAX);
    let mut barriers = 0;
    while push(&mut pair.sender, &barrier(barriers, 0)) {
        barriers += 1;
    }
    assert_eq!(pair.sender.queued().count(), CONTROL_ELEMENTS_MAX);
    let (id, mode, terminal) = (9, 0, false);
    let full = pair
        .sender
        .push_control(Control::Barrier { id, mode, terminal });
    assert_eq!(full.unwrap_err().why, Refusal::Full);
    pair.drive();
    let last = |wanted: &dyn Fn(&Element) -> bool| {
        let position = pair.receiver.got.iter().rposition(wanted);
        position.map(|at| pair.receiver.got[at].clone())
    };
    let is_watermark =
        |element: &Element| matches!(element, Element::Control(Control::Watermark { .. }));
    assert_eq!(last(&is_watermark), Some(watermark(9_999)));
    assert_eq!(last(&|_| true), Some(barrier(barriers - 1, 0)));
}

#[test]
fn a_body_above_the_peers_limit_is_refused_for_good() {
    let mut pair = small_windows();
    pair.drive();
    pair.sender.push_schema(vec![0; 6], 6).unwrap();
    let never = pair.sender.push_batch(ringway_netio::session::OutBatch {
        body: vec![0; 1001],
        bytes: 1001,
        rows: 1,
        codec: Default::default(),
    });
    let limit = Shortage::NeverFits {
        bytes: 1001,
        limit_bytes: 1000,
    };
    assert_eq!(never.unwrap_err().why, Refusal::NeverFits(limit));
    assert!(push(&mut pair.sender, &batch(1, 994)));
}

#[test]
fn pieces_follow_from_the_form_and_the_peer() {
    let mut pair = v1();
    assert_eq!(pair.sender.piece(), None);
    pair.drive();
    let piece = pair.sender.piece().unwrap();
    assert_eq!((piece.rows, piece.whole_rows), (1024, 2048));
    let mut pair = Pair::calm();
    pair.drive();
    let piece = pair.sender.piece().unwrap();
    assert_eq!((piece.whole_rows, piece.bytes), (WINDOW_ROWS, 4 << 20));
    let mut pair = small_windows();
    pair.drive();
    let piece = pair.sender.piece().unwrap();
    assert_eq!((piece.rows, piece.bytes), (50, 500));
}

#[test]
fn negotiated_frames_keep_their_bodies_aligned() {
    let mut pair = Pair::calm();
    pair.drive();
    pair.to_push = [watermark(1), batch(2, 64), barrier(1, 0), batch(3, 128)].into();
    pair.drive();
    pair.sender.close(Ending::End);
    pair.drive();
    // The answer, the schema of 6 bytes, then frames that are multiples of 64 each.
    let after = &pair.forward.carried[69..];
    let body_at = |rows: u32| {
        let mut body = rows.to_be_bytes().to_vec();
        body.resize(64, rows as u8);
        after.windows(64).position(|window| window == body).unwrap()
    };
    assert_eq!(body_at(3) - body_at(2), 64 + 64 + 64);
    assert_eq!(after.len() % 64, 6);
}

#[test]
fn neither_end_holds_more_bytes_than_its_limit_in_version_1_either() {
    let sender = SenderOptions {
        negotiation: Negotiation::Off,
        queue_bytes: 1000,
        ..SenderOptions::default()
    };
    let receiver = ReceiverOptions {
        window_bytes: 1000,
        ..ReceiverOptions::default()
    };
    let mut pair = Pair::new(sender, receiver, Seeded::from_seed(1));
    pair.drive();
    pair.appetite = 0;
    for _ in 0..9 {
        assert!(push(&mut pair.sender, &batch(1, 111)));
    }
    assert!(!push(&mut pair.sender, &batch(1, 111)), "999 bytes wait");
    pair.to_push = (0..20).map(|_| batch(1, 111)).collect();
    pair.drive();
    let held = pair.receiver.session.waiting().count();
    assert_eq!(held, 9, "the tenth is not read");
    assert!(!pair.receiver.session.wants_read());
    pair.appetite = usize::MAX;
    pair.drive();
    assert_eq!(pair.receiver.got.len(), 29);
}

#[test]
fn the_longest_frame_that_a_receiver_admits_is_also_received() {
    let receiver = ReceiverOptions {
        window_bytes: 1000,
        negotiation: Negotiation::Off,
        ..ReceiverOptions::default()
    };
    let longest = receiver.frame_bytes_max() as usize - 1;
    let mut pair = Pair::new(SenderOptions::default(), receiver, Seeded::from_seed(1));
    pair.to_push = [batch(1, longest), batch(2, longest)].into();
    pair.drive();
    assert_eq!(pair.receiver.got.len(), 2);
}

#[test]
fn merged_watermarks_say_as_much_as_each_alone() {
    let watermark = |timestamp_ms| Control::Watermark { timestamp_ms };
    let idle = |timestamp_ms| Control::WatermarkIdle { timestamp_ms };
    assert_eq!(watermark(5).merge(watermark(3)), Some(watermark(5)));
    assert_eq!(watermark(3).merge(watermark(5)), Some(watermark(5)));
    assert_eq!(idle(5).merge(idle(3)), Some(idle(3)));
    assert_eq!(watermark(5).merge(idle(9)), None);
    assert_eq!(idle(5).merge(watermark(9)), None);
    let (id, mode, terminal) = (1, 0, false);
    let barrier = Control::Barrier { id, mode, terminal };
    assert_eq!(barrier.merge(barrier), None);
}

#[test]
fn little_is_granted_only_when_the_consumer_has_had_everything_for_a_while() {
    let receiver = ReceiverOptions {
        window_rows: 100,
        ..ReceiverOptions::default()
    };
    let mut pair = Pair::new(SenderOptions::default(), receiver, Seeded::from_seed(1));
    pair.to_push = (0..10).map(|_| batch(2, 10)).collect();
    pair.drive();
    assert_eq!(pair.receiver.got.len(), 10);
    assert_eq!(pair.sender.grants(), 2, "the first, and one for all ten");
    assert!(pair.now >= LITTLE_GRANT_AFTER);
    assert_eq!(pair.sender.credit().available_rows(), 100);

    let before = pair.now;
    pair.to_push.push_back(batch(25, 10));
    pair.drive();
    assert_eq!(
        pair.now, before,
        "a quarter of the window is granted at once"
    );
    assert_eq!(pair.sender.credit().available_rows(), 100);
}

#[test]
fn a_batch_that_needs_all_of_the_window_waits_for_little_and_no_longer() {
    let mut pair = small_windows();
    pair.to_push.push_back(batch(1, 10));
    pair.to_push.push_back(batch(100, 1000));
    pair.drive();
    assert_eq!(pair.receiver.got.len(), 2);
    assert!(pair.to_push.is_empty());
    assert_eq!(pair.now, LITTLE_GRANT_AFTER);
}
