//! Both ends of credit against a naive model: rows and bytes that were sent, came and were
//! taken, counted plainly, with grants delayed on their way.

use std::collections::VecDeque;

use ringway_netio::credit::{ReceiverCredit, SenderCredit};

use crate::seed::Seeded;

const WINDOW_ROWS: u32 = 64;
const WINDOW_BYTES: u64 = 1000;

enum Ends {
    V1(SenderCredit, ReceiverCredit),
    Negotiated(SenderCredit, ReceiverCredit),
}

#[derive(Default)]
struct Model {
    /// Frames on their way, as rows and bytes.
    sent: VecDeque<(u32, u64)>,
    /// Frames that came and were not taken.
    came: VecDeque<(u32, u64)>,
    /// Grants on their way.
    grants: VecDeque<(u64, u64)>,
    rows_sent: u64,
    rows_taken: u64,
}

#[test]
fn credit_is_conserved_and_never_exceeded() {
    let mut seeded = Seeded::new();
    for round in 0..200 {
        let ends = match round % 2 {
            0 => Ends::V1(
                SenderCredit::counting_rows(WINDOW_BYTES, WINDOW_BYTES),
                ReceiverCredit::counting_rows(WINDOW_ROWS),
            ),
            _ => Ends::Negotiated(
                SenderCredit::counting_bytes(WINDOW_ROWS, WINDOW_BYTES, 1 << 20, 1 << 20),
                ReceiverCredit::counting_bytes(WINDOW_ROWS, WINDOW_BYTES),
            ),
        };
        run(ends, &mut seeded);
    }
}

fn run(mut ends: Ends, seeded: &mut Seeded) {
    let mut model = Model::default();
    let is_v1 = matches!(ends, Ends::V1(..));
    for _ in 0..400 {
        let (sender, receiver) = match &mut ends {
            Ends::V1(sender, receiver) | Ends::Negotiated(sender, receiver) => (sender, receiver),
        };
        match seeded.below(6) {
            0 => send(sender, &mut model, seeded),
            1 => {
                if let Some((rows, bytes)) = model.sent.pop_front() {
                    receiver
                        .handle_received(Some(rows), bytes)
                        .expect("within the window");
                    model.came.push_back((rows, bytes));
                }
            }
            2 => {
                if let Some((rows, bytes)) = model.came.pop_front() {
                    receiver
                        .handle_taken(Some(rows), rows, bytes)
                        .expect("as declared");
                    model.rows_taken += u64::from(rows);
                }
            }
            3 if is_v1 => {
                let rows = receiver.poll_rows(seeded.below(2) == 0);
                model.grants.extend(rows.map(|rows| (u64::from(rows), 0)));
            }
            3 => model
                .grants
                .extend(receiver.poll_limits(seeded.below(2) == 0)),
            4 => {
                if let Some((rows, bytes)) = model.grants.pop_front() {
                    grant(sender, is_v1, rows, bytes);
                }
            }
            _ => {
                let before = sender.clone();
                if sender.take(1, 5).is_ok() {
                    sender.give_back(1, 5);
                }
                assert_eq!(*sender, before);
            }
        }
        check(sender, &model);
    }
    settle(ends, model, is_v1);
}

fn send(sender: &mut SenderCredit, model: &mut Model, seeded: &mut Seeded) {
    let rows = seeded.below(u64::from(WINDOW_ROWS) / 2) as u32;
    let bytes = seeded.below(WINDOW_BYTES / 2);
    let enough = u64::from(sender.available_rows()) >= u64::from(rows)
        && sender.available_bytes().is_none_or(|free| free >= bytes);
    assert_eq!(sender.take(rows, bytes).is_ok(), enough);
    if enough {
        model.sent.push_back((rows, bytes));
        model.rows_sent += u64::from(rows);
    }
}

fn grant(sender: &mut SenderCredit, is_v1: bool, rows: u64, bytes: u64) {
    let granted = match is_v1 {
        true => sender.handle_rows(rows as u32),
        false => sender.handle_limits(rows, bytes),
    };
    granted.expect("a receiver never grants too much");
}

fn check(sender: &SenderCredit, model: &Model) {
    let held = |frames: &VecDeque<(u32, u64)>| {
        frames.iter().fold((0, 0), |(rows, bytes), frame| {
            (rows + u64::from(frame.0), bytes + frame.1)
        })
    };
    let (rows_way, bytes_way) = held(&model.sent);
    let (rows_here, bytes_here) = held(&model.came);
    assert!(rows_way + rows_here <= u64::from(WINDOW_ROWS));
    assert_eq!(rows_way + rows_here, model.rows_sent - model.rows_taken);
    assert!(u64::from(sender.available_rows()) + rows_way + rows_here <= u64::from(WINDOW_ROWS));
    if let Some(free) = sender.available_bytes() {
        assert!(free + bytes_way + bytes_here <= WINDOW_BYTES);
    }
}

/// When all is taken and told, the whole window is free again.
fn settle(ends: Ends, mut model: Model, is_v1: bool) {
    let (Ends::V1(mut sender, mut receiver) | Ends::Negotiated(mut sender, mut receiver)) = ends;
    for (rows, bytes) in model.sent.drain(..) {
        receiver
            .handle_received(Some(rows), bytes)
            .expect("within the window");
        model.came.push_back((rows, bytes));
    }
    for (rows, bytes) in model.came.drain(..) {
        receiver
            .handle_taken(Some(rows), rows, bytes)
            .expect("as declared");
    }
    match is_v1 {
        true => model
            .grants
            .extend(receiver.poll_rows(true).map(|rows| (u64::from(rows), 0))),
        false => model.grants.extend(receiver.poll_limits(true)),
    }
    for (rows, bytes) in model.grants {
        grant(&mut sender, is_v1, rows, bytes);
    }
    assert_eq!(sender.available_rows(), WINDOW_ROWS);
    assert!(
        sender
            .available_bytes()
            .is_none_or(|free| free == WINDOW_BYTES)
    );
}
