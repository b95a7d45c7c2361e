//! Turns lines into batches, and finds the lines that cannot be.

use arrow::array::RecordBatch;

use crate::connect::text::lines::{Chunk, Line};

/// A line that is not a row, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    pub(crate) number: u64,
    pub(crate) reason: String,
    /// How many lines there are from it on that are rows each by itself, and no rows together.
    pub(crate) apart: usize,
}

/// Knows how a line of text is a row.
pub(crate) trait TextRows {
    /// All of `lines` as one batch, each of them a row; none where there is no line.
    ///
    /// # Errors
    /// A sentence, when any of them is not a row; which one is not known.
    fn try_decode(&mut self, chunk: &Chunk, lines: &[&Line])
    -> Result<Option<RecordBatch>, String>;
}

/// All lines of `chunk` as one batch. If there are bad lines among them, each is given to
/// `on_bad`, in order, which says whether to go on without it.
///
/// The lines are decoded together. Only if that fails are they searched, by halves, for those
/// that are bad: an error of the decoder does not say which line it is about.
pub(crate) fn decode<E>(
    rows: &mut dyn TextRows,
    chunk: &Chunk,
    mut on_bad: impl FnMut(BadLine) -> Result<(), E>,
) -> Result<Option<RecordBatch>, E> {
    let lines: Vec<&Line> = chunk.lines().iter().collect();
    if let Ok(batch) = rows.try_decode(chunk, &lines) {
        return Ok(batch);
    }
    let mut good = Vec::with_capacity(lines.len());
    search(rows, chunk, &lines, &mut good, &mut on_bad)?;
    // Lines that can be decoded apart can be decoded together, but for what nobody has thought of.
    match rows.try_decode(chunk, &good) {
        Ok(batch) => Ok(batch),
        Err(reason) => {
            let bad = BadLine {
                number: good.first().map_or(0, |line| line.number),
                reason,
                apart: good.len(),
            };
            on_bad(bad)?;
            Ok(None)
        }
    }
}

/// Puts the lines that can be decoded into `good`.
fn search<'a, E>(
    rows: &mut dyn TextRows,
    chunk: &Chunk,
    lines: &[&'a Line],
    good: &mut Vec<&'a Line>,
    on_bad: &mut impl FnMut(BadLine) -> Result<(), E>,
) -> Result<(), E> {
    match (rows.try_decode(chunk, lines), lines) {
        (Ok(_), _) => good.extend_from_slice(lines),
        (Err(reason), [line]) => {
            let bad = BadLine {
                number: line.number,
                reason,
                apart: 0,
            };
            on_bad(bad)?;
        }
        (Err(_), _) => {
            let (left, right) = lines.split_at(lines.len() / 2);
            search(rows, chunk, left, good, on_bad)?;
            search(rows, chunk, right, good, on_bad)?;
        }
    }
    Ok(())
}
