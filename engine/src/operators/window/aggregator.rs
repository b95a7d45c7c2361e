//! What a typed window computes.

use std::cmp::Ordering;
use std::marker::PhantomData;

use crate::error::OperatorError;
use crate::operators::{Ordered, Summand};

/// Folds values into an accumulator, and makes a result of it.
///
/// Merging must give what adding all values to one accumulator gives: the parts of a window
/// are aggregated apart.
pub trait Aggregator<T>: Send {
    /// What is kept for each key and part of a window.
    type Accumulator: Send;
    /// What is emitted.
    type Result: Clone + Send + 'static;

    /// An accumulator without values.
    fn create(&self) -> Self::Accumulator;

    /// Takes in a value.
    fn add(&self, accumulator: &mut Self::Accumulator, value: &T);

    /// Takes in what another accumulator took in.
    fn merge(&self, accumulator: &mut Self::Accumulator, other: &Self::Accumulator);

    /// The result. The accumulator has taken in at least one value.
    ///
    /// # Errors
    /// When there is no result, such as a sum that overflows; the job fails.
    fn result(&self, accumulator: &Self::Accumulator) -> Result<Self::Result, OperatorError>;
}

/// Counts values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl<T> Aggregator<T> for Count {
    type Accumulator = u64;
    type Result = u64;

    fn create(&self) -> u64 {
        0
    }

    fn add(&self, count: &mut u64, _value: &T) {
        *count += 1;
    }

    fn merge(&self, count: &mut u64, other: &u64) {
        *count += other;
    }

    fn result(&self, count: &u64) -> Result<u64, OperatorError> {
        Ok(*count)
    }
}

/// Sums a number of each value; integers exactly, and a sum that overflows is an error.
#[derive(Clone, Debug)]
pub struct Sum<F>(
    /// The number of a value.
    pub F,
);

impl<T, N: Summand, F: Fn(&T) -> N + Send> Aggregator<T> for Sum<F> {
    type Accumulator = N::Total;
    type Result = N;

    fn create(&self) -> N::Total {
        N::Total::default()
    }

    fn add(&self, total: &mut N::Total, value: &T) {
        (self.0)(value).add_to(total);
    }

    fn merge(&self, total: &mut N::Total, other: &N::Total) {
        N::merge(total, *other);
    }

    fn result(&self, total: &N::Total) -> Result<N, OperatorError> {
        N::sum(*total)
    }
}

/// The arithmetic mean of a number of each value.
#[derive(Clone, Debug)]
pub struct Mean<F>(
    /// The number of a value.
    pub F,
);

impl<T, N: Summand, F: Fn(&T) -> N + Send> Aggregator<T> for Mean<F> {
    type Accumulator = (N::Total, u64);
    type Result = f64;

    fn create(&self) -> Self::Accumulator {
        (N::Total::default(), 0)
    }

    fn add(&self, (total, count): &mut Self::Accumulator, value: &T) {
        (self.0)(value).add_to(total);
        *count += 1;
    }

    fn merge(&self, (total, count): &mut Self::Accumulator, other: &Self::Accumulator) {
        N::merge(total, other.0);
        *count += other.1;
    }

    fn result(&self, (total, count): &Self::Accumulator) -> Result<f64, OperatorError> {
        Ok(N::mean(*total, *count))
    }
}

/// The least or greatest of something of each value; of equal ones the first.
#[derive(Clone, Debug)]
pub struct Extreme<F, N> {
    of: F,
    wins: Ordering,
    what: PhantomData<fn() -> N>,
}

impl<F, N: Ordered> Extreme<F, N> {
    /// The least `of` all values.
    pub const fn min(of: F) -> Self {
        Self {
            of,
            wins: Ordering::Less,
            what: PhantomData,
        }
    }

    /// The greatest `of` all values.
    pub const fn max(of: F) -> Self {
        Self {
            of,
            wins: Ordering::Greater,
            what: PhantomData,
        }
    }

    fn offer(&self, kept: &mut Option<N>, value: N) {
        let wins = |kept: &N| value.order(kept) == self.wins;
        if kept.as_ref().is_none_or(wins) {
            *kept = Some(value);
        }
    }
}

impl<T, N, F> Aggregator<T> for Extreme<F, N>
where
    N: Ordered + Clone + Send + 'static,
    F: Fn(&T) -> N + Send,
{
    type Accumulator = Option<N>;
    type Result = N;

    fn create(&self) -> Option<N> {
        None
    }

    fn add(&self, kept: &mut Option<N>, value: &T) {
        self.offer(kept, (self.of)(value));
    }

    fn merge(&self, kept: &mut Option<N>, other: &Option<N>) {
        if let Some(other) = other {
            self.offer(kept, other.clone());
        }
    }

    fn result(&self, kept: &Option<N>) -> Result<N, OperatorError> {
        kept.clone()
            .ok_or_else(|| OperatorError::new("a window without a value has no extreme"))
    }
}

/// Two aggregates of the same values; nest them for more.
impl<T, A: Aggregator<T>, B: Aggregator<T>> Aggregator<T> for (A, B) {
    type Accumulator = (A::Accumulator, B::Accumulator);
    type Result = (A::Result, B::Result);

    fn create(&self) -> Self::Accumulator {
        (self.0.create(), self.1.create())
    }

    fn add(&self, accumulator: &mut Self::Accumulator, value: &T) {
        self.0.add(&mut accumulator.0, value);
        self.1.add(&mut accumulator.1, value);
    }

    fn merge(&self, accumulator: &mut Self::Accumulator, other: &Self::Accumulator) {
        self.0.merge(&mut accumulator.0, &other.0);
        self.1.merge(&mut accumulator.1, &other.1);
    }

    fn result(&self, accumulator: &Self::Accumulator) -> Result<Self::Result, OperatorError> {
        Ok((
            self.0.result(&accumulator.0)?,
            self.1.result(&accumulator.1)?,
        ))
    }
}
