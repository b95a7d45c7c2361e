//! What an edge is opened with.

use std::fmt;

use crate::limits::{EDGE_BYTES_MAX, EDGE_CAPACITY_ELEMENTS};

/// What an edge is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeOptions {
    /// How errors, warnings and metrics call the edge, such as `parse[0] -> window[1]`.
    pub name: String,
    /// Data elements in flight at most. Default: 1024.
    pub capacity_elements: usize,
    /// Bytes of data in flight at most. A single larger batch passes when it is alone.
    /// Default: 64 MiB.
    pub bytes_max: usize,
}

impl EdgeOptions {
    /// The defaults, under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            capacity_elements: EDGE_CAPACITY_ELEMENTS,
            bytes_max: EDGE_BYTES_MAX,
        }
    }

    /// Data elements in flight at most, at least 1.
    pub fn capacity(mut self, elements: usize) -> Self {
        self.capacity_elements = elements.max(1);
        self
    }

    /// Bytes of data in flight at most.
    pub fn bytes(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }
}

/// What carries an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A lock-free ring in this process.
    Local,
    /// Memory that is shared with another process of this host.
    Shared,
    /// A socket to another process.
    Socket,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Shared => "shared",
            Self::Socket => "socket",
        })
    }
}
