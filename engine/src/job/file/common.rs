//! The keys that all sources, or all operators and sinks, have in common.

use serde::Deserialize;

use crate::connect::{SplitOrder, WatermarkOptions};
use crate::job::StreamEdge;

use super::options::{Capacity, Subtasks, TransportName};
use super::units::{Size, Span};

/// The keys that every source may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceCommon {
    pub(super) connector: String,
    pub(super) uid: Option<String>,
    pub(super) parallelism: Option<Subtasks>,
    pub(super) process: Option<u16>,
    pub(super) watermark: Option<Watermark>,
}

/// The keys that every operator and sink may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumerCommon {
    pub(super) uid: Option<String>,
    pub(super) parallelism: Option<Subtasks>,
    pub(super) process: Option<u16>,
    pub(super) exchange: Option<ExchangeName>,
    pub(super) key: Option<Names>,
    pub(super) edge_capacity: Option<Capacity>,
    pub(super) edge_bytes_max: Option<Size>,
    pub(super) transport: Option<TransportName>,
    pub(super) starts_chain: Option<bool>,
}

/// The stream that an operator or sink takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneInput {
    pub(super) input: Names,
}

/// The streams that an operator with two inputs takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TwoInputs {
    pub(super) left: Names,
    pub(super) right: Names,
}

/// How a source makes watermarks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watermark {
    strategy: Strategy,
    out_of_orderness: Option<Span>,
    splits: Option<SplitOrder>,
    idle_after: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    Monotonic,
    Bounded,
}

/// How batches are spread over subtasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExchangeName {
    Auto,
    Forward,
    Rebalance,
    Broadcast,
    Key,
}

/// One name, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings")]
pub(super) enum Names {
    One(String),
    Several(Vec<String>),
}

impl SourceCommon {
    pub(super) const KEYS: [&'static str; 5] =
        ["connector", "uid", "parallelism", "process", "watermark"];
}

impl ConsumerCommon {
    pub(super) const KEYS: [&'static str; 9] = [
        "uid",
        "parallelism",
        "process",
        "exchange",
        "key",
        "edge_capacity",
        "edge_bytes_max",
        "transport",
        "starts_chain",
    ];

    /// Gives an edge of the input the bounds and the transport that are said.
    pub(super) fn limit(&self, edge: &mut StreamEdge) {
        edge.capacity_elements = self.edge_capacity.map(Capacity::elements);
        edge.bytes_max = self.edge_bytes_max.map(Size::bytes);
        edge.transport = self.transport.map(|name| name.0);
    }
}

impl Watermark {
    /// Whether it says how splits are to each other.
    pub(super) const fn has_splits(&self) -> bool {
        self.splits.is_some()
    }

    /// The same as the connectors say it.
    ///
    /// # Errors
    /// The key that does not go with the strategy, and why.
    pub(super) fn options(&self) -> Result<WatermarkOptions, (&'static str, &'static str)> {
        let out_of_orderness_ms = match (self.strategy, self.out_of_orderness) {
            (Strategy::Bounded, Some(bound)) => bound.ms(),
            (Strategy::Monotonic, None) => 0,
            (Strategy::Bounded, None) => {
                return Err((
                    "strategy",
                    "\"bounded\" needs `out_of_orderness`: how far behind a row may be and not \
                     be late, such as \"5s\"",
                ));
            }
            (Strategy::Monotonic, Some(_)) => {
                return Err((
                    "out_of_orderness",
                    "goes with the strategy \"bounded\"; with \"monotonic\" event times never go \
                     back",
                ));
            }
        };
        Ok(WatermarkOptions {
            out_of_orderness_ms,
            splits: self.splits.unwrap_or_default(),
            idle_after_ms: self.idle_after.map(Span::ms),
        })
    }
}

impl Names {
    /// The names, in their order.
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }

    /// The key of the name number `index`, under that of all of them.
    pub(super) fn key_of(&self, index: usize) -> Vec<String> {
        match self {
            Self::One(_) => Vec::new(),
            Self::Several(_) => vec![index.to_string()],
        }
    }
}
