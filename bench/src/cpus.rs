//! The two CPUs that a measurement runs on.

use std::fmt;
use std::str::FromStr;

use ringway::placement::{AllowedCpus, CpuId};

use crate::error::BenchError;

/// The CPUs of the two parties of a case: who produces, and who consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPair {
    /// Of the producer, and of whatever runs alone.
    pub first: CpuId,
    /// Of the consumer.
    pub second: CpuId,
}

impl CpuPair {
    /// `requested`, or the first two CPUs that the process may use; one twice where there is
    /// only one.
    ///
    /// # Errors
    /// When a CPU was asked for that the process may not use: choose among those named.
    pub fn choose(requested: Option<Self>) -> Result<Self, BenchError> {
        let allowed = AllowedCpus::of_process()?;
        let cpus = allowed.cpus();
        let pair = requested.unwrap_or(Self {
            first: cpus[0],
            second: *cpus.get(1).unwrap_or(&cpus[0]),
        });
        for cpu in [pair.first, pair.second] {
            if !allowed.contains(cpu) {
                return Err(BenchError::usage(format!(
                    "--cpus: CPU {cpu} is not allowed for this process; allowed: {allowed}"
                )));
            }
        }
        Ok(pair)
    }

    /// Whether both parties run on one CPU.
    pub(crate) fn is_one(self) -> bool {
        self.first == self.second
    }
}

impl FromStr for CpuPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |part: &str| part.trim().parse().ok().map(CpuId);
        let pair = text.split_once(',').and_then(|(first, second)| {
            Some(Self {
                first: parse(first)?,
                second: parse(second)?,
            })
        });
        pair.ok_or_else(|| format!("cannot read {text:?} as two CPUs: write them as 0,1"))
    }
}

impl fmt::Display for CpuPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.first, self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_are_written_with_a_comma() {
        let pair = CpuPair {
            first: CpuId(2),
            second: CpuId(7),
        };
        assert_eq!("2,7".parse(), Ok(pair));
        assert_eq!(pair.to_string(), "2,7");
        for wrong in ["2", "2,", "a,b", ""] {
            assert!(wrong.parse::<CpuPair>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_refused() {
        let far = CpuPair {
            first: CpuId(1_000_000),
            second: CpuId(0),
        };
        let error = CpuPair::choose(Some(far)).unwrap_err();
        assert!(error.is_usage(), "{error}");
        assert!(CpuPair::choose(None).is_ok());
    }
}
