//! Calls to outside services, off the worker.

mod calls;
mod operator;

pub use operator::AsyncMap;

/// How an [`AsyncMap`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncMapOptions {
    /// Threads of each subtask, so calls at a time. Default: 8.
    pub threads: usize,
    /// Rows that may be under way at most: called, or done and waiting for their turn. Default:
    /// 256.
    pub in_flight_max: usize,
    /// Whether results come out in the order of their rows. Default: yes.
    pub ordered: bool,
}

impl Default for AsyncMapOptions {
    fn default() -> Self {
        Self {
            threads: 8,
            in_flight_max: 256,
            ordered: true,
        }
    }
}

#[cfg(test)]
mod tests;
