//! The operators that come with Ringway: typed ones over [`Rows`](crate::batch::Rows),
//! columnar ones over Arrow record batches, windows in both forms.
//!
//! All of them keep these promises:
//! - a watermark is passed on after everything it made the operator emit;
//! - an idle watermark is passed on and fires nothing;
//! - no row is dropped in silence: a row that does not stay on the main output is filtered
//!   on request, goes to a side output, or is counted;
//! - a call that would fill the output stops there and goes on in `resume`;
//! - an empty batch is not emitted.

mod aggregate;
pub mod async_map;
mod boundary;
pub mod columnar;
mod error;
mod gather;
pub mod join;
mod late;
mod numbers;
pub mod rows;
mod schema;
mod sides;
pub mod state;
mod top;
mod watermarks;
pub mod window;

pub use aggregate::{AggregateKind, AggregateSpec};
pub use boundary::{ColumnsToRows, RowsToColumns};
pub use error::SpecError;
pub use numbers::{Ordered, Summand};
pub use sides::{ToLeft, ToRight};

#[cfg(test)]
pub(crate) mod testing;
