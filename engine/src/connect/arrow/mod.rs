//! Arrow IPC files and streams.

pub(super) mod sink;
pub(super) mod source;
