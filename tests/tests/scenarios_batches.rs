//! Failures that others met with record batches, on every edge.

use ringway_tests::conformance::subjects::{AwaitedEdge, LocalEdge, RegisteredEdge};
use ringway_tests::edge_scenarios;

edge_scenarios!(local = LocalEdge);
edge_scenarios!(registered = RegisteredEdge);
edge_scenarios!(awaited = AwaitedEdge(LocalEdge));
