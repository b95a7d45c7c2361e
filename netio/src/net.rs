//! Sockets before a driver has them: their options.

mod options;

pub use options::{
    KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, USER_TIMEOUT, set_stream_options,
    unacknowledged_bytes,
};
