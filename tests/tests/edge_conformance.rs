//! Everything that calls itself an edge keeps the promises of one.

use ringway_tests::conformance::subjects::{
    AwaitedEdge, BEST, BEST_V1, EPOLL, EPOLL_V1, LocalEdge, RegisteredEdge, SHARED, SHARED_COPIED,
};
use ringway_tests::edge_conformance;

edge_conformance!(local = LocalEdge);
edge_conformance!(registered = RegisteredEdge);
edge_conformance!(awaited = AwaitedEdge(LocalEdge));
edge_conformance!(epoll = *EPOLL);
edge_conformance!(epoll_v1 = *EPOLL_V1);
edge_conformance!(best = *BEST);
edge_conformance!(best_v1 = *BEST_V1);
edge_conformance!(shared = *SHARED);
edge_conformance!(shared_copied = *SHARED_COPIED);
edge_conformance!(shared_awaited = AwaitedEdge(SHARED.clone()));
