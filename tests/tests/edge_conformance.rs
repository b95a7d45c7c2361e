//! Everything that calls itself an edge keeps the promises of one.

use ringway_tests::conformance::subjects::{AwaitedEdge, LocalEdge, RegisteredEdge};
use ringway_tests::edge_conformance;

edge_conformance!(local = LocalEdge);
edge_conformance!(registered = RegisteredEdge);
edge_conformance!(awaited = AwaitedEdge(LocalEdge));
