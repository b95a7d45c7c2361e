//! Partitioners of the two inputs of one operator.

use crate::batch::{Either, Payload};
use crate::error::OperatorError;

use super::Partitioner;

/// Spreads left batches as the partitioner it is made of spreads them alone.
pub struct OfLeft<A> {
    partitioner: Box<dyn Partitioner<A>>,
}

/// Spreads right batches as the partitioner it is made of spreads them alone.
pub struct OfRight<B> {
    partitioner: Box<dyn Partitioner<B>>,
}

impl<A: Payload> OfLeft<A> {
    /// Spreads left batches by `partitioner`.
    pub fn new(partitioner: Box<dyn Partitioner<A>>) -> Self {
        Self { partitioner }
    }
}

impl<B: Payload> OfRight<B> {
    /// Spreads right batches by `partitioner`.
    pub fn new(partitioner: Box<dyn Partitioner<B>>) -> Self {
        Self { partitioner }
    }
}

impl<A: Payload, B: Payload> Partitioner<Either<A, B>> for OfLeft<A> {
    fn partition(
        &mut self,
        batch: Either<A, B>,
        edges: usize,
        give: &mut dyn FnMut(usize, Either<A, B>),
    ) -> Result<(), OperatorError> {
        match batch {
            Either::Left(batch) => {
                let mut give = |edge, part| give(edge, Either::Left(part));
                self.partitioner.partition(batch, edges, &mut give)
            }
            Either::Right(_) => Err(wrong_side("left", "right")),
        }
    }

    fn is_broadcast(&self) -> bool {
        self.partitioner.is_broadcast()
    }
}

impl<A: Payload, B: Payload> Partitioner<Either<A, B>> for OfRight<B> {
    fn partition(
        &mut self,
        batch: Either<A, B>,
        edges: usize,
        give: &mut dyn FnMut(usize, Either<A, B>),
    ) -> Result<(), OperatorError> {
        match batch {
            Either::Right(batch) => {
                let mut give = |edge, part| give(edge, Either::Right(part));
                self.partitioner.partition(batch, edges, &mut give)
            }
            Either::Left(_) => Err(wrong_side("right", "left")),
        }
    }

    fn is_broadcast(&self) -> bool {
        self.partitioner.is_broadcast()
    }
}

fn wrong_side(of: &str, found: &str) -> OperatorError {
    OperatorError::new(format!(
        "the stream to the {of} input of an operator has a batch of its {found} one: \
         put each stream through the operator that makes it that side"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Row, Rows};
    use crate::output::{Broadcast, ByKeyHash};

    type Two = Either<Rows<u64>, Rows<&'static str>>;

    #[test]
    fn each_side_is_spread_as_it_is_alone() {
        let numbers = Rows::from_iter((0..8).map(Row::untimed));
        let mut left = OfLeft::new(Box::new(ByKeyHash::new(|n: &u64| *n * 64)));
        let mut given = Vec::new();
        let batch: Two = Either::Left(numbers);
        let mut give = |edge, part: Two| given.push((edge, part));
        left.partition(batch.clone(), 2, &mut give).expect("left");
        assert!(
            left.partition(Either::Right(Rows::<u8>::new()), 2, &mut |_, _| {})
                .is_err()
        );
        let part = |first| Rows::from_iter((first..8).step_by(2).map(Row::untimed));
        assert_eq!(
            given,
            [(0, Either::Left(part(0))), (1, Either::Left(part(1)))]
        );

        let mut right = OfRight::new(Box::new(Broadcast));
        let words: Two = Either::Right(Rows::from(vec![Row::untimed("a")]));
        let mut edges = Vec::new();
        let mut give = |edge, part: Two| edges.push((edge, part == words));
        right.partition(words.clone(), 3, &mut give).expect("right");
        assert_eq!(edges, [(1, true), (2, true), (0, true)]);
    }
}
