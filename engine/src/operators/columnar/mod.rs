//! Operators over Arrow record batches. None of them builds rows.
//!
//! Columns are named by position, so that duplicate names do no harm. Batches that pass
//! through keep their schema with its metadata, and a batch without columns keeps its rows.

mod aggregate;
mod deduplicate;
mod filter;
mod function;
mod limit;
mod project;
mod sort;
mod split;
mod top;
mod watermarks;

pub use aggregate::{Aggregate, EmitResults};
pub use deduplicate::{Deduplicate, DeduplicateSpec};
pub use filter::Filter;
pub use function::{BatchFunction, BatchPredicate};
pub use limit::Limit;
pub use project::Project;
pub use sort::{Sort, SortKey, SortSpec};
pub use split::Split;
pub use top::{TopN, TopNSpec};
pub use watermarks::AssignWatermarks;

#[cfg(test)]
pub(crate) mod samples;
