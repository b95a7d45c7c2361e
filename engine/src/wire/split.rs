//! Cutting what is too large for one frame.

use arrow::array::RecordBatch;
use ringway_netio::credit::Piece;

use crate::batch::Payload;

/// What is left to be sent of a batch.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// None when every piece was taken.
    rest: Option<RecordBatch>,
    /// How many rows each piece has, unless its bytes say fewer.
    rows_each: usize,
}

impl Pieces {
    /// A batch that has to fit pieces of this size.
    pub fn new(batch: RecordBatch, piece: Piece) -> Self {
        let rows = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
        Self {
            rows_each: piece.rows_each(rows).max(1) as usize,
            rest: Some(batch),
        }
    }

    /// Takes the next piece off: as many rows as it may have, with at most `bytes_max` bytes
    /// unless that is less than one row. A batch without rows is one piece.
    pub fn next_piece(&mut self, bytes_max: u64) -> Option<RecordBatch> {
        let rest = self.rest.take()?;
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let total = rest.num_rows();
        let mut rows = total.min(self.rows_each);
        loop {
            // A slice copies every column's description, which costs more than it tells here.
            let bytes = match rows == total {
                true => rest.bytes(),
                false => rest.slice(0, rows).bytes(),
            };
            if bytes <= bytes_max || rows <= 1 {
                break;
            }
            // Rows differ, so the guess may have to be made again.
            let guess = (rows as u128 * bytes_max as u128 / bytes as u128) as usize;
            rows = guess.clamp(1, rows - 1);
        }
        if rows == total {
            return Some(rest);
        }
        let piece = rest.slice(0, rows);
        self.rest = Some(rest.slice(rows, total - rows));
        Some(piece)
    }

    /// Whether every piece was taken.
    pub fn is_over(&self) -> bool {
        self.rest.is_none()
    }

    /// Cuts a piece that turned out to be too large into halves.
    ///
    /// # Errors
    /// The piece, if it has a single row: it can't be cut.
    pub fn halve(piece: RecordBatch) -> Result<[RecordBatch; 2], RecordBatch> {
        match piece.num_rows() {
            0 | 1 => Err(piece),
            rows => {
                let first = rows / 2;
                Ok([piece.slice(0, first), piece.slice(first, rows - first)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn numbers(rows: i64) -> RecordBatch {
        let column = Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef;
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    fn piece(rows: u32, whole_rows: u32, bytes: u64) -> Piece {
        Piece {
            rows,
            whole_rows,
            bytes,
        }
    }

    fn sizes(batch: RecordBatch, piece: Piece) -> Vec<usize> {
        let mut pieces = Pieces::new(batch, piece);
        std::iter::from_fn(|| pieces.next_piece(piece.bytes))
            .map(|batch| batch.num_rows())
            .collect()
    }

    #[test]
    fn what_is_above_the_window_is_cut_as_the_reference_cuts_it() {
        let v1 = piece(1024, 2048, 4 << 20);
        assert_eq!(sizes(numbers(2048), v1), [2048]);
        assert_eq!(sizes(numbers(2049), v1), [1024, 1024, 1]);
        assert_eq!(sizes(numbers(5000), v1), [1024, 1024, 1024, 1024, 904]);
        assert_eq!(sizes(numbers(0), v1), [0]);
    }

    #[test]
    fn bytes_cut_too_and_every_row_comes_once_and_in_order() {
        let texts = (0..100).map(|n| "x".repeat(if n == 50 { 10_000 } else { n }));
        let texts = Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
        let rows = Arc::new(Int64Array::from_iter_values(0..100)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", rows), ("s", texts)]).unwrap();
        let mut pieces = Pieces::new(batch, piece(1000, 1000, 0));
        let mut seen = Vec::new();
        while let Some(piece) = pieces.next_piece(1_000) {
            assert!(piece.bytes() <= 1_000 || piece.num_rows() == 1);
            seen.extend_from_slice(piece.column(0).as_primitive::<Int64Type>().values());
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_piece_is_halved_until_it_is_a_row() {
        let [a, b] = Pieces::halve(numbers(3)).unwrap();
        assert_eq!((a.num_rows(), b.num_rows()), (1, 2));
        assert!(Pieces::halve(a).is_err());
    }
}
