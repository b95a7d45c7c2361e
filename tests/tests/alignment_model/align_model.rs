//! A naive model of alignment.
//!
//! It keeps the whole history and derives from it, after every event, who delivered what,
//! who waits and who can't deliver any more, by the definitions and without any counter.

use std::collections::{BTreeMap, BTreeSet};

use ringway::align::{AlignFact, BarrierRefused};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, BarrierMode};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Add {
        settled: Option<u64>,
    },
    Barrier {
        input: usize,
        barrier: Barrier,
        at: Monotonic,
        late: bool,
    },
    Closed {
        input: usize,
    },
    Failed {
        input: usize,
    },
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
    history: Vec<Event>,
    status: BTreeMap<u64, Status>,
    settled: Option<u64>,
}

impl AlignModel {
    pub(crate) fn new(inputs: usize) -> Self {
        let history = vec![Event::Add { settled: None }; inputs];
        Self {
            history,
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
        self.history.push(Event::Barrier {
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
            self.history.push(Event::Closed { input });
            self.resolve(None, &mut facts);
        }
        self.with_released(&paused, facts)
    }

    pub(crate) fn on_input_failed(&mut self, input: usize) -> Vec<AlignFact> {
        let paused = self.paused();
        let mut facts = Vec::new();
        if !self.is_closed(input) {
            self.history.push(Event::Failed { input });
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
        self.history.push(Event::Add {
            settled: self.settled,
        });
        Some(self.input_count() - 1)
    }

    pub(crate) fn input_count(&self) -> usize {
        self.history
            .iter()
            .filter(|event| matches!(event, Event::Add { .. }))
            .count()
    }

    pub(crate) fn is_closed(&self, input: usize) -> bool {
        self.history.contains(&Event::Closed { input }) || self.has_failed(input)
    }

    pub(crate) fn is_paused(&self, input: usize) -> bool {
        self.is_closed(input) || self.paused().contains(&input)
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
                Some(self.barrier_at(since).1)
            }
            _ => None,
        }
    }

    fn take_up(&mut self, barrier: Barrier, since: usize, facts: &mut Vec<AlignFact>) {
        let id = barrier.id;
        let any_failed = (0..self.input_count()).any(|input| self.has_failed(input));
        if any_failed {
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
        self.history.iter().skip(since).any(|event| {
            matches!(event, Event::Barrier { input: from, barrier, late: false, .. }
                if *from == input && barrier.id == id)
        })
    }

    /// The highest id that came in order on an input, and the highest that was terminal too.
    fn passed(&self, input: usize) -> (Option<u64>, Option<u64>) {
        let mut added = self.history.iter().filter_map(|event| match event {
            Event::Add { settled } => Some(*settled),
            _ => None,
        });
        let mut passed = (added.nth(input).flatten(), None);
        for event in &self.history {
            if let Event::Barrier {
                input: from,
                barrier,
                ..
            } = event
                && *from == input
                && !barrier.mode.is_unaligned()
                && passed.0.is_none_or(|max| max < barrier.id)
            {
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

    fn has_failed(&self, input: usize) -> bool {
        self.history.contains(&Event::Failed { input })
    }

    fn paused(&self) -> BTreeSet<usize> {
        let mut paused = BTreeSet::new();
        for (&id, status) in &self.status {
            if let Status::Waiting { since } = *status {
                let inputs = (0..self.input_count()).filter(|&input| !self.is_closed(input));
                paused.extend(inputs.filter(|&input| self.delivered(input, id, since)));
            }
        }
        paused
    }

    fn barrier_at(&self, since: usize) -> (Barrier, Monotonic) {
        match self.history[since] {
            Event::Barrier { barrier, at, .. } => (barrier, at),
            other => panic!("an id is taken up by a barrier, not by {other:?}"),
        }
    }

    fn forward(&self, since: usize, mode: Option<BarrierMode>) -> AlignFact {
        let (first, first_at) = self.barrier_at(since);
        let mut barrier = first;
        for event in &self.history[since..] {
            if let Event::Barrier {
                barrier: later,
                late: false,
                ..
            } = event
                && later.id == first.id
            {
                barrier.terminal |= later.terminal;
            }
        }
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
