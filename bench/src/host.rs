//! The machine that figures come from.

use std::fmt::Write;
use std::fs;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use ringway::placement::{AllowedCpus, CpuId};
use ringway_shm::Bell;
use serde::{Deserialize, Serialize};

use crate::case::Placement;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::line_probe::line_ns;

/// The version of Ringway that this is.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

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
    /// How much of the CPU time since it started the hypervisor gave to others, in percent.
    #[serde(default)]
    pub stolen_percent: f64,
    /// CPUs that the machine has, also those that the process may not use.
    #[serde(default = "unknown")]
    pub online_cpus: String,
    /// CPUs that the kernel's timer leaves alone while one thread runs there.
    #[serde(default = "unknown")]
    pub tickless_cpus: String,
    /// How much CPU time the process's control group may take.
    #[serde(default = "unknown")]
    pub cpu_quota: String,
    /// The caches that the first CPU has, from the nearest on.
    #[serde(default = "unknown")]
    pub caches: String,
    /// Whether two threads may share a core.
    #[serde(default = "unknown")]
    pub smt: String,
    /// Whether the clock may go above its nominal rate.
    #[serde(default = "unknown")]
    pub boost: String,
    /// Whether this is a virtual machine.
    #[serde(default = "unknown")]
    pub virtual_machine: String,
    /// Whether the program was built to be fast.
    #[serde(default = "unknown")]
    pub build: String,
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
            version: VERSION.to_owned(),
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
            stolen_percent: stolen_percent(&text_of("/proc/stat")),
            online_cpus: line("/sys/devices/system/cpu/online"),
            tickless_cpus: line("/sys/devices/system/cpu/nohz_full"),
            cpu_quota: line("/sys/fs/cgroup/cpu.max"),
            caches: caches(first),
            smt: on_or_off(&line("/sys/devices/system/cpu/smt/active")),
            boost: on_or_off(&line("/sys/devices/system/cpu/cpufreq/boost")),
            virtual_machine: virtual_machine(),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
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
        let mut text = String::new();
        for (name, value) in self.rows() {
            writeln!(text, "{name:<23} {value}").expect("text takes text");
        }
        text
    }

    /// Name and value of each, in words.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let placement = self.placement.name();
        let large = &self.transparent_huge_pages;
        vec![
            (
                "ringway",
                format!("{} ({} build)", self.version, self.build),
            ),
            ("processor", self.processor.clone()),
            ("caches", self.caches.clone()),
            ("virtual machine", self.virtual_machine.clone()),
            (
                "stolen since start",
                format!("{:.2} %", self.stolen_percent),
            ),
            ("online CPUs", self.online_cpus.clone()),
            ("allowed CPUs", self.allowed_cpus.clone()),
            ("measured on", self.cpus.clone()),
            ("isolated CPUs", self.isolated_cpus.clone()),
            ("tickless CPUs", self.tickless_cpus.clone()),
            ("CPU quota", self.cpu_quota.clone()),
            ("two threads a core", self.smt.clone()),
            ("boost", self.boost.clone()),
            ("governor", self.governor.clone()),
            ("kernel", self.kernel.clone()),
            ("clock source", self.clock_source.clone()),
            ("transparent huge pages", chosen(large).to_owned()),
            ("memory", format!("{} MiB", self.memory_bytes >> 20)),
            ("load", self.load.clone()),
            ("asymmetric waking", self.asymmetric_waking.to_string()),
            ("line", format!("{:.0} ns, {placement}", self.line_ns)),
        ]
    }
}

/// The time, in UTC as of RFC 3339.
pub(crate) fn now() -> String {
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn text_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|_| unknown());
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
    found.unwrap_or_else(unknown)
}

/// Of a list of choices such as `always [madvise] never`, the one in brackets.
fn chosen(choices: &str) -> &str {
    let inside = choices
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(choices, |(chosen, _)| chosen)
}

fn on_or_off(flag: &str) -> String {
    match flag {
        "1" => "on".to_owned(),
        "0" => "off".to_owned(),
        other => other.to_owned(),
    }
}

/// Of the first line of the kernel's statistics: user, nice, system, idle, iowait, irq, softirq,
/// steal; what guests took is counted among the first two.
fn stolen_percent(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let numbers = line.split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    match (ticks.get(7), ticks.iter().sum::<f64>()) {
        (Some(stolen), all) if all > 0.0 => 100.0 * stolen / all,
        _ => 0.0,
    }
}

fn caches(cpu: CpuId) -> String {
    let mut caches = Vec::new();
    for index in 0.. {
        let of = |what| {
            line(&format!(
                "/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{what}"
            ))
        };
        let (level, size) = (of("level"), of("size"));
        if level == unknown() {
            break;
        }
        let kind = match of("type").as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        caches.push(format!("L{level}{kind} {size}"));
    }
    match caches.is_empty() {
        true => unknown(),
        false => caches.join(", "),
    }
}

fn virtual_machine() -> String {
    let flags = field("/proc/cpuinfo", "flags");
    if flags == unknown() {
        return flags;
    }
    let vendor = line("/sys/class/dmi/id/sys_vendor");
    match (flags.split(' ').any(|flag| flag == "hypervisor"), vendor) {
        (false, _) => "no".to_owned(),
        (true, vendor) if vendor == unknown() => "yes".to_owned(),
        (true, vendor) => format!("yes, of {vendor}"),
    }
}

fn memory_bytes() -> u64 {
    let kib = field("/proc/meminfo", "MemTotal");
    let kib = kib.strip_suffix("kB").map(str::trim);
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hypervisor_took_is_a_share_of_all_time() {
        let stat = "cpu  10 0 10 70 0 0 0 10 99 99\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(stolen_percent(stat), 10.0);
        assert_eq!(stolen_percent(""), 0.0);
    }

    #[test]
    fn the_choice_in_brackets_is_the_one_that_holds() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("unknown"), "unknown");
    }

    #[test]
    fn a_description_by_an_earlier_version_is_still_read() {
        let host = Host::read(CpuPair::choose(None).unwrap()).unwrap();
        let mut value = serde_json::to_value(&host).unwrap();
        let fields = value.as_object_mut().unwrap();
        for later in [
            "caches",
            "smt",
            "stolen_percent",
            "build",
            "virtual_machine",
        ] {
            assert!(fields.remove(later).is_some(), "{later}");
        }
        let earlier: Host = serde_json::from_value(value).unwrap();
        assert_eq!(earlier.caches, "unknown");
        assert_eq!(earlier.kernel, host.kernel);
    }

    #[test]
    fn the_date_is_in_utc() {
        let now = now();
        assert_eq!(now.len(), "2026-01-01T00:00:00Z".len(), "{now}");
        assert!(now.ends_with('Z'), "{now}");
    }
}
