//! The machine that figures come from.

use std::fmt::Write;
use std::fs;

use ringway::placement::AllowedCpus;
use ringway_shm::Bell;
use serde::{Deserialize, Serialize};

use crate::case::Placement;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::line_probe::line_ns;

/// Probes of the distance of the two cores; their median counts.
const PROBES: usize = 5;

/// What a reader must know of the machine to compare figures. What the system does not say is
/// `unknown`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The version of Ringway.
    pub version: String,
    /// The processor, as it names itself.
    pub processor: String,
    /// The CPUs that the process may use.
    pub allowed_cpus: String,
    /// The two that are measured on.
    pub cpus: String,
    /// CPUs that the scheduler leaves alone.
    pub isolated_cpus: String,
    /// The kernel's release.
    pub kernel: String,
    /// How the first CPU's frequency is governed.
    pub governor: String,
    /// What the kernel reads time from.
    pub clock_source: String,
    /// Whether large pages are used without being asked for.
    pub transparent_huge_pages: String,
    /// Memory, in bytes; 0 where it is unknown.
    pub memory_bytes: u64,
    /// Load over the last minute when this was asked.
    pub load: String,
    /// Whether a producer wakes without a fence (the kernel grants `membarrier`).
    pub asymmetric_waking: bool,
    /// A cache line from one core to the other and back, in nanoseconds.
    pub line_ns: f64,
    /// The placement that follows from it.
    pub placement: Placement,
}

impl Host {
    /// Asks the system, and probes the two cores.
    ///
    /// # Errors
    /// When a thread cannot be pinned to them.
    pub fn read(cpus: CpuPair) -> Result<Self, BenchError> {
        let mut probes = Vec::new();
        for _ in 0..PROBES {
            probes.push(line_ns(cpus)?);
        }
        let line_ns = crate::case::median(&probes);
        let first = cpus.first;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: field("/proc/cpuinfo", "model name"),
            allowed_cpus: AllowedCpus::of_process()?.to_string(),
            cpus: cpus.to_string(),
            isolated_cpus: line("/sys/devices/system/cpu/isolated"),
            kernel: line("/proc/sys/kernel/osrelease"),
            governor: line(&format!(
                "/sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"
            )),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled"),
            memory_bytes: memory_bytes(),
            load: line("/proc/loadavg"),
            asymmetric_waking: Bell::thread().is_asymmetric(),
            line_ns,
            placement: if cpus.is_one() {
                Placement::SameCpu
            } else {
                Placement::of_line_ns(line_ns)
            },
        })
    }

    /// The same for people.
    pub(crate) fn text(&self) -> String {
        let placement = self.placement.name();
        let rows = [
            ("ringway", self.version.clone()),
            ("processor", self.processor.clone()),
            ("allowed CPUs", self.allowed_cpus.clone()),
            ("measured on", self.cpus.clone()),
            ("isolated CPUs", self.isolated_cpus.clone()),
            ("kernel", self.kernel.clone()),
            ("governor", self.governor.clone()),
            ("clock source", self.clock_source.clone()),
            (
                "transparent huge pages",
                self.transparent_huge_pages.clone(),
            ),
            ("memory", format!("{} MiB", self.memory_bytes >> 20)),
            ("load", self.load.clone()),
            ("asymmetric waking", self.asymmetric_waking.to_string()),
            ("line", format!("{:.0} ns, {placement}", self.line_ns)),
        ];
        let mut text = String::new();
        for (name, value) in rows {
            writeln!(text, "{name:<23} {value}").expect("text takes text");
        }
        text
    }
}

fn line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_owned());
    match text.trim() {
        "" => "none".to_owned(),
        text => text.to_owned(),
    }
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    });
    found.unwrap_or_else(|| "unknown".to_owned())
}

fn memory_bytes() -> u64 {
    let kib = field("/proc/meminfo", "MemTotal");
    let kib = kib.strip_suffix("kB").map(str::trim);
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
