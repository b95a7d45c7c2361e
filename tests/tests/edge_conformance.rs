//! Everything that calls itself an edge keeps the promises of one.

use std::sync::LazyLock;

use ringway::edge::remote::RemoteOptions;
use ringway_netio::driver::DriverChoice;
use ringway_tests::conformance::subjects::{AwaitedEdge, LocalEdge, RegisteredEdge, RemoteEdge};
use ringway_tests::edge_conformance;

edge_conformance!(local = LocalEdge);
edge_conformance!(registered = RegisteredEdge);
edge_conformance!(awaited = AwaitedEdge(LocalEdge));

static EPOLL: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::default().overtaking();
    RemoteEdge::new("socket over epoll", DriverChoice::Epoll, remote)
});
static EPOLL_V1: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::version_1().overtaking();
    RemoteEdge::new("socket over epoll, version 1", DriverChoice::Epoll, remote)
});

// The best driver that this host allows: io_uring, unless it is denied.
static BEST: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::default().overtaking();
    RemoteEdge::new("socket over the best driver", DriverChoice::Auto, remote)
});
static BEST_V1: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::version_1().overtaking();
    RemoteEdge::new(
        "socket over the best driver, version 1",
        DriverChoice::Auto,
        remote,
    )
});

edge_conformance!(epoll = *EPOLL);
edge_conformance!(epoll_v1 = *EPOLL_V1);
edge_conformance!(best = *BEST);
edge_conformance!(best_v1 = *BEST_V1);
