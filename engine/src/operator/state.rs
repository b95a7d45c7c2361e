//! How state leaves an operator at a checkpoint and comes back at a restore.

use crate::error::OperatorError;

/// Takes the state of one subtask for one checkpoint.
pub trait StateWriter {
    /// Writes `value` under `key` of key group `key_group` in the table `table`.
    ///
    /// # Errors
    /// When the state cannot be stored; the checkpoint is abandoned.
    fn put_keyed(
        &mut self,
        table: &str,
        key_group: u32,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), OperatorError>;

    /// Writes state that belongs to the subtask and not to a key, such as a read position.
    ///
    /// # Errors
    /// When the state cannot be stored; the checkpoint is abandoned.
    fn put_operator(&mut self, table: &str, value: &[u8]) -> Result<(), OperatorError>;
}

/// What a reader calls with the key and value of each entry.
pub type EachKeyed<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), OperatorError> + 'a;

/// What a reader calls with each value of operator state.
pub type EachValue<'a> = dyn FnMut(&[u8]) -> Result<(), OperatorError> + 'a;

/// Gives back the state of one subtask, of its own key groups only.
pub trait StateReader {
    /// Calls `each` with the key and value of every entry of `table`.
    ///
    /// # Errors
    /// When the state cannot be read, or `each` fails.
    fn for_each_keyed(
        &mut self,
        table: &str,
        each: &mut EachKeyed<'_>,
    ) -> Result<(), OperatorError>;

    /// Calls `each` with every value that some subtask wrote as operator state of `table`.
    ///
    /// # Errors
    /// When the state cannot be read, or `each` fails.
    fn for_each_operator(
        &mut self,
        table: &str,
        each: &mut EachValue<'_>,
    ) -> Result<(), OperatorError>;
}
