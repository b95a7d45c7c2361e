//! Fields that hold any number of values.

use std::fmt;
use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{Array, ArrayRef, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;

use super::field::{ColumnWriter, FieldType, Full, Required};
use super::live::{Live, Misfit, child, offset, typed};

/// The name of the column within a list column.
const ITEM: &str = "item";

fn item_field<E: FieldType>() -> FieldRef {
    Arc::new(Field::new(ITEM, E::data_type(), E::NULLABLE))
}

/// The ends of lists within the items of all of them.
#[derive(Debug)]
pub(super) struct Ends {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Ends {
    pub(super) fn with_capacity(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, items: usize) -> Result<(), Full> {
        let items = i32::try_from(items).map_err(|_| Full::ONLY)?;
        let end = self.last().checked_add(items).ok_or(Full::ONLY)?;
        self.offsets.push(end);
        self.nulls.append_non_null();
        Ok(())
    }

    pub(super) fn push_empty(&mut self, valid: bool) {
        self.offsets.push(self.last());
        self.nulls.append(valid);
    }

    pub(super) fn finish(mut self) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
        let offsets = OffsetBuffer::new(self.offsets.into());
        (offsets, self.nulls.finish())
    }

    fn last(&self) -> i32 {
        self.offsets[self.offsets.len() - 1]
    }
}

/// Gathers lists.
#[doc(hidden)]
#[derive(Debug)]
pub struct ListWriter<W> {
    ends: Ends,
    items: W,
}

impl<E: FieldType> ColumnWriter<Vec<E>> for ListWriter<E::Writer> {
    fn with_capacity(rows: usize) -> Self {
        Self {
            ends: Ends::with_capacity(rows),
            items: E::Writer::with_capacity(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &Vec<E>) -> Result<(), Full> {
        self.ends.push(value.len())?;
        self.items.extend(value.iter()).map_err(|_| Full::ONLY)
    }

    fn push_null(&mut self) {
        self.ends.push_empty(false);
    }

    fn push_blank(&mut self) {
        self.ends.push_empty(true);
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let (offsets, nulls) = self.ends.finish();
        let items = self.items.finish()?;
        let lists = ListArray::try_new(item_field::<E>(), offsets, items, nulls)?;
        Ok(Arc::new(lists))
    }
}

/// The lists of a column.
pub struct ListColumn<'a, E: FieldType> {
    offsets: &'a [i32],
    items: E::Column<'a>,
}

impl<'a, E: FieldType> ListColumn<'a, E> {
    /// The items of all lists, one list behind the other; there may be some in between that
    /// are in no list.
    pub fn items(&self) -> E::Column<'a> {
        self.items
    }

    /// The list of a row.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn value(&self, row: usize) -> ListRef<'a, E> {
        ListRef {
            items: self.items,
            start: offset(self.offsets, row),
            end: offset(self.offsets, row + 1),
        }
    }
}

impl<E: FieldType> Clone for ListColumn<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: FieldType> Copy for ListColumn<'_, E> {}

/// A list, borrowed from its column.
pub struct ListRef<'a, E: FieldType> {
    items: E::Column<'a>,
    start: usize,
    end: usize,
}

impl<'a, E: FieldType> ListRef<'a, E> {
    /// Items in the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the list has no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The item at a position, if the list is that long.
    #[inline]
    pub fn get(&self, position: usize) -> Option<E::Ref<'a>> {
        (position < self.len()).then(|| E::at(&self.items, self.start + position))
    }

    /// The items, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = E::Ref<'a>> + use<'a, E> {
        let items = self.items;
        (self.start..self.end).map(move |item| E::at(&items, item))
    }
}

impl<E: FieldType> Clone for ListRef<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: FieldType> Copy for ListRef<'_, E> {}

impl<E: FieldType> fmt::Debug for ListRef<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<E: FieldType> PartialEq for ListRef<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl<E: FieldType> FieldType for Vec<E> {
    const NESTED: bool = true;
    type Writer = ListWriter<E::Writer>;
    type Column<'a> = ListColumn<'a, E>;
    type Ref<'a> = ListRef<'a, E>;

    fn data_type() -> DataType {
        DataType::List(item_field::<E>())
    }

    fn column<'a>(array: &'a dyn Array, live: &Live) -> Result<ListColumn<'a, E>, Misfit> {
        let lists = typed::<ListArray>(array)?;
        let (offsets, items) = (lists.offsets(), lists.values());
        let live = live.within(offsets, items.len());
        let items = child::<E>(std::slice::from_ref(items), 0, ITEM, &live);
        Ok(ListColumn {
            offsets,
            items: items.map_err(|misfit| misfit.in_list(offsets))?,
        })
    }

    #[inline]
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
        column.value(row)
    }

    #[inline]
    fn owned(value: ListRef<'_, E>) -> Self {
        E::owned_range(&value.items, value.start..value.end)
    }
}

impl<E: FieldType> Required for Vec<E> {}
