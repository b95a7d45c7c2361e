//! The state of one aggregate: one value a slot.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, UInt64Array};

use super::extreme::Extreme;
use super::spec::AggregateKind;
use super::total::{FloatTotal, IntTotal};
use super::values::{Selection, ValueKind, Values};
use crate::error::OperatorError;

/// The state of one aggregate.
pub(super) enum Store {
    Count(Vec<i64>),
    IntTotal(Vec<IntTotal>),
    FloatTotal(Vec<FloatTotal>),
    Int(Extreme<i64>),
    UInt(Extreme<u64>),
    Float(Extreme<f64>),
    Text(Extreme<Box<str>>),
}

impl Store {
    /// The state of `kind` over values of `values`; none when there is no such aggregate.
    pub(super) fn new(kind: AggregateKind, values: Option<ValueKind>) -> Option<Self> {
        let greatest = kind == AggregateKind::Max;
        Some(match (kind, values) {
            (AggregateKind::Count | AggregateKind::CountColumn, _) => Self::Count(Vec::new()),
            (_, None) => return None,
            (AggregateKind::Sum | AggregateKind::Mean, Some(values)) => match values {
                ValueKind::Int | ValueKind::UInt => Self::IntTotal(Vec::new()),
                ValueKind::Float => Self::FloatTotal(Vec::new()),
                ValueKind::Text => return None,
            },
            (AggregateKind::Min | AggregateKind::Max, Some(values)) => match values {
                ValueKind::Int => Self::Int(Extreme::new(greatest)),
                ValueKind::UInt => Self::UInt(Extreme::new(greatest)),
                ValueKind::Float => Self::Float(Extreme::new(greatest)),
                ValueKind::Text => Self::Text(Extreme::new(greatest)),
            },
        })
    }

    /// The counts, if that is what it holds.
    pub(super) fn counts_mut(&mut self) -> Option<&mut [i64]> {
        match self {
            Self::Count(counts) => Some(counts),
            _ => None,
        }
    }

    /// State of the same kind, without slots.
    pub(super) fn empty_like(&self) -> Self {
        match self {
            Self::Count(_) => Self::Count(Vec::new()),
            Self::IntTotal(_) => Self::IntTotal(Vec::new()),
            Self::FloatTotal(_) => Self::FloatTotal(Vec::new()),
            Self::Int(extreme) => Self::Int(extreme.empty_like()),
            Self::UInt(extreme) => Self::UInt(extreme.empty_like()),
            Self::Float(extreme) => Self::Float(extreme.empty_like()),
            Self::Text(extreme) => Self::Text(extreme.empty_like()),
        }
    }

    /// Makes `slots` slots of it; new ones are empty.
    pub(super) fn resize(&mut self, slots: usize) {
        match self {
            Self::Count(counts) => counts.resize(slots, 0),
            Self::IntTotal(totals) => totals.resize(slots, IntTotal::default()),
            Self::FloatTotal(totals) => totals.resize(slots, FloatTotal::default()),
            Self::Int(extreme) => extreme.values.resize(slots, None),
            Self::UInt(extreme) => extreme.values.resize(slots, None),
            Self::Float(extreme) => extreme.values.resize(slots, None),
            Self::Text(extreme) => extreme.values.resize(slots, None),
        }
    }

    /// Empties `slots`.
    pub(super) fn clear(&mut self, slots: &[u32]) {
        fn reset<T: Default>(values: &mut [T], slots: &[u32]) {
            slots
                .iter()
                .for_each(|slot| values[*slot as usize] = T::default());
        }
        match self {
            Self::Count(counts) => reset(counts, slots),
            Self::IntTotal(totals) => reset(totals, slots),
            Self::FloatTotal(totals) => reset(totals, slots),
            Self::Int(extreme) => reset(&mut extreme.values, slots),
            Self::UInt(extreme) => reset(&mut extreme.values, slots),
            Self::Float(extreme) => reset(&mut extreme.values, slots),
            Self::Text(extreme) => reset(&mut extreme.values, slots),
        }
    }

    /// Takes in the selected rows.
    pub(super) fn update(&mut self, selection: &Selection<'_>, values: Option<&Values>) {
        match (self, values) {
            (Self::Count(counts), _) => selection.for_each(|_, slot| counts[slot] += 1),
            (Self::IntTotal(totals), Some(Values::Int(values))) => {
                IntTotal::update(totals, selection, values);
            }
            (Self::IntTotal(totals), Some(Values::UInt(values))) => {
                IntTotal::update(totals, selection, values);
            }
            (Self::FloatTotal(totals), Some(Values::Float(values))) => {
                FloatTotal::update(totals, selection, values);
            }
            (Self::Int(extreme), Some(Values::Int(values))) => extreme.update(selection, values),
            (Self::UInt(extreme), Some(Values::UInt(values))) => extreme.update(selection, values),
            (Self::Float(extreme), Some(Values::Float(values))) => {
                extreme.update(selection, values);
            }
            (Self::Text(extreme), Some(Values::Text(values))) => {
                selection.for_each(|row, slot| extreme.offer_text(slot, values.value(row)));
            }
            _ => unreachable!("values have the kind that the store was made for"),
        }
    }

    /// Takes in slot `from[i]` of `other` into slot `into[i]`, for each `i`.
    pub(super) fn merge(&mut self, into: &[u32], other: &Self, from: &[u32]) {
        let pairs = into
            .iter()
            .zip(from)
            .map(|(into, from)| (*into as usize, *from as usize));
        match (self, other) {
            (Self::Count(counts), Self::Count(others)) => {
                pairs.for_each(|(into, from)| counts[into] += others[from]);
            }
            (Self::IntTotal(totals), Self::IntTotal(others)) => {
                pairs.for_each(|(into, from)| totals[into].merge(others[from]));
            }
            (Self::FloatTotal(totals), Self::FloatTotal(others)) => {
                pairs.for_each(|(into, from)| totals[into].merge(others[from]));
            }
            (Self::Int(extreme), Self::Int(others)) => pairs.for_each(|(into, from)| {
                others.values[from].inspect(|value| extreme.offer(into, *value));
            }),
            (Self::UInt(extreme), Self::UInt(others)) => pairs.for_each(|(into, from)| {
                others.values[from].inspect(|value| extreme.offer(into, *value));
            }),
            (Self::Float(extreme), Self::Float(others)) => pairs.for_each(|(into, from)| {
                others.values[from].inspect(|value| extreme.offer(into, *value));
            }),
            (Self::Text(extreme), Self::Text(others)) => pairs.for_each(|(into, from)| {
                others.values[from]
                    .as_deref()
                    .inspect(|value| extreme.offer_text(into, value));
            }),
            _ => unreachable!("only state of the same kind is merged"),
        }
    }

    /// The results of `slots`, in that order, in the plain type of the aggregate.
    pub(super) fn finish(
        &self,
        slots: &[u32],
        kind: AggregateKind,
        unsigned: bool,
        name: &str,
    ) -> Result<ArrayRef, OperatorError> {
        let at = |slot: &u32| *slot as usize;
        Ok(match self {
            Self::Count(counts) => Arc::new(Int64Array::from_iter_values(
                slots.iter().map(|slot| counts[at(slot)]),
            )),
            Self::IntTotal(totals) => IntTotal::finish(totals, slots, kind, unsigned, name)?,
            Self::FloatTotal(totals) => FloatTotal::finish(totals, slots, kind),
            Self::Int(extreme) => {
                let values = slots.iter().map(|slot| extreme.values[at(slot)]);
                Arc::new(values.collect::<Int64Array>())
            }
            Self::UInt(extreme) => {
                let values = slots.iter().map(|slot| extreme.values[at(slot)]);
                Arc::new(values.collect::<UInt64Array>())
            }
            Self::Float(extreme) => {
                let values = slots.iter().map(|slot| extreme.values[at(slot)]);
                Arc::new(values.collect::<Float64Array>())
            }
            Self::Text(extreme) => {
                let values = slots.iter().map(|slot| extreme.values[at(slot)].as_deref());
                Arc::new(values.collect::<StringArray>())
            }
        })
    }
}
