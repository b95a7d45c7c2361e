//! Sources that make their rows.

pub(super) mod generator;
mod left;
pub(super) mod nexmark;
mod pace;
mod source;
