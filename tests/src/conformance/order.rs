//! Elements come out in the order they went in.

use std::collections::VecDeque;

use ringway::edge::{Ending, Popped, RejectReason};
use ringway::element::{
    Barrier, BarrierMode, Drain, EVENT_TIME_MAX, EVENT_TIME_MIN, StreamElement, Watermark,
};

use super::EdgeSubject;
use super::elements::{Numbers, barrier, ending, next, number, push, room_for, watermark};
use crate::seed::Seeded;
use crate::within::{LONG, until};

/// Data, watermark, barrier and drain marker are in band.
pub fn all_four_kinds_keep_their_order_among_each_other<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    let drain = StreamElement::Drain(Drain {
        subtask: 3,
        target_parallelism: 8,
    });
    let sent = [
        number(1),
        watermark(10),
        barrier(1),
        drain,
        number(2),
        barrier(2),
        watermark(20),
        number(3),
    ];
    for element in sent.clone() {
        push(&mut sender, element);
    }
    sender.finish().unwrap();
    for element in sent {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(ending(&mut receiver), Ending::End);
}

/// The rows before a barrier come before it, those after it after it, also where the edge is
/// full of data when the barrier is pushed.
pub fn barriers_stay_between_the_rows_around_them<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(2));
    for id in 0..200 {
        push(&mut sender, number(3 * id));
        push(&mut sender, number(3 * id + 1));
        push(&mut sender, barrier(id as u64));
        assert_eq!(next(&mut receiver), number(3 * id));
        assert_eq!(next(&mut receiver), number(3 * id + 1));
        push(&mut sender, number(3 * id + 2));
        assert_eq!(next(&mut receiver), barrier(id as u64));
        assert_eq!(next(&mut receiver), number(3 * id + 2));
    }
}

/// Idle flags, modes, terminal flags, extreme times and ids: as they were.
pub fn fields_of_control_elements_arrive_as_they_were<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(2));
    let times = [EVENT_TIME_MIN, -1, 0, 1, EVENT_TIME_MAX];
    let watermarks = times
        .iter()
        .flat_map(|&time| [Watermark::active(time), Watermark::idle(time)]);
    let modes = [0, 1, 2, 255].map(BarrierMode);
    let barriers = modes.iter().flat_map(|&mode| {
        [(0, false), (9, true), (u64::MAX, true)].map(|(id, terminal)| Barrier {
            id,
            terminal,
            mode,
        })
    });
    let drains = [(3, 8), (u32::MAX, 0)].map(|(subtask, target_parallelism)| Drain {
        subtask,
        target_parallelism,
    });
    let sent: Vec<_> = watermarks
        .map(StreamElement::Watermark)
        .chain(barriers.map(StreamElement::Barrier))
        .chain(drains.map(StreamElement::Drain))
        .collect();
    for element in sent {
        push(&mut sender, element.clone());
        match element {
            // Where a barrier says by itself that it overtakes, it does so however it was
            // pushed.
            StreamElement::Barrier(barrier) if overtakes(subject, barrier) => {
                until(LONG, "it arrives", || receiver.has_priority());
                assert_eq!(receiver.poll_priority().unwrap().0, barrier);
            }
            element => assert_eq!(next(&mut receiver), element),
        }
    }
}

fn overtakes<S: EdgeSubject>(subject: &S, barrier: Barrier) -> bool {
    !subject.is_instant() && barrier.mode.is_unaligned()
}

/// The naive model: a queue whose capacity bounds data.
pub fn what_is_pushed_and_popped_at_random_agrees_with_a_plain_queue<S: EdgeSubject>(subject: &S) {
    let mut random = Seeded::new();
    for _ in 0..20 {
        let capacity = 1 + random.below(20) as usize;
        let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(capacity));
        let mut model = VecDeque::new();
        for step in 0..1_000 {
            let element = match random.below(5) {
                0 | 1 => number(step),
                2 if model.len() < capacity + 50 => watermark(step),
                _ => {
                    let popped = receiver.try_pop();
                    if subject.is_instant() || popped != Popped::Empty {
                        let expected = model.pop_front().map_or(Popped::Empty, Popped::Element);
                        assert_eq!(popped, expected);
                    }
                    continue;
                }
            };
            let fits = !element.is_data() || model.len() < capacity;
            match sender.try_push(element.clone()) {
                // What is on the way adds to what is accepted.
                Ok(()) => assert!(
                    fits || !subject.is_instant(),
                    "{element:?} was accepted at depth {}",
                    model.len()
                ),
                Err(rejected) => {
                    assert!(!fits, "{element:?} was rejected at depth {}", model.len());
                    assert_eq!(rejected.reason, RejectReason::Full);
                    assert_eq!(rejected.element, element);
                    continue;
                }
            }
            model.push_back(element);
        }
        if subject.is_instant() {
            assert_eq!(receiver.len(), model.len());
        }
        sender.finish().unwrap();
        for element in model {
            assert_eq!(next(&mut receiver), element);
        }
        assert_eq!(ending(&mut receiver), Ending::End);
    }
}
