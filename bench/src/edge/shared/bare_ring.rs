//! The bare ring with the stores that are the faster ones.

use std::cell::RefCell;

use crate::case::median;
use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::shared::LARGE_BYTES;
use crate::shared::memfd::Copied;

use super::payload::Payloads;
use super::{Carrier, carried};

/// Both ways to copy take part in every run; what counts is the one with the better median so
/// far. The better of each pair of runs would be more than either reaches.
pub(crate) struct BareRing<'a> {
    cpus: CpuPair,
    message_bytes: usize,
    payloads: &'a Payloads,
    past: RefCell<Past>,
}

/// Rates of runs of the same length.
#[derive(Debug, Default)]
struct Past {
    count: u64,
    plain: Vec<f64>,
    streaming: Vec<f64>,
}

impl<'a> BareRing<'a> {
    pub(crate) fn new(cpus: CpuPair, message_bytes: usize, payloads: &'a Payloads) -> Self {
        Self {
            cpus,
            message_bytes,
            payloads,
            past: RefCell::default(),
        }
    }

    /// It moves `count` messages.
    ///
    /// # Errors
    /// When one is lost, doubled or changed, or a process cannot be started or pinned.
    pub(crate) fn run(&self, count: u64) -> Result<Sample, BenchError> {
        let plain = self.copied(Copied::Plain, count)?;
        if self.message_bytes < LARGE_BYTES {
            // What is so small goes through the caches in any case.
            return Ok(plain);
        }
        let streaming = self.copied(Copied::Streaming, count)?;
        let streams = self
            .past
            .borrow_mut()
            .prefers_streaming(count, plain.value, streaming.value);
        Ok(if streams { streaming } else { plain })
    }

    fn copied(&self, copied: Copied, count: u64) -> Result<Sample, BenchError> {
        let carrier = Carrier::Memfd(copied);
        carried(self.cpus, carrier, self.message_bytes, self.payloads, count)
    }
}

impl Past {
    /// Whether streaming was faster up to now, these runs included.
    fn prefers_streaming(&mut self, count: u64, plain: f64, streaming: f64) -> bool {
        if count != self.count {
            *self = Self {
                count,
                ..Self::default()
            };
        }
        self.plain.push(plain);
        self.streaming.push(streaming);
        median(&self.streaming) > median(&self.plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lucky_run_does_not_change_which_stores_count() {
        let mut past = Past::default();
        assert!(!past.prefers_streaming(100, 5.0, 4.0));
        assert!(!past.prefers_streaming(100, 5.0, 4.5));
        assert!(!past.prefers_streaming(100, 4.9, 9.0));
        assert!(past.prefers_streaming(100, 1.0, 9.0));
        // Runs of another length are another matter.
        assert!(!past.prefers_streaming(200, 5.0, 4.0));
    }
}
