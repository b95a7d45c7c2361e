//! What a process has in memory.

use std::ops::Sub;

use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// Bytes that are resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Resident {
    /// Of memory that the process has for itself.
    pub(super) own_bytes: f64,
    /// Of shared memory, each page divided among all that have mapped it.
    pub(super) shared_bytes: f64,
}

impl Resident {
    /// Of this process, now. The kernel walks over its pages for that: counters that it keeps
    /// would be a few pages late.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(super) fn now() -> Result<Self, BenchError> {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
        Ok(Self {
            own_bytes: field(&rollup, "Anonymous:")?,
            shared_bytes: field(&rollup, "Pss_Shmem:")?,
        })
    }
}

impl Sub for Resident {
    type Output = Self;

    /// What has come since; nothing where it has become less.
    fn sub(self, before: Self) -> Self {
        Self {
            own_bytes: (self.own_bytes - before.own_bytes).max(0.0),
            shared_bytes: (self.shared_bytes - before.shared_bytes).max(0.0),
        }
    }
}

fn field(rollup: &str, name: &str) -> Result<f64, BenchError> {
    let kib = rollup.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
        value.trim().parse::<f64>().ok()
    });
    let kib = kib.ok_or_else(|| {
        BenchError::new(format!(
            "/proc/self/smaps_rollup has no {name} (Linux 5.5 has)"
        ))
    })?;
    Ok(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_written_is_resident() {
        // So much that what other tests of this process give back meanwhile does not hide it.
        const BYTES: usize = 256 << 20;
        let before = Resident::now().unwrap();
        let written = vec![1_u8; BYTES];
        let more = Resident::now().unwrap() - before;
        assert!(written.iter().all(|byte| *byte == 1));
        assert!(more.own_bytes >= 0.5 * BYTES as f64, "{more:?}");
    }
}
