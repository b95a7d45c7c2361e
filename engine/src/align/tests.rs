//! What a gate is promised by its alignment.

use std::time::Duration;

use super::*;
use crate::element::TERMINAL_BARRIER_ID;
use crate::limits::DEAD_BARRIERS_MAX;

fn at(ms: u64) -> Monotonic {
    Monotonic(Duration::from_millis(ms))
}

fn forward(barrier: Barrier, unaligned_first: bool) -> AlignFact {
    AlignFact::Forward {
        barrier,
        unaligned_first,
        first_at: at(0),
    }
}

fn released(input: usize) -> AlignFact {
    AlignFact::Released { input }
}

fn deliver(align: &mut Alignment, input: usize, barrier: Barrier) -> Vec<AlignFact> {
    align.on_barrier(input, barrier, at(0))
}

#[test]
fn an_input_that_delivered_waits_for_the_others() {
    let mut align = Alignment::new(2);
    assert!(deliver(&mut align, 0, Barrier::aligned(7)).is_empty());
    assert!(align.is_paused(0) && !align.is_paused(1) && align.blocked());
    let facts = deliver(&mut align, 1, Barrier::aligned(7));
    assert_eq!(facts, [forward(Barrier::aligned(7), false), released(0)]);
    assert!(!align.is_paused(0) && !align.is_paused(1) && !align.blocked());
}

#[test]
fn the_end_of_an_input_counts_as_arrived() {
    let mut align = Alignment::new(2);
    deliver(&mut align, 0, Barrier::aligned(1));
    let facts = align.on_input_closed(1);
    assert_eq!(facts, [forward(Barrier::aligned(1), false), released(0)]);
    assert!(align.is_closed(1) && align.is_paused(1) && !align.all_closed());
    let alone = deliver(&mut align, 0, Barrier::aligned(2));
    assert_eq!(alone, [forward(Barrier::aligned(2), false)]);
    assert!(align.on_input_closed(0).is_empty());
    assert!(align.all_closed());
}

#[test]
fn an_unaligned_barrier_goes_on_at_once_and_nobody_waits() {
    let mut align = Alignment::new(3);
    let facts = deliver(&mut align, 1, Barrier::unaligned(9));
    assert_eq!(facts, [forward(Barrier::unaligned(9), true)]);
    assert!((0..3).all(|input| !align.is_paused(input)));
    assert_eq!(align.recording_inputs(9), [0, 2]);
    assert!(deliver(&mut align, 0, Barrier::unaligned(9)).is_empty());
    let facts = deliver(&mut align, 2, Barrier::unaligned(9));
    assert_eq!(facts, [AlignFact::RecordingsClosed { id: 9 }]);
}

#[test]
fn each_barrier_has_the_mode_of_its_first_delivery() {
    let mut align = Alignment::new(2);
    assert!(deliver(&mut align, 0, Barrier::aligned(1)).is_empty());
    let facts = deliver(&mut align, 1, Barrier::aligned(1));
    assert_eq!(facts, [forward(Barrier::aligned(1), false), released(0)]);
    let facts = deliver(&mut align, 0, Barrier::unaligned(2));
    assert_eq!(facts, [forward(Barrier::unaligned(2), true)]);
    assert_eq!(
        deliver(&mut align, 1, Barrier::aligned(2)),
        [AlignFact::RecordingsClosed { id: 2 }]
    );
}

#[test]
fn pending_inputs_are_the_open_ones_without_the_barrier() {
    let mut align = Alignment::new(3);
    assert_eq!(align.pending_inputs(50), [0, 1, 2]);
    deliver(&mut align, 1, Barrier::unaligned(50));
    assert_eq!(align.pending_inputs(50), [0, 2]);
    align.on_input_closed(0);
    assert_eq!(align.pending_inputs(50), [2]);
}

#[test]
fn an_input_is_added_only_between_barriers() {
    let mut align = Alignment::new(2);
    deliver(&mut align, 0, Barrier::aligned(5));
    assert_eq!(align.add_input(), Err(AddRefused::Pending { id: 5 }));
    deliver(&mut align, 1, Barrier::aligned(5));
    assert_eq!(align.add_input(), Ok(2));
    assert_eq!(align.input_count(), 3);
    deliver(&mut align, 0, Barrier::aligned(6));
    deliver(&mut align, 1, Barrier::aligned(6));
    assert_eq!(deliver(&mut align, 2, Barrier::aligned(6)).len(), 3);
}

#[test]
fn an_unaligned_barrier_on_a_single_input_leaves_nothing_pending() {
    let mut align = Alignment::new(1);
    deliver(&mut align, 0, Barrier::unaligned(7));
    assert_eq!(align.add_input(), Ok(1));
}

#[test]
fn the_time_of_the_first_delivery_is_told() {
    let mut align = Alignment::new(3);
    align.on_barrier(0, Barrier::aligned(1), at(10));
    align.on_barrier(1, Barrier::unaligned(2), at(20));
    align.on_barrier(1, Barrier::aligned(1), at(30));
    assert_eq!(align.first_delivery(1), Some(at(10)));
    assert_eq!(align.first_delivery(2), Some(at(20)));
    assert_eq!(align.first_delivery(3), None);
    assert_eq!(align.waiting().collect::<Vec<_>>(), [(1, at(10))]);
    let facts = align.on_barrier(2, Barrier::aligned(1), at(40));
    assert!(matches!(facts[0], AlignFact::Forward { first_at, .. } if first_at == at(10)));
    assert_eq!(align.waiting().count(), 0);
}

#[test]
fn escalation_releases_the_inputs_and_records_the_rest() {
    let mut align = Alignment::new(3);
    deliver(&mut align, 0, Barrier::aligned(1));
    let facts = align.escalate(1);
    assert_eq!(facts, [forward(Barrier::unaligned(1), true), released(0)]);
    assert_eq!(align.recording_inputs(1), [1, 2]);
    assert!(align.escalate(1).is_empty(), "it goes on once");
    align.on_input_closed(1);
    assert_eq!(
        deliver(&mut align, 2, Barrier::aligned(1)),
        [AlignFact::RecordingsClosed { id: 1 }]
    );
}

#[test]
fn ids_out_of_step_never_block_for_ever() {
    // Whichever comes first, barrier 2 on input 1 proves that 1 never comes there.
    let mut align = Alignment::new(2);
    deliver(&mut align, 0, Barrier::aligned(1));
    let facts = deliver(&mut align, 1, Barrier::aligned(2));
    assert_eq!(facts, [AlignFact::Superseded { id: 1 }, released(0)]);
    let facts = deliver(&mut align, 0, Barrier::aligned(2));
    assert_eq!(facts, [forward(Barrier::aligned(2), false), released(1)]);

    let mut align = Alignment::new(2);
    deliver(&mut align, 1, Barrier::aligned(2));
    assert_eq!(
        deliver(&mut align, 0, Barrier::aligned(1)),
        [AlignFact::Superseded { id: 1 }]
    );
    let facts = deliver(&mut align, 0, Barrier::aligned(2));
    assert_eq!(facts, [forward(Barrier::aligned(2), false), released(1)]);
}

#[test]
fn a_newer_barrier_on_another_input_supersedes_nothing() {
    let mut align = Alignment::new(3);
    deliver(&mut align, 0, Barrier::unaligned(1));
    let facts = deliver(&mut align, 0, Barrier::aligned(2));
    assert!(facts.is_empty(), "inputs 1 and 2 may still bring 1");
    assert_eq!(align.recording_inputs(1), [1, 2]);
    let facts = deliver(&mut align, 1, Barrier::aligned(2));
    assert_eq!(
        facts,
        [AlignFact::Superseded { id: 1 }],
        "input 1 passed it over"
    );
}

#[test]
fn a_terminal_barrier_stays_terminal_and_completes_lower_ids() {
    let mut align = Alignment::new(2);
    deliver(&mut align, 1, Barrier::aligned(5));
    let facts = deliver(&mut align, 0, Barrier::terminal());
    assert_eq!(facts, [forward(Barrier::aligned(5), false), released(1)]);
    let facts = deliver(&mut align, 1, Barrier::terminal());
    assert_eq!(facts, [forward(Barrier::terminal(), false), released(0)]);
    assert_eq!(
        deliver(&mut align, 1, Barrier::terminal()),
        [AlignFact::Late {
            id: TERMINAL_BARRIER_ID
        }]
    );
}

#[test]
fn a_failed_input_aborts_what_is_pending_and_refuses_what_comes() {
    let mut align = Alignment::new(3);
    deliver(&mut align, 0, Barrier::aligned(1));
    deliver(&mut align, 1, Barrier::unaligned(2));
    let facts = align.on_input_failed(2);
    let aborted = |id| AlignFact::Aborted { id };
    assert_eq!(facts, [aborted(1), released(0), aborted(2)]);
    let why = BarrierRefused::InputFailed;
    assert_eq!(
        deliver(&mut align, 0, Barrier::aligned(3)),
        [AlignFact::Refused { id: 3, why }]
    );
    assert!(!align.is_paused(0));
}

#[test]
fn beyond_the_bound_on_pending_ids_a_barrier_is_refused_by_name() {
    let mut align = Alignment::new(2);
    let full = PENDING_BARRIERS_MAX as u64;
    for id in 0..full {
        let facts = deliver(&mut align, 0, Barrier::unaligned(id));
        assert_eq!(facts, [forward(Barrier::unaligned(id), true)]);
    }
    let why = BarrierRefused::TooManyPending;
    assert_eq!(
        deliver(&mut align, 0, Barrier::unaligned(full)),
        [AlignFact::Refused { id: full, why }]
    );
    assert_eq!(
        deliver(&mut align, 1, Barrier::unaligned(full)),
        [AlignFact::Late { id: full }]
    );
    align.abort(0);
    let facts = deliver(&mut align, 0, Barrier::unaligned(full + 1));
    assert_eq!(facts, [forward(Barrier::unaligned(full + 1), true)]);
}

#[test]
fn beyond_the_bound_on_dead_ids_the_lowest_are_refused_by_name() {
    let mut align = Alignment::new(2);
    let first_kept = 1_u64;
    for id in 0..=DEAD_BARRIERS_MAX as u64 {
        align.abort(id);
    }
    let why = BarrierRefused::Forgotten;
    assert_eq!(
        deliver(&mut align, 0, Barrier::aligned(0)),
        [AlignFact::Refused { id: 0, why }]
    );
    assert_eq!(
        deliver(&mut align, 0, Barrier::aligned(first_kept)),
        [AlignFact::Late { id: first_kept }]
    );
    assert!(!align.is_paused(0));
}

#[test]
fn a_long_run_remembers_no_more_than_it_must() {
    let mut align = Alignment::new(2);
    for id in 1..=10_000 {
        deliver(&mut align, 0, Barrier::aligned(id));
        deliver(&mut align, 1, Barrier::aligned(id));
        assert_eq!(align.dead.remembered(), 0);
    }
    for id in 10_001..=20_000 {
        deliver(&mut align, 0, Barrier::unaligned(id));
        deliver(&mut align, 1, Barrier::unaligned(id));
    }
    assert!(align.dead.remembered() <= DEAD_BARRIERS_MAX);
    assert_eq!(
        deliver(&mut align, 1, Barrier::aligned(20_000)),
        [AlignFact::Late { id: 20_000 }]
    );
}

#[test]
fn a_barrier_over_many_inputs_goes_on_with_the_last() {
    let mut align = Alignment::new(1000);
    for id in 1..4 {
        for input in 0..999 {
            assert!(deliver(&mut align, input, Barrier::aligned(id)).is_empty());
        }
        assert_eq!(align.pending_inputs(id), [999]);
        let facts = deliver(&mut align, 999, Barrier::aligned(id));
        assert_eq!(facts.len(), 1 + 999);
    }
}
