//! Least and greatest values, one a slot.

use std::cmp::Ordering;

use super::values::Selection;
use crate::operators::numbers::Ordered;

/// The least or greatest value of each slot, none where there was no value.
pub(super) struct Extreme<T> {
    pub(super) values: Vec<Option<T>>,
    /// How a new value must compare with the kept one to replace it.
    wins: Ordering,
}

impl<T> Extreme<T> {
    pub(super) const fn new(greatest: bool) -> Self {
        Self {
            values: Vec::new(),
            wins: if greatest {
                Ordering::Greater
            } else {
                Ordering::Less
            },
        }
    }

    /// One of the same kind, without values.
    pub(super) const fn empty_like(&self) -> Self {
        Self {
            values: Vec::new(),
            wins: self.wins,
        }
    }
}

impl<T: Copy + Ordered> Extreme<T> {
    pub(super) fn update(&mut self, selection: &Selection<'_>, values: &[T]) {
        selection.for_each(|row, slot| self.offer(slot, values[row]));
    }

    #[inline]
    pub(super) fn offer(&mut self, slot: usize, value: T) {
        let kept = &mut self.values[slot];
        if kept.is_none_or(|kept| value.order(&kept) == self.wins) {
            *kept = Some(value);
        }
    }
}

impl Extreme<Box<str>> {
    pub(super) fn offer_text(&mut self, slot: usize, value: &str) {
        let kept = &mut self.values[slot];
        if kept
            .as_deref()
            .is_none_or(|kept| value.order(kept) == self.wins)
        {
            *kept = Some(value.into());
        }
    }
}
