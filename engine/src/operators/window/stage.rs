//! Results of windows on their way out, gathered into batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::assigner::Window;
use super::panes::Panes;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operators::aggregate::Accumulators;

/// One window whose results are to be emitted, for some or all of its keys.
pub(super) struct Firing {
    window: Window,
    keys: Vec<u32>,
    staged: usize,
}

impl Firing {
    /// Emits `keys` of `window`, in that order.
    pub(super) const fn of_keys(window: Window, keys: Vec<u32>) -> Self {
        Self {
            window,
            keys,
            staged: 0,
        }
    }

    /// Emits all keys of `window`, in the order in which its panes, earliest first, saw them.
    pub(super) fn of_window(window: Window, panes: &Panes) -> Self {
        let mut live = panes.of_window(window);
        let mut keys = live.next().map_or_else(Vec::new, |pane| pane.keys.clone());
        let mut seen: Vec<bool> = Vec::new();
        for pane in live {
            if seen.is_empty() {
                seen.resize(panes.interner.bound(), false);
                keys.iter().for_each(|key| seen[*key as usize] = true);
            }
            let is_new = |key: &&u32| !std::mem::replace(&mut seen[**key as usize], true);
            keys.extend(pane.keys.iter().filter(is_new));
        }
        Self::of_keys(window, keys)
    }

    /// Whether all of it is staged.
    pub(super) const fn is_staged(&self) -> bool {
        self.staged == self.keys.len()
    }
}

/// A batch of results in the making. It refers to the state of the panes, which must not
/// change before it is built.
pub(super) struct Stage {
    schema: SchemaRef,
    /// How many rows each window has.
    windows: Vec<(Window, usize)>,
    keys: Vec<u32>,
    /// Slots of the panes where each window is one pane, else of `merged`.
    slots: Vec<u32>,
    merged: Option<Accumulators>,
}

impl Stage {
    /// Nothing staged, for results of `schema`.
    pub(super) fn new(schema: SchemaRef, panes: &Panes, one_pane_a_window: bool) -> Self {
        Self {
            schema,
            windows: Vec::new(),
            keys: Vec::new(),
            slots: Vec::new(),
            merged: (!one_pane_a_window).then(|| panes.accumulators.empty_like()),
        }
    }

    /// Whether nothing is staged.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a whole batch is staged.
    pub(super) fn is_full(&self) -> bool {
        self.keys.len() >= BATCH_ROWS
    }

    /// Stages as much of `firing` as there is room for.
    pub(super) fn add(&mut self, firing: &mut Firing, panes: &Panes) {
        let room = BATCH_ROWS - self.keys.len();
        let upto = firing.keys.len().min(firing.staged + room);
        let keys = &firing.keys[firing.staged..upto];
        firing.staged = upto;
        self.windows.push((firing.window, keys.len()));
        let base = self.keys.len() as u32;
        self.keys.extend_from_slice(keys);
        let Some(merged) = &mut self.merged else {
            let pane = panes.of_window(firing.window).next();
            let pane = pane.expect("a window that fires has a pane");
            let slot = |key: &u32| pane.get(*key).expect("its pane has the key");
            self.slots.extend(keys.iter().map(slot));
            return;
        };
        merged.resize(self.keys.len());
        self.slots.extend(base..self.keys.len() as u32);
        for pane in panes.of_window(firing.window) {
            let (into, from): (Vec<u32>, Vec<u32>) = (base..)
                .zip(keys)
                .filter_map(|(into, key)| Some((into, pane.get(*key)?)))
                .unzip();
            merged.merge(&into, &panes.accumulators, &from);
        }
    }

    /// The batch that was staged; nothing is staged after it.
    pub(super) fn build(&mut self, panes: &Panes) -> Result<RecordBatch, OperatorError> {
        let mut columns = vec![
            self.window_column(Window::last),
            self.window_column(Window::start),
            self.window_column(Window::end),
        ];
        columns.extend(panes.interner.columns(&self.keys)?);
        let accumulators = self.merged.as_ref().unwrap_or(&panes.accumulators);
        columns.extend(accumulators.finish(&self.slots)?);
        self.windows.clear();
        self.keys.clear();
        self.slots.clear();
        if let Some(merged) = &mut self.merged {
            merged.resize(0);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn window_column(&self, of: fn(Window) -> i64) -> ArrayRef {
        let mut values = Vec::with_capacity(self.keys.len());
        for (window, rows) in &self.windows {
            values.resize(values.len() + rows, of(*window));
        }
        Arc::new(Int64Array::from(values))
    }
}
