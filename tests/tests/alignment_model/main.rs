//! Random operation sequences: the state machines agree with a naive model after every step.
//!
//! `RINGWAY_SEED` replays one sequence; a failure prints the seed of its own.

mod align_model;
mod merge_model;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use align_model::AlignModel;
use merge_model::MergeModel;
use ringway::align::{AlignFact, Alignment};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, BarrierMode, Watermark};
use ringway::watermark::WatermarkMerge;

const SEQUENCES: u64 = 20_000;
const IDS: u64 = 8;

#[test]
fn alignment_agrees_with_a_naive_model() {
    let seen = Cell::new([0; 7]);
    for_each_seed(|seed| {
        let mut random = Random(seed);
        let inputs = 1 + random.below(4) as usize;
        // In half of the runs inputs behave as edges do: a paused input brings nothing in
        // order, and ids ascend on it. In the others anything may come.
        let disciplined = random.below(2) == 0;
        let mut run = AlignRun::new(inputs, disciplined);
        for _ in 0..30 {
            run.step(&mut random);
        }
        seen.set(std::array::from_fn(|kind| {
            seen.get()[kind] + run.seen[kind]
        }));
    });
    println!("facts of each kind: {:?}", seen.get());
    let replay = std::env::var_os("RINGWAY_SEED").is_some();
    assert!(
        replay || seen.get().iter().all(|&count| count >= 1000),
        "each kind of fact is tried"
    );
}

#[test]
fn merged_watermarks_agree_with_a_naive_model() {
    for_each_seed(|seed| {
        let mut random = Random(seed);
        let inputs = 1 + random.below(9) as usize;
        let (mut merge, mut model) = (WatermarkMerge::new(inputs), MergeModel::new(inputs));
        for _ in 0..60 {
            let input = random.below(merge.input_count() as u64) as usize;
            match random.below(20) {
                0 => {
                    merge.close(input);
                    model.close(input);
                }
                1 => assert_eq!(merge.add_input(), model.add_input()),
                2 | 3 => assert_eq!(merge.refresh(), model.refresh()),
                kind => {
                    let timestamp = match random.below(40) {
                        0 => i64::MAX,
                        1 => i64::MIN,
                        _ => random.below(100) as i64 - 50,
                    };
                    let watermark = Watermark {
                        timestamp,
                        idle: kind < 8,
                    };
                    let merged = merge.on_watermark(input, watermark);
                    assert_eq!(merged, model.on_watermark(input, watermark));
                }
            }
            assert_eq!(merge.current(), model.current());
        }
    });
}

/// An alignment and its model, side by side.
struct AlignRun {
    align: Alignment,
    model: AlignModel,
    /// The highest id that came on each input, and the highest that came in order.
    brought: Vec<(u64, u64)>,
    disciplined: bool,
    now: Monotonic,
    /// How many facts of each kind there were.
    seen: [u64; 7],
    /// What was done, for the message of a failure.
    log: Vec<String>,
}

impl AlignRun {
    fn new(inputs: usize, disciplined: bool) -> Self {
        Self {
            align: Alignment::new(inputs),
            model: AlignModel::new(inputs),
            brought: vec![(0, 0); inputs],
            disciplined,
            now: Monotonic::default(),
            seen: [0; 7],
            log: vec![format!("new {inputs}")],
        }
    }

    fn step(&mut self, random: &mut Random) {
        self.now = self.now.after(Duration::from_millis(1));
        let input = random.below(self.align.input_count() as u64) as usize;
        let id = 1 + random.below(IDS);
        let (ours, expected) = match random.below(24) {
            0 => (
                self.align.on_input_closed(input),
                self.model.on_input_closed(input),
            ),
            1 if random.below(4) == 0 => (
                self.align.on_input_failed(input),
                self.model.on_input_failed(input),
            ),
            1 | 2 => {
                self.log.push(format!("abort {id}"));
                (self.align.abort(id), self.model.abort(id))
            }
            3 | 4 => {
                self.log.push(format!("escalate {id}"));
                (self.align.escalate(id), self.model.escalate(id))
            }
            5 => {
                self.log.push("add".into());
                let added = self.align.add_input().ok();
                assert_eq!(added, self.model.add_input());
                self.brought.extend(added.map(|_| (0, 0)));
                return;
            }
            _ => {
                let Some(barrier) = self.barrier(input, random) else {
                    return;
                };
                self.log.push(format!("input {input}: {barrier:?}"));
                let expected = self.model.on_barrier(input, barrier, self.now);
                (self.align.on_barrier(input, barrier, self.now), expected)
            }
        };
        assert_eq!(in_order(&ours), in_order(&expected), "{:#?}", self.log);
        for fact in &ours {
            self.seen[kind_and_subject(fact).0] += 1;
        }
        self.assert_answers_agree(id);
    }

    /// A barrier that may come on an input, if any may.
    fn barrier(&mut self, input: usize, random: &mut Random) -> Option<Barrier> {
        let unaligned = random.below(3) == 0;
        let mode = match random.below(12) {
            0 => BarrierMode(7),
            _ if unaligned => BarrierMode::UNALIGNED,
            _ => BarrierMode::ALIGNED,
        };
        let (any, in_order) = self.brought[input];
        let id = match random.below(8) {
            0 => u64::MAX,
            1..=5 if self.disciplined => in_order + 1,
            2..=6 if self.disciplined => any.max(in_order) + 1,
            _ => 1 + random.below(IDS),
        };
        if self.disciplined {
            let out_of_turn =
                id <= in_order || (!mode.is_unaligned() && self.align.is_paused(input));
            if out_of_turn || self.align.is_closed(input) {
                return None;
            }
        }
        if id != u64::MAX {
            let in_order = if mode.is_unaligned() {
                in_order
            } else {
                in_order.max(id)
            };
            self.brought[input] = (any.max(id), in_order);
        }
        Some(Barrier {
            id,
            terminal: id == u64::MAX || random.below(16) == 0,
            mode,
        })
    }

    fn assert_answers_agree(&self, id: u64) {
        let inputs = self.model.input_count();
        assert_eq!(self.align.input_count(), inputs);
        for input in 0..inputs {
            assert_eq!(
                self.align.is_paused(input),
                self.model.is_paused(input),
                "input {input}"
            );
            assert_eq!(
                self.align.is_closed(input),
                self.model.is_closed(input),
                "input {input}"
            );
        }
        for id in [id, u64::MAX] {
            assert_eq!(
                self.align.pending_inputs(id),
                self.model.pending_inputs(id),
                "id {id}"
            );
            assert_eq!(
                self.align.recording_inputs(id),
                self.model.recording_inputs(id),
                "id {id}"
            );
            assert_eq!(
                self.align.first_delivery(id),
                self.model.first_delivery(id),
                "id {id}"
            );
        }
        let waits = |&input: &usize| self.model.is_paused(input) && !self.model.is_closed(input);
        assert_eq!(self.align.blocked(), (0..inputs).any(|input| waits(&input)));
    }
}

/// The facts in an order of their own: the model finds them in another one.
fn in_order(facts: &[AlignFact]) -> Vec<AlignFact> {
    let mut facts = facts.to_vec();
    facts.sort_by_key(kind_and_subject);
    facts
}

fn kind_and_subject(fact: &AlignFact) -> (usize, u64) {
    match *fact {
        AlignFact::Forward { barrier, .. } => (0, barrier.id),
        AlignFact::RecordingsClosed { id } => (1, id),
        AlignFact::Superseded { id } => (2, id),
        AlignFact::Aborted { id } => (3, id),
        AlignFact::Refused { id, .. } => (4, id),
        AlignFact::Late { id } => (5, id),
        AlignFact::Released { input } => (6, input as u64),
    }
}

fn for_each_seed(check: impl Fn(u64)) {
    let (first, count) = match std::env::var("RINGWAY_SEED") {
        Ok(seed) => (seed.parse().expect("RINGWAY_SEED is a number"), 1),
        Err(_) => (0x51_7cc1_b727_2202, SEQUENCES),
    };
    println!("seeds from {first}, {count} sequences");
    for seed in first..first + count {
        let checked = catch_unwind(AssertUnwindSafe(|| check(seed)));
        assert!(checked.is_ok(), "replay with RINGWAY_SEED={seed}");
    }
}

/// A small generator, so that a seed means the same sequence for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
