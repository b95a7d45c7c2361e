//! Job files: a job written in TOML, or as the same in JSON.
//!
//! `docs/JOB_FILES.md` says what may stand in one. A file is read into a tree that knows its
//! lines, the tree into structs, and these into a [`Graph`](crate::job::Graph). Schemas are known at every
//! stream on the way, so that whatever does not fit is an error that names line and key before
//! anything runs.

mod claims;
mod common;
mod document;
mod error;
mod inputs;
mod load;
mod names;
mod operators;
mod options;
mod read;
mod sinks;
mod sources;
mod stream;
mod tree;
mod units;
mod wiring;

pub use error::{JobFileError, Place};
pub use load::{Connected, LoadedJob};
pub use options::{JobOptions, Overrides};
pub use tree::Language;
pub use units::{SignedSpan, Size, Span, UnitError};
