//! Arrow IPC files and streams.

pub(super) mod pieces;
pub(super) mod sink;
pub(super) mod source;
