//! Fields that hold values by key.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MapArray, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;

use super::field::{ColumnWriter, FieldType, Full, KeyType, Required};
use super::list::Ends;
use super::live::{Fault, Live, Misfit, child, offset, typed};

/// The names of the columns within a map column.
const ENTRIES: &str = "entries";
const KEY: &str = "key";
const VALUE: &str = "value";

fn entry_fields<K: KeyType, V: FieldType>() -> Fields {
    let key = Field::new(KEY, K::data_type(), false);
    // Nullable even where no value can be null: peers declare it so and compare schemas.
    let value = Field::new(VALUE, V::data_type(), true);
    Fields::from(vec![key, value])
}

fn entries_field(fields: Fields) -> FieldRef {
    Arc::new(Field::new(ENTRIES, DataType::Struct(fields), false))
}

/// Gathers maps.
#[doc(hidden)]
#[derive(Debug)]
pub struct MapWriter<KW, VW> {
    ends: Ends,
    keys: KW,
    values: VW,
}

impl<K: KeyType, V: FieldType> ColumnWriter<BTreeMap<K, V>> for MapWriter<K::Writer, V::Writer> {
    fn with_capacity(rows: usize) -> Self {
        Self {
            ends: Ends::with_capacity(rows),
            keys: K::Writer::with_capacity(rows),
            values: V::Writer::with_capacity(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &BTreeMap<K, V>) -> Result<(), Full> {
        self.ends.push(value.len())?;
        self.keys.extend(value.keys()).map_err(|_| Full::ONLY)?;
        self.values.extend(value.values()).map_err(|_| Full::ONLY)
    }

    fn push_null(&mut self) {
        self.ends.push_empty(false);
    }

    fn push_blank(&mut self) {
        self.ends.push_empty(true);
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let (offsets, nulls) = self.ends.finish();
        let fields = entry_fields::<K, V>();
        let columns = vec![self.keys.finish()?, self.values.finish()?];
        let entries = StructArray::try_new(fields.clone(), columns, None)?;
        let maps = MapArray::try_new(entries_field(fields), offsets, entries, nulls, false)?;
        Ok(Arc::new(maps))
    }
}

/// The maps of a column.
pub struct MapColumn<'a, K: KeyType, V: FieldType> {
    offsets: &'a [i32],
    keys: K::Column<'a>,
    values: V::Column<'a>,
}

impl<'a, K: KeyType, V: FieldType> MapColumn<'a, K, V> {
    /// The keys of all maps, one map behind the other; there may be some in between that are
    /// in no map.
    pub fn keys(&self) -> K::Column<'a> {
        self.keys
    }

    /// The values of all maps, each at the position of its key.
    pub fn values(&self) -> V::Column<'a> {
        self.values
    }

    /// The map of a row.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn value(&self, row: usize) -> MapRef<'a, K, V> {
        MapRef {
            keys: self.keys,
            values: self.values,
            start: offset(self.offsets, row),
            end: offset(self.offsets, row + 1),
        }
    }

    /// Refuses a map that holds a key twice: a `BTreeMap` would lose an entry of it.
    fn refuse_repeated_keys(&self, live: &Live) -> Result<(), Misfit> {
        match live.iter().find(|row| self.value(*row).repeats_a_key()) {
            Some(row) => Err(Misfit::at(row, Fault::RepeatedKey)),
            None => Ok(()),
        }
    }
}

impl<K: KeyType, V: FieldType> Clone for MapColumn<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: KeyType, V: FieldType> Copy for MapColumn<'_, K, V> {}

/// A map, borrowed from its column. No key stands in it twice.
pub struct MapRef<'a, K: KeyType, V: FieldType> {
    keys: K::Column<'a>,
    values: V::Column<'a>,
    start: usize,
    end: usize,
}

impl<'a, K: KeyType, V: FieldType> MapRef<'a, K, V> {
    /// Entries in the map.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the map has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The value of a key, found by looking at one entry after the other.
    pub fn get(&self, key: K::Ref<'_>) -> Option<V::Ref<'a>> {
        let is_key = |entry: &usize| K::compare(K::at(&self.keys, *entry), key).is_eq();
        let entry = (self.start..self.end).find(is_key)?;
        Some(V::at(&self.values, entry))
    }

    /// The entries as they were sent, which need not be the order of the keys.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (K::Ref<'a>, V::Ref<'a>)> + use<'a, K, V> {
        let (keys, values) = (self.keys, self.values);
        (self.start..self.end).map(move |entry| (K::at(&keys, entry), V::at(&values, entry)))
    }

    /// What is built from a `BTreeMap` is in order, so that a look at the neighbours suffices.
    fn repeats_a_key(&self) -> bool {
        let keys = || (self.start..self.end).map(|entry| K::at(&self.keys, entry));
        let mut neighbours = keys().zip(keys().skip(1));
        if neighbours.all(|(a, b)| K::compare(a, b) == Ordering::Less) {
            return false;
        }
        let distinct: BTreeSet<K> = keys().map(K::owned).collect();
        distinct.len() < self.len()
    }
}

impl<K: KeyType, V: FieldType> Clone for MapRef<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: KeyType, V: FieldType> Copy for MapRef<'_, K, V> {}

impl<K: KeyType, V: FieldType> fmt::Debug for MapRef<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Two maps are equal if they have the same entries, in whatever order.
impl<K: KeyType, V: FieldType> PartialEq for MapRef<'_, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(key, value)| other.get(key).is_some_and(|found| found == value))
    }
}

impl<K: KeyType, V: FieldType> FieldType for BTreeMap<K, V> {
    const NESTED: bool = true;
    type Writer = MapWriter<K::Writer, V::Writer>;
    type Column<'a> = MapColumn<'a, K, V>;
    type Ref<'a> = MapRef<'a, K, V>;

    fn data_type() -> DataType {
        DataType::Map(entries_field(entry_fields::<K, V>()), false)
    }

    fn column<'a>(array: &'a dyn Array, live: &Live) -> Result<MapColumn<'a, K, V>, Misfit> {
        let maps = typed::<MapArray>(array)?;
        let offsets: &[i32] = maps.offsets();
        let entries = maps.entries();
        let within = live.within(offsets, entries.len());
        let keys = child::<K>(entries.columns(), 0, KEY, &within);
        let values = child::<V>(entries.columns(), 1, VALUE, &within);
        let column = MapColumn {
            offsets,
            keys: keys.map_err(|misfit| misfit.in_list(offsets))?,
            values: values.map_err(|misfit| misfit.in_list(offsets))?,
        };
        column.refuse_repeated_keys(live)?;
        Ok(column)
    }

    #[inline]
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
        column.value(row)
    }

    fn owned(value: MapRef<'_, K, V>) -> Self {
        let entries = value.iter();
        entries.map(|(k, v)| (K::owned(k), V::owned(v))).collect()
    }
}

impl<K: KeyType, V: FieldType> Required for BTreeMap<K, V> {}
