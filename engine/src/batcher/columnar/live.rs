//! Which rows of a nested column count, and what is wrong with those that do.

use std::any::type_name;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;

use super::field::FieldType;
use crate::batcher::{BatchError, CodecError};

/// The rows of a column that count.
///
/// What lies within a null, or between the rows that a slice shows, is nobody's value: a peer
/// may have left anything there.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Live {
    rows: Range<usize>,
    /// Valid where a row counts; all do where there is none.
    mask: Option<NullBuffer>,
}

impl Live {
    /// All rows of a column.
    pub(super) fn all(rows: usize) -> Self {
        Self {
            rows: 0..rows,
            mask: None,
        }
    }

    /// These rows but for the nulls.
    pub(super) fn without(&self, nulls: &NullBuffer) -> Self {
        Self {
            rows: self.rows.clone(),
            mask: NullBuffer::union(self.mask.as_ref(), Some(nulls)),
        }
    }

    /// The rows of the column within a list column of `items` items that lie in a list that
    /// counts.
    pub(super) fn within(&self, offsets: &[i32], items: usize) -> Self {
        let rows = offset(offsets, self.rows.start)..offset(offsets, self.rows.end);
        let holds_items = |row: &usize| offsets[*row] != offsets[*row + 1];
        let mut dead = self.rows.clone().filter(|row| !self.counts(*row));
        let mask = dead.any(|row| holds_items(&row)).then(|| {
            let mut mask = BooleanBufferBuilder::new(items);
            mask.append_n(items, false);
            for row in self.iter().filter(holds_items) {
                for item in offset(offsets, row)..offset(offsets, row + 1) {
                    mask.set_bit(item, true);
                }
            }
            NullBuffer::new(mask.finish())
        });
        Self { rows, mask }
    }

    /// The rows that count, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.rows.clone().filter(|row| self.counts(*row))
    }

    fn counts(&self, row: usize) -> bool {
        self.mask.as_ref().is_none_or(|mask| mask.is_valid(row))
    }

    /// The first row that counts and is null.
    fn first_null(&self, array: &dyn Array) -> Option<usize> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
        self.iter().find(|row| nulls.is_null(*row))
    }
}

/// The child column at a position, whose name is given for errors.
#[doc(hidden)]
#[inline]
pub fn child<'a, E: FieldType>(
    arrays: &'a [ArrayRef],
    column: usize,
    name: &'static str,
    live: &Live,
) -> Result<E::Column<'a>, Misfit> {
    let Some(array) = arrays.get(column) else {
        let expected = E::data_type().to_string();
        return Err(Misfit::of_type(expected, "missing".into()).inside(column, name));
    };
    let first_null = (!E::NULLABLE).then(|| live.first_null(array)).flatten();
    let checked = match first_null {
        Some(row) => Err(Misfit::at(row, Fault::Null)),
        None => E::column(array, live),
    };
    checked.map_err(|misfit| misfit.inside(column, name))
}

/// The array as that of its type.
#[inline]
pub(super) fn typed<A: Array + 'static>(array: &dyn Array) -> Result<&A, Misfit> {
    let typed = array.as_any().downcast_ref();
    typed.ok_or_else(|| Misfit::of_type(type_name::<A>().into(), array.data_type().to_string()))
}

/// An offset of Arrow, which is never negative.
#[inline]
pub(super) fn offset(offsets: &[i32], row: usize) -> usize {
    offsets[row] as usize
}

/// Why an array holds no values of a type, and where.
#[doc(hidden)]
#[derive(Debug)]
pub struct Misfit {
    fault: Fault,
    row: usize,
    column: usize,
    /// Names of the fields that lead to the place, the innermost first.
    path: Vec<&'static str>,
}

#[derive(Debug)]
pub(super) enum Fault {
    Null,
    RepeatedKey,
    Type { expected: String, found: String },
}

impl Misfit {
    pub(super) fn at(row: usize, fault: Fault) -> Self {
        Self {
            fault,
            row,
            column: 0,
            path: Vec::new(),
        }
    }

    fn of_type(expected: String, found: String) -> Self {
        Self::at(0, Fault::Type { expected, found })
    }

    /// The same, seen from the struct whose field it is.
    fn inside(mut self, column: usize, name: &'static str) -> Self {
        self.column = column;
        self.path.push(name);
        self
    }

    /// The same, seen from the list whose item it is.
    pub(super) fn in_list(mut self, offsets: &[i32]) -> Self {
        let starts = offsets.partition_point(|start| *start as usize <= self.row);
        self.row = starts.saturating_sub(1);
        self
    }

    /// The error about a record batch whose first `ahead` columns are no fields.
    pub(super) fn into_error(mut self, ahead: usize) -> BatchError {
        let (row, column) = (self.row, self.column + ahead);
        self.path.reverse();
        let field = self.path.join(".");
        match self.fault {
            Fault::Null if self.path.len() == 1 => BatchError::Null { column, row },
            Fault::Null => BatchError::NullWithin { column, row, field },
            Fault::RepeatedKey => BatchError::Codec {
                row,
                source: CodecError::RepeatedKey,
            },
            Fault::Type { expected, found } => BatchError::Schema {
                column,
                expected: format!("`{field}` {expected}"),
                found,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists_that_do_not_count_do_not_count() {
        let nulls = NullBuffer::from(vec![true, false, true, false]);
        let offsets = [1, 3, 5, 6, 6];
        let items = Live::all(4).without(&nulls).within(&offsets, 8);
        assert_eq!(items.iter().collect::<Vec<_>>(), [1, 2, 5]);
        let items = Live::all(4).within(&offsets, 8);
        assert!(items.mask.is_none());
        assert_eq!(items.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_item_belongs_to_the_list_that_spans_it() {
        for (item, row) in [(0, 0), (1, 0), (2, 3), (4, 3)] {
            let misfit = Misfit::at(item, Fault::Null).in_list(&[0, 2, 2, 2, 5]);
            assert_eq!(misfit.row, row);
        }
    }
}
