//! Failures that others met with record batches, on every edge.

use ringway_tests::conformance::subjects::{
    AwaitedEdge, BEST, BEST_V1, EPOLL, EPOLL_V1, LocalEdge, RegisteredEdge, SHARED,
};
use ringway_tests::edge_scenarios;

edge_scenarios!(local = LocalEdge);
edge_scenarios!(registered = RegisteredEdge);
edge_scenarios!(awaited = AwaitedEdge(LocalEdge));
edge_scenarios!(epoll = *EPOLL);
edge_scenarios!(epoll_v1 = *EPOLL_V1);
edge_scenarios!(best = *BEST);
edge_scenarios!(best_v1 = *BEST_V1);
edge_scenarios!(shared = *SHARED);
