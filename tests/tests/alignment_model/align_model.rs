//! A naive model of alignment.
//!
//! It keeps the whole history and derives from it, after every event, who delivered what,
//! who waits and who can't deliver any more, by the definitions and without any counter.

use std::collections::{BTreeMap, BTreeSet};

use ringway::align::{AlignFact, BarrierRefused};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, BarrierMode};

#[derive(Clone, Copy, Debug)]
struct Delivery {
    input: usize,
    barrier: Barrier,
    at: Monotonic,
    late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting { since: usize },
    Recording { since: usize },
    Dead,
}

/// What an input's history says about one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    ToCome,
    Here,
    Ended,
    Never,
}

/// The naive alignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlignModel {
    /// Up to which id each input found the ids settled when it joined.
    joined: Vec<Option<u64>>,
    history: Vec<Delivery>,
    ended: Vec<usize>,
    failed: Vec<usize>,
    status: BTreeMap<u64, Status>,
    settled: Option<u64>,
}

impl AlignModel {
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            joined: vec![None; inputs],
            ..Self::default()
        }
    }

    pub(crate) fn on_barrier(
        &mut self,
        input: usize,
        barrier: Barrier,
        at: Monotonic,
    ) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if self.is_closed(input) {
            return vec![AlignFact::Late { id: barrier.id }];
        }
        let late = match self.status.get(&barrier.id) {
            Some(Status::Dead) => true,
            Some(_) => self.standing(input, barrier.id) != Standing::ToCome,
            None => self.passed(input).0.is_some_and(|max| barrier.id <= max),
        };
        self.history.push(Delivery {
            input,
            barrier,
            at,
            late,
        });
        let since = self.history.len() - 1;
        self.resolve(Some(barrier.id), &mut facts);
        if late {
            facts.push(AlignFact::Late { id: barrier.id });
        } else if !self.status.contains_key(&barrier.id) {
            self.take_up(barrier, since, &mut facts);
        }
        self.resolve(None, &mut facts);
        self.with_released(&paused, facts)
    }

    pub(crate) fn on_input_closed(&mut self, input: usize) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if !self.is_closed(input) {
            self.ended.push(input);
            self.resolve(None, &mut facts);
        }
        self.with_released(&paused, facts)
    }

    pub(crate) fn on_input_failed(&mut self, input: usize) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if !self.is_closed(input) {
            self.failed.push(input);
            for id in self.live() {
                self.status.insert(id, Status::Dead);
                facts.push(AlignFact::Aborted { id });
            }
        }
        self.with_released(&paused, facts)
    }

    pub(crate) fn abort(&mut self, id: u64) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if self.live().contains(&id) {
            facts.push(AlignFact::Aborted { id });
        }
        self.status.insert(id, Status::Dead);
        self.with_released(&paused, facts)
    }

    pub(crate) fn escalate(&mut self, id: u64) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if let Some(&Status::Waiting { since }) = self.status.get(&id) {
            facts.push(self.forward(since, Some(BarrierMode::UNALIGNED)));
            self.status.insert(id, Status::Recording { since });
        }
        self.with_released(&paused, facts)
    }

    pub(crate) fn add_input(&mut self) -> Option<usize> {
        if !self.live().is_empty() {
            return None;
        }
        self.settle();
        if self.settled == Some(u64::MAX) {
            return None;
        }
        self.joined.push(self.settled);
        Some(self.input_count() - 1)
    }

    pub(crate) fn input_count(&self) -> usize {
        self.joined.len()
    }

    pub(crate) fn is_closed(&self, input: usize) -> bool {
        self.ended.contains(&input) || self.failed.contains(&input)
    }

    pub(crate) fn is_paused(&self, input: usize) -> bool {
        self.is_closed(input) || self.waits(input)
    }

    pub(crate) fn pending_inputs(&self, id: u64) -> Vec<usize> {
        let live = self.live().contains(&id);
        let open = (0..self.input_count()).filter(|&input| !self.is_closed(input));
        open.filter(|&input| !live || self.standing(input, id) == Standing::ToCome)
            .collect()
    }

    pub(crate) fn recording_inputs(&self, id: u64) -> Vec<usize> {
        match self.status.get(&id) {
            Some(Status::Recording { .. }) => self.pending_inputs(id),
            _ => Vec::new(),
        }
    }

    pub(crate) fn first_delivery(&self, id: u64) -> Option<Monotonic> {
        match self.status.get(&id) {
            Some(&Status::Waiting { since } | &Status::Recording { since }) => {
                Some(self.history[since].at)
            }
            _ => None,
        }
    }

    fn take_up(&mut self, barrier: Barrier, since: usize, facts: &mut Vec<AlignFact>) {
        let id = barrier.id;
        if !self.failed.is_empty() {
            facts.push(AlignFact::Refused {
                id,
                why: BarrierRefused::InputFailed,
            });
            self.status.insert(id, Status::Dead);
        } else if barrier.mode.is_unaligned() {
            self.status.insert(id, Status::Recording { since });
            if self.standings(id).contains(&Standing::Never) {
                return;
            }
            facts.push(self.forward(since, None));
        } else {
            self.status.insert(id, Status::Waiting { since });
        }
    }

    /// Ends every live id whose end has come; the one that is named is left out.
    fn resolve(&mut self, but: Option<u64>, facts: &mut Vec<AlignFact>) {
        for id in self.live() {
            if Some(id) == but {
                continue;
            }
            let standings = self.standings(id);
            if standings.contains(&Standing::Never) {
                facts.push(AlignFact::Superseded { id });
                self.status.insert(id, Status::Dead);
            } else if !standings.contains(&Standing::ToCome) {
                match self.status.insert(id, Status::Dead) {
                    Some(Status::Waiting { since }) => facts.push(self.forward(since, None)),
                    _ => facts.push(AlignFact::RecordingsClosed { id }),
                }
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        let open = (0..self.input_count()).filter(|&input| !self.is_closed(input));
        let passed = open.map(|input| self.passed(input).0);
        self.settled = self.settled.max(passed.min().flatten());
    }

    fn standings(&self, id: u64) -> Vec<Standing> {
        (0..self.input_count())
            .map(|input| self.standing(input, id))
            .collect()
    }

    fn standing(&self, input: usize, id: u64) -> Standing {
        let since = match self.status.get(&id) {
            Some(&Status::Waiting { since } | &Status::Recording { since }) => since,
            _ => usize::MAX,
        };
        let here = self.delivered(input, id, since);
        if here {
            return Standing::Here;
        }
        if self.is_closed(input) {
            return Standing::Ended;
        }
        match self.passed(input) {
            (_, Some(terminal)) if terminal > id => Standing::Ended,
            (Some(max), _) if max > id => Standing::Never,
            _ => Standing::ToCome,
        }
    }

    /// Whether a delivery of an id that was taken up at `since` came on an input.
    fn delivered(&self, input: usize, id: u64, since: usize) -> bool {
        let mut later = self.history.iter().skip(since);
        later.any(|delivery| delivery.input == input && delivery.barrier.id == id && !delivery.late)
    }

    /// The highest id that came in order on an input, and the highest that was terminal too.
    fn passed(&self, input: usize) -> (Option<u64>, Option<u64>) {
        let mut passed = (self.joined[input], None);
        let here = self
            .history
            .iter()
            .filter(|delivery| delivery.input == input);
        for barrier in here.map(|delivery| delivery.barrier) {
            if !barrier.mode.is_unaligned() && passed.0.is_none_or(|max| max < barrier.id) {
                passed.0 = Some(barrier.id);
                if barrier.terminal {
                    passed.1 = Some(barrier.id);
                }
            }
        }
        passed
    }

    fn live(&self) -> Vec<u64> {
        let live = self
            .status
            .iter()
            .filter(|(_, status)| **status != Status::Dead);
        live.map(|(&id, _)| id).collect()
    }

    fn paused(&self) -> BTreeSet<usize> {
        let open = (0..self.input_count()).filter(|&input| !self.is_closed(input));
        open.filter(|&input| self.waits(input)).collect()
    }

    fn waits(&self, input: usize) -> bool {
        self.status.iter().any(|(&id, status)| match *status {
            Status::Waiting { since } => self.delivered(input, id, since),
            _ => false,
        })
    }

    fn forward(&self, since: usize, mode: Option<BarrierMode>) -> AlignFact {
        let Delivery {
            barrier: first,
            at: first_at,
            ..
        } = self.history[since];
        let mut barrier = first;
        let later = self.history.iter().skip(since);
        let counted = later.filter(|delivery| delivery.barrier.id == first.id && !delivery.late);
        barrier.terminal = counted
            .into_iter()
            .any(|delivery| delivery.barrier.terminal);
        barrier.mode = mode.unwrap_or(first.mode);
        let unaligned_first = barrier.mode.is_unaligned();
        AlignFact::Forward {
            barrier,
            unaligned_first,
            first_at,
        }
    }

    fn with_released(&self, before: &BTreeSet<usize>, mut facts: Vec<AlignFact>) -> Vec<AlignFact> {
        let now = self.paused();
        let released = before
            .difference(&now)
            .filter(|&&input| !self.is_closed(input));
        facts.extend(released.map(|&input| AlignFact::Released { input }));
        facts
    }
}
