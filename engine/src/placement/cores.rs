//! Which cores a user asks for.

use std::fmt;
use std::str::FromStr;

use rustix::thread::CpuSet;

use super::CpuId;
use super::allowed::ranges;

/// Which cores a user asks for: one worker on each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// All that are allowed, as far as the CPU quota pays for them. The default.
    #[default]
    Auto,
    /// So many workers, round robin over the allowed CPUs. Written as a number.
    Count(usize),
    /// A worker on each of these CPUs. Written with commas and ranges, as `0,2-3`; a single
    /// CPU as a range, `3-3`, because `3` alone is a count.
    List(Vec<CpuId>),
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if !text.contains([',', '-']) {
            let count = text.parse().map(Self::Count);
            return count.map_err(|_| unknown(text));
        }
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = cpu(first).ok_or_else(|| unknown(text))?;
            let last = cpu(last).ok_or_else(|| unknown(text))?;
            if first > last {
                return Err(unknown(text));
            }
            cpus.extend((first..=last).map(CpuId));
        }
        Ok(Self::List(cpus))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Count(workers) => workers.fmt(f),
            Self::List(cpus) => match cpus.as_slice() {
                [only] => write!(f, "{only}-{only}"),
                cpus => f.write_str(&ranges(cpus)),
            },
        }
    }
}

/// A CPU id that a mask can hold, so that a range in a typing error stays small.
fn cpu(text: &str) -> Option<usize> {
    text.parse().ok().filter(|id| *id < CpuSet::MAX_CPU)
}

fn unknown(text: &str) -> String {
    format!(
        "cannot read {text:?} as cores: use auto, a number of workers (4), or a list of CPUs \
         below {} (0,2-3; a single one as 3-3)",
        CpuSet::MAX_CPU
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_as_they_are_shown() {
        for text in ["auto", "4", "0,2-3", "3-3", "0-1"] {
            let cores: Cores = text.parse().unwrap();
            assert_eq!(cores.to_string(), text);
        }
        let list = [CpuId(0), CpuId(2), CpuId(3)].to_vec();
        assert_eq!("0,2-3".parse(), Ok(Cores::List(list)));
    }

    #[test]
    fn what_is_not_cores_is_refused_with_what_would_be() {
        for text in ["", "all", "3-1", "1,", "-1", "0-99999999", "1,x"] {
            let refused = text.parse::<Cores>().unwrap_err();
            assert!(refused.contains("0,2-3"), "{refused}");
        }
    }
}
