//! What sources put into a checkpoint, and how they read it back.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connect::ConnectError;
use crate::error::OperatorError;
use crate::operator::{StateReader, StateWriter, Subtask};

/// Where the state of sources stands.
const TABLE: &str = "source";

/// The form in which it is written. State of another form is refused.
const FORM: u32 = 1;

/// What one subtask of a source saves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Saved<T> {
    pub(super) form: u32,
    /// Which subtask saved it, from 0.
    pub(crate) index: u32,
    /// How many there were.
    pub(crate) parallelism: u32,
    /// What it saved.
    pub(crate) value: T,
}

impl Saved<Value> {
    /// What was saved, as what it is to be.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<Saved<T>, ConnectError> {
        let value = serde_json::from_value(self.value).map_err(|error| ConnectError::State {
            reason: error.to_string(),
        })?;
        Ok(Saved {
            form: self.form,
            index: self.index,
            parallelism: self.parallelism,
            value,
        })
    }
}

/// Saves `value` for `subtask`.
pub(crate) fn save<T: Serialize>(
    subtask: (u32, u32),
    value: T,
    state: &mut dyn StateWriter,
) -> Result<(), OperatorError> {
    let bytes = serde_json::to_vec(&saved_of(subtask, value))
        .map_err(|error| OperatorError::new(format!("the position cannot be saved: {error}")))?;
    state.put_operator(TABLE, &bytes)
}

/// What the subtask at that place saves.
pub(crate) const fn saved_of<T>((index, parallelism): (u32, u32), value: T) -> Saved<T> {
    Saved {
        form: FORM,
        index,
        parallelism,
        value,
    }
}

/// What the subtasks saved. One that is missing had read all that it was to read.
pub(crate) fn restore<T: DeserializeOwned>(
    state: &mut dyn StateReader,
) -> Result<Vec<Saved<T>>, OperatorError> {
    let mut all: Vec<Saved<T>> = Vec::new();
    state.for_each_operator(TABLE, &mut |bytes| {
        let saved: Saved<T> = serde_json::from_slice(bytes).map_err(|error| not_mine(&error))?;
        if saved.form != FORM {
            return Err(not_mine(&format_args!("its form is {}", saved.form)));
        }
        if saved.index >= saved.parallelism {
            return Err(not_mine(&"it is of a subtask that cannot be"));
        }
        all.push(saved);
        Ok(())
    })?;
    if all
        .iter()
        .any(|saved| saved.parallelism != all[0].parallelism)
    {
        return Err(not_mine(&"it is of several checkpoints"));
    }
    Ok(all)
}

/// A subtask's index, and how many there are.
pub(crate) const fn place_of(subtask: &Subtask) -> (u32, u32) {
    (subtask.index, subtask.parallelism.subtasks())
}

fn not_mine(reason: &dyn std::fmt::Display) -> OperatorError {
    let reason = reason.to_string();
    ConnectError::State { reason }.into()
}
