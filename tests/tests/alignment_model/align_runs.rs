//! Random sequences for alignment.

use std::cell::Cell;
use std::time::Duration;

use ringway::align::{AlignFact, Alignment};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, BarrierMode};
use ringway_tests::seed::Seeded;

use super::align_model::AlignModel;
use super::for_each_seed;

const STEPS: u64 = 24;
const IDS: u64 = 8;

#[test]
fn alignment_agrees_with_a_naive_model() {
    let seen = Cell::new([0; 7]);
    for_each_seed(|seed| {
        let mut random = Seeded::from_seed(seed);
        let inputs = 1 + random.below(4) as usize;
        // In most runs inputs behave as edges do: a paused input brings nothing in order, and
        // ids ascend on it. In the others anything may come.
        let disciplined = random.below(4) > 0;
        let mut run = AlignRun::new(inputs, disciplined);
        for _ in 0..STEPS {
            if let Some(step) = run.choose(&mut random) {
                run.take(step);
            }
        }
        seen.set(std::array::from_fn(|kind| {
            seen.get()[kind] + run.seen[kind]
        }));
    });
    println!("facts of each kind: {:?}", seen.get());
    let replay = std::env::var_os("RINGWAY_SEED").is_some();
    assert!(
        replay || seen.get().iter().all(|&count| count >= 1000),
        "each kind is tried"
    );
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Barrier(usize, Barrier),
    Closed(usize),
    Failed(usize),
    Abort(u64),
    Escalate(u64),
    Add,
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
    log: Vec<Step>,
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
            log: Vec::new(),
        }
    }

    /// A step that may come next, if the one that was thrown may.
    fn choose(&mut self, random: &mut Seeded) -> Option<Step> {
        let input = random.below(self.align.input_count() as u64) as usize;
        let id = 1 + random.below(IDS);
        Some(match random.below(24) {
            0 => Step::Closed(input),
            1 if random.below(4) == 0 => Step::Failed(input),
            1 | 2 => Step::Abort(id),
            3 | 4 => Step::Escalate(id),
            5 => Step::Add,
            _ => Step::Barrier(input, self.choose_barrier(input, random)?),
        })
    }

    fn choose_barrier(&mut self, input: usize, random: &mut Seeded) -> Option<Barrier> {
        let mode = match random.below(12) {
            0 => BarrierMode(7),
            1..=4 => BarrierMode::UNALIGNED,
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
            let waits = !mode.is_unaligned() && self.align.is_paused(input);
            if id <= in_order || waits || self.align.is_closed(input) {
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
        let terminal = id == u64::MAX || random.below(16) == 0;
        Some(Barrier { id, terminal, mode })
    }

    fn take(&mut self, step: Step) {
        self.log.push(step);
        self.now = self.now.after(Duration::from_millis(1));
        let (align, model) = (&mut self.align, &mut self.model);
        let (ours, expected) = match step {
            Step::Barrier(input, barrier) => (
                align.on_barrier(input, barrier, self.now),
                model.on_barrier(input, barrier, self.now),
            ),
            Step::Closed(input) => (align.on_input_closed(input), model.on_input_closed(input)),
            Step::Failed(input) => (align.on_input_failed(input), model.on_input_failed(input)),
            Step::Abort(id) => (align.abort(id), model.abort(id)),
            Step::Escalate(id) => (align.escalate(id), model.escalate(id)),
            Step::Add => {
                let added = align.add_input().ok();
                assert_eq!(added, model.add_input(), "{:#?}", self.log);
                self.brought.extend(added.map(|_| (0, 0)));
                return;
            }
        };
        assert_eq!(in_order(&ours), in_order(&expected), "{:#?}", self.log);
        for fact in &ours {
            self.seen[kind_and_subject(fact).0] += 1;
        }
        self.assert_answers_agree();
    }

    fn assert_answers_agree(&self) {
        let inputs = self.model.input_count();
        assert_eq!(self.align.input_count(), inputs);
        let mut blocked = false;
        for input in 0..inputs {
            let (paused, closed) = (self.model.is_paused(input), self.model.is_closed(input));
            assert_eq!(
                self.align.is_paused(input),
                paused,
                "input {input}, {:#?}",
                self.log
            );
            assert_eq!(
                self.align.is_closed(input),
                closed,
                "input {input}, {:#?}",
                self.log
            );
            blocked |= paused && !closed;
        }
        assert_eq!(self.align.blocked(), blocked);
        for id in [1 + self.log.len() as u64 % IDS, u64::MAX] {
            let (align, model) = (&self.align, &self.model);
            assert_eq!(
                align.pending_inputs(id),
                model.pending_inputs(id),
                "id {id}"
            );
            assert_eq!(
                align.recording_inputs(id),
                model.recording_inputs(id),
                "id {id}"
            );
            assert_eq!(
                align.first_delivery(id),
                model.first_delivery(id),
                "id {id}"
            );
        }
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
