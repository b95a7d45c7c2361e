//! What others lost, duplicated, stalled or burnt CPU on, as whole jobs in one process.

mod barriers;
mod columnar;
mod control;
mod diamond;
mod idleness;
mod latency;
mod parts;
mod random;
mod tiny;
