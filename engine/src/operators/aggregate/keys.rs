//! Small numbers for keys, so that state is arrays and not maps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Int64Type, SchemaRef};

use super::encoding::{KeyEncoding, PlainKind, as_type, columns_at, with_types};
use super::hash::FastHash;
use super::number_table::NumberTable;
use crate::error::OperatorError;
use crate::operators::SpecError;

/// Gives every distinct key a number, keeps count of what uses it, and gives the number to
/// another key when nothing does, so that keys that are gone take no memory.
pub(crate) struct KeyInterner {
    positions: Vec<usize>,
    fields: Vec<FieldRef>,
    store: KeyStore,
    uses: Vec<u32>,
    free: Vec<u32>,
}

enum KeyStore {
    /// No key column: one key.
    One,
    /// One column that is or casts to int64.
    Int64 {
        ids: NumberTable,
        null: Option<u32>,
        /// By number; that of null has none.
        values: Vec<i64>,
    },
    /// Anything else, as bytes.
    Bytes {
        encoding: KeyEncoding,
        ids: HashMap<Arc<[u8]>, u32, FastHash>,
        values: Vec<Arc<[u8]>>,
    },
}

impl KeyInterner {
    /// Keys of the columns at `positions` of `schema`; without any, all rows have one key.
    ///
    /// # Errors
    /// When a column does not exist, or has a type that cannot be a key.
    pub(crate) fn new(schema: &SchemaRef, positions: &[usize]) -> Result<Self, SpecError> {
        let mut fields = Vec::new();
        for &column in positions {
            let field = schema.fields().get(column).ok_or(SpecError::NoColumn {
                what: "the key".to_owned(),
                column,
                columns: schema.fields().len(),
            })?;
            fields.push(Arc::clone(field));
        }
        let single = match fields.as_slice() {
            [field] => PlainKind::of(field.data_type()),
            _ => None,
        };
        let store = match single {
            _ if fields.is_empty() => KeyStore::One,
            Some(PlainKind::Int64) => KeyStore::Int64 {
                ids: NumberTable::default(),
                null: None,
                values: Vec::new(),
            },
            _ => KeyStore::Bytes {
                encoding: KeyEncoding::new(&fields).ok_or_else(|| not_a_key(positions, &fields))?,
                ids: HashMap::default(),
                values: Vec::new(),
            },
        };
        Ok(Self {
            positions: positions.to_vec(),
            fields,
            store,
            uses: Vec::new(),
            free: Vec::new(),
        })
    }

    /// The key fields, as they are in the input.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// An upper bound of the numbers given so far: they are all below it.
    pub(crate) fn bound(&self) -> usize {
        self.uses.len()
    }

    /// Keys that have a number.
    #[cfg(test)]
    pub(crate) fn live(&self) -> usize {
        self.uses.len() - self.free.len()
    }

    /// Puts the number of the key of each row of `batch` into `out`.
    ///
    /// A new key is used by nothing: it must get a use, or it stays for ever.
    pub(crate) fn intern(
        &mut self,
        batch: &RecordBatch,
        out: &mut Vec<u32>,
    ) -> Result<(), OperatorError> {
        out.clear();
        let numbers = &mut Numbers {
            uses: &mut self.uses,
            free: &mut self.free,
        };
        match &mut self.store {
            KeyStore::One => {
                if numbers.uses.is_empty() && batch.num_rows() > 0 {
                    numbers.next_for(&mut Vec::new(), ());
                }
                out.resize(batch.num_rows(), 0);
            }
            KeyStore::Int64 { ids, null, values } => {
                let column = as_type(batch.column(self.positions[0]), &DataType::Int64)?;
                let column = column.as_primitive::<Int64Type>();
                if column.null_count() == 0 {
                    out.extend(
                        column
                            .values()
                            .iter()
                            .map(|&value| ids.number_of(value, || numbers.next_for(values, value))),
                    );
                    return Ok(());
                }
                out.extend(column.iter().map(|value| match value {
                    Some(value) => ids.number_of(value, || numbers.next_for(values, value)),
                    None => *null.get_or_insert_with(|| numbers.next_for(values, 0)),
                }));
            }
            KeyStore::Bytes {
                encoding,
                ids,
                values,
            } => {
                let columns = columns_at(batch, &self.positions);
                encoding.encode(&columns, &mut |key| {
                    out.push(match ids.get(key) {
                        Some(id) => *id,
                        None => {
                            let key: Arc<[u8]> = key.into();
                            let id = numbers.next_for(values, Arc::clone(&key));
                            ids.insert(key, id);
                            id
                        }
                    });
                })?;
            }
        }
        Ok(())
    }

    /// One more thing uses the key.
    pub(crate) fn hold(&mut self, id: u32) {
        self.uses[id as usize] += 1;
    }

    /// One thing fewer uses the key; without any the key is forgotten.
    pub(crate) fn release(&mut self, id: u32) {
        let uses = &mut self.uses[id as usize];
        debug_assert!(*uses > 0, "a key is released as often as it is held");
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        match &mut self.store {
            KeyStore::One => return,
            KeyStore::Int64 { ids, null, values } => match *null == Some(id) {
                true => *null = None,
                false => ids.remove(values[id as usize]),
            },
            KeyStore::Bytes { ids, values, .. } => {
                let key = std::mem::replace(&mut values[id as usize], Arc::from([]));
                ids.remove(&key);
            }
        }
        self.free.push(id);
    }

    /// Forgets all keys, whatever uses them, so many at a time; returns whether that is all.
    /// Until it is, none is given a number.
    pub(crate) fn clear_some(&mut self, budget: &mut usize) -> bool {
        // All others have no memory of their own, and go at once.
        if let KeyStore::Bytes { ids, values, .. } = &mut self.store {
            while *budget > 0
                && let Some(key) = values.pop()
            {
                ids.remove(&key);
                *budget -= 1;
            }
            if !values.is_empty() {
                return false;
            }
        }
        self.clear();
        true
    }

    /// Forgets all keys, whatever uses them.
    pub(crate) fn clear(&mut self) {
        self.uses.clear();
        self.free.clear();
        match &mut self.store {
            KeyStore::One => {}
            KeyStore::Int64 { ids, null, values } => {
                *ids = NumberTable::default();
                *null = None;
                values.clear();
            }
            KeyStore::Bytes { ids, values, .. } => {
                ids.clear();
                values.clear();
            }
        }
    }

    /// The key columns of `ids`, in that order.
    pub(crate) fn columns(&self, ids: &[u32]) -> Result<Vec<ArrayRef>, OperatorError> {
        match &self.store {
            KeyStore::One => Ok(Vec::new()),
            KeyStore::Int64 { null, values, .. } => {
                let value = |id: &u32| values[*id as usize];
                let column: Int64Array = match null {
                    None => Int64Array::from_iter_values(ids.iter().map(value)),
                    Some(null) => ids
                        .iter()
                        .map(|id| (id != null).then(|| value(id)))
                        .collect(),
                };
                with_types(vec![Arc::new(column)], &self.fields)
            }
            KeyStore::Bytes {
                encoding, values, ..
            } => encoding.decode(ids.iter().map(|id| &*values[*id as usize]), &self.fields),
        }
    }
}

struct Numbers<'a> {
    uses: &'a mut Vec<u32>,
    free: &'a mut Vec<u32>,
}

impl Numbers<'_> {
    /// A number that no key has, for the key `value`.
    fn next_for<V>(&mut self, values: &mut Vec<V>, value: V) -> u32 {
        if let Some(id) = self.free.pop() {
            values[id as usize] = value;
            return id;
        }
        let id = u32::try_from(self.uses.len()).expect("memory ends before the keys do");
        self.uses.push(0);
        values.push(value);
        id
    }
}

fn not_a_key(positions: &[usize], fields: &[FieldRef]) -> SpecError {
    let at = fields
        .iter()
        .position(|field| KeyEncoding::new(std::slice::from_ref(field)).is_none())
        .unwrap_or(0);
    SpecError::ColumnType {
        what: "the key".to_owned(),
        column: positions[at],
        data_type: fields[at].data_type().clone(),
    }
}

#[cfg(test)]
mod tests;
