//! Ringway moves Arrow record batches, watermarks, checkpoint barriers and drain
//! markers between subtasks that are pinned to cores, over the cheapest path that
//! exists between them.
//!
//! Reading order: [`element`] (what travels), [`batch`] (what a data element holds),
//! [`edge`] (the path between two subtasks), [`gate`] (several edges into one
//! subtask), [`operator`] (what a user writes), [`task`] and [`worker`] (what runs
//! it), [`job`] (how a job is said).
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]
#![forbid(unsafe_code)]

// What `#[derive(Columnar)]` writes names this crate, within it too.
extern crate self as ringway;

pub mod align;
pub mod batch;
pub mod batcher;
pub mod clock;
pub mod column;
pub mod connect;
pub mod control;
pub mod data_plane;
pub mod edge;
pub mod element;
pub mod error;
pub mod expr;
pub mod gate;
pub mod job;
pub mod limits;
pub mod network;
pub mod operator;
pub mod operators;
pub mod output;
pub mod partition;
pub mod placement;
pub mod task;
pub mod watermark;
pub mod wire;
pub mod worker;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Runs the examples of the pages about operators.
#[cfg(doctest)]
mod operator_pages {
    macro_rules! pages {
        ($($page:ident)*) => {
            $(
                #[doc = include_str!(concat!("../../docs/operators/", stringify!($page), ".md"))]
                mod $page {}
            )*
        };
    }

    pages! {
        async_map boundary broadcast_connect co_process flat_map inspect process project reduce
        triggers window
    }
}

/// Runs the examples of the page on embedding.
#[cfg(doctest)]
#[doc = include_str!("../../docs/EMBEDDING.md")]
struct Embedding;
