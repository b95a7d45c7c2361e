//! A batch, or a row, of one of two inputs.

use super::Payload;

/// Something of the left or of the right input of an operator that has two.
///
/// An operator with two inputs takes `Either<A, B>`: both streams come through one input gate,
/// which merges their watermarks and aligns their barriers as it does for any two edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Either<A, B> {
    /// Of the left input.
    Left(A),
    /// Of the right input.
    Right(B),
}

impl<A: Payload, B: Payload> Payload for Either<A, B> {
    fn rows(&self) -> usize {
        match self {
            Self::Left(batch) => batch.rows(),
            Self::Right(batch) => batch.rows(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Left(batch) => batch.bytes(),
            Self::Right(batch) => batch.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Row, Rows};

    #[test]
    fn a_batch_of_a_side_counts_as_it_does_alone() {
        let rows = Rows::from(vec![Row::untimed(1_u8), Row::untimed(2)]);
        let (left, right) = (
            Either::<_, Rows<u64>>::Left(rows.clone()),
            Either::<Rows<u64>, _>::Right(rows.clone()),
        );
        assert_eq!((left.rows(), left.bytes()), (2, rows.bytes()));
        assert_eq!((right.rows(), right.bytes()), (2, rows.bytes()));
    }
}
