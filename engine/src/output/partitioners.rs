//! The ways to spread batches over the subtasks of a consumer.

use std::marker::PhantomData;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use crate::batch::{Payload, Rows};
use crate::column::{ColumnError, KeyColumns, split_by_target};
use crate::error::OperatorError;
use crate::limits::KEY_GROUPS;
use crate::partition::{Parallelism, Rebalance};

use super::Partitioner;

/// Everything to the first edge: for edges that connect subtask to subtask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forward;

impl<B: Payload> Partitioner<B> for Forward {
    fn partition(
        &mut self,
        batch: B,
        _edges: usize,
        give: &mut dyn FnMut(usize, B),
    ) -> Result<(), OperatorError> {
        give(0, batch);
        Ok(())
    }
}

/// Whole batches in turn, beginning with the first edge.
#[derive(Clone, Debug, Default)]
pub struct InTurn {
    turn: Rebalance,
}

impl<B: Payload> Partitioner<B> for InTurn {
    fn partition(
        &mut self,
        batch: B,
        edges: usize,
        give: &mut dyn FnMut(usize, B),
    ) -> Result<(), OperatorError> {
        give(self.turn.next_output(edges), batch);
        Ok(())
    }
}

/// Every batch to every edge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Broadcast;

impl<B: Payload> Partitioner<B> for Broadcast {
    fn partition(
        &mut self,
        batch: B,
        edges: usize,
        give: &mut dyn FnMut(usize, B),
    ) -> Result<(), OperatorError> {
        for edge in 1..edges {
            give(edge, batch.clone());
        }
        give(0, batch);
        Ok(())
    }

    fn is_broadcast(&self) -> bool {
        true
    }
}

/// Rows to the subtask that owns the key group of their key columns.
#[derive(Debug)]
pub struct ByKeyColumns {
    keys: KeyColumns,
}

impl ByKeyColumns {
    /// Keys are these columns of batches of `schema`, by position.
    ///
    /// # Errors
    /// When a column does not exist, or its type cannot be a key.
    pub fn bind(schema: &Schema, columns: &[usize]) -> Result<Self, ColumnError> {
        Ok(Self {
            keys: KeyColumns::bind(schema, columns)?,
        })
    }
}

impl Partitioner<RecordBatch> for ByKeyColumns {
    fn partition(
        &mut self,
        batch: RecordBatch,
        edges: usize,
        give: &mut dyn FnMut(usize, RecordBatch),
    ) -> Result<(), OperatorError> {
        let parallelism = Parallelism::new(u32::try_from(edges).unwrap_or(u32::MAX))?;
        let targets = self.keys.targets(&batch, parallelism)?;
        let parts = split_by_target(&batch, targets, edges)?;
        for (edge, part) in parts.into_iter().enumerate() {
            if let Some(part) = part {
                give(edge, part);
            }
        }
        Ok(())
    }
}

/// Rows to the subtask that owns the key group of a hash of their key.
pub struct ByKeyHash<T, F> {
    hash: F,
    rows: PhantomData<fn(T)>,
}

impl<T, F: FnMut(&T) -> u64> ByKeyHash<T, F> {
    /// `hash` gives the 64-bit FNV-1a hash of a row's key.
    pub fn new(hash: F) -> Self {
        Self {
            hash,
            rows: PhantomData,
        }
    }
}

impl<T, F> Partitioner<Rows<T>> for ByKeyHash<T, F>
where
    T: Clone + Send + 'static,
    F: FnMut(&T) -> u64 + Send,
{
    fn partition(
        &mut self,
        batch: Rows<T>,
        edges: usize,
        give: &mut dyn FnMut(usize, Rows<T>),
    ) -> Result<(), OperatorError> {
        let groups = u64::from(KEY_GROUPS);
        // A quarter more than an even share, so that few parts have to grow.
        let room = (batch.len() / edges.max(1)) * 5 / 4;
        let mut parts: Vec<Rows<T>> = (0..edges).map(|_| Rows::with_capacity(room)).collect();
        for row in batch {
            let group = (self.hash)(&row.value) % groups;
            parts[(group * edges as u64 / groups) as usize].push(row);
        }
        for (edge, part) in parts.into_iter().enumerate() {
            give(edge, part);
        }
        Ok(())
    }
}
