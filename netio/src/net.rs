//! Sockets before a driver has them: names and addresses, connecting, binding, options.
//!
//! Who may call what: [`Connecting`] and [`Resolving`] never block, and may be polled by a
//! worker. [`connect`] and [`bind`] block, and are for a thread that may: the one that starts a
//! job, or one of its own. Nothing here reads a clock; time is an argument, since an instant of
//! the caller's choice.

mod bind;
mod connect;
mod connect_error;
mod host_port;
mod options;
mod resolve;
mod tcp;

pub use bind::{BindError, Bound, DATA_BIND_HOST_VARIABLE, bind, data_bind_host};
pub use connect::{ConnectOptions, Connecting, connect};
pub use connect_error::{Attempt, ConnectError};
pub use host_port::{HostPort, InvalidHostPort};
pub use options::{
    KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, REPEAT_MAX, TEND_EVERY, USER_TIMEOUT,
    set_stream_options, tend_stream, unacknowledged_bytes,
};
pub use resolve::Resolving;
