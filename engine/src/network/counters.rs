//! What has gone through a bridge.

use ringway_netio::driver::DriverKind;

use crate::edge::remote::RemoteStats;
use crate::edge::{EdgeMetrics, Transport};

/// What has gone through a bridge, as its half knows it. Where the bridge is a ring within this
/// process, what only a connection has is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// What carries it.
    pub transport: Transport,
    /// What moves the bytes of its connection; nothing before that has begun.
    pub driver: Option<DriverKind>,
    /// Rows that may be sent now (sink).
    pub credit_rows: u32,
    /// Nanoseconds for which elements waited for room (sink).
    pub blocked_ns: u64,
    /// How often an element had to wait, for room or for credit (sink).
    pub saturations: u64,
    /// Grants that have come (sink).
    pub grants: u64,
    /// Bytes on the wire, of the direction of the elements.
    pub bytes: u64,
    /// Frames of data.
    pub frames: u64,
    /// Bytes that this end has copied in user space; what the kernel copies is not among them.
    pub copied_bytes: u64,
}

impl Counters {
    pub(super) fn of(
        transport: Transport,
        metrics: Option<EdgeMetrics>,
        stats: Option<RemoteStats>,
    ) -> Self {
        let (metrics, stats) = (metrics.unwrap_or_default(), stats.unwrap_or_default());
        Self {
            transport,
            driver: stats.driver,
            credit_rows: stats.credit_rows,
            blocked_ns: u64::try_from(metrics.blocked.as_nanos()).unwrap_or(u64::MAX),
            saturations: metrics.blocked_times + stats.saturations,
            grants: stats.grants,
            bytes: stats.wire_bytes,
            frames: stats.frames,
            copied_bytes: stats.copied_bytes,
        }
    }
}
