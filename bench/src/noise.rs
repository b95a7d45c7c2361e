//! Whether a figure can be trusted: what else the machine did meanwhile.

use std::time::Instant;

use crate::cpus::CpuPair;
use crate::pinned::ended_children_cpu_s;
use crate::spent::Spent;

/// Of the time of the two CPUs, more than this taken by others is noise.
const FOREIGN_SHARE_MAX: f64 = 0.05;
/// Of the time of the two CPUs, more than this taken by the hypervisor is noise.
const STOLEN_SHARE_MAX: f64 = 0.02;
/// Runs that lie further apart than this, as a share of their median, are noise.
const SPREAD_MAX: f64 = 0.25;
/// The kernel counts in ticks of a hundredth of a second: shorter times say nothing.
const OBSERVED_S_MIN: f64 = 0.2;
const TICKS_PER_S: f64 = 100.0;

/// Watches the two CPUs from its making on.
#[derive(Debug)]
pub(crate) struct NoiseWatch {
    cpus: CpuPair,
    began: Instant,
    cpu_s: f64,
    ticks: Option<Ticks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    busy: f64,
    stolen: f64,
}

impl NoiseWatch {
    pub(crate) fn start(cpus: CpuPair) -> Self {
        Self {
            cpus,
            began: Instant::now(),
            cpu_s: own_cpu_s(),
            ticks: read(cpus),
        }
    }

    /// What was wrong with the time since the start.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let wall_s = self.began.elapsed().as_secs_f64();
        let (Some(before), Some(after)) = (self.ticks, read(self.cpus)) else {
            return vec!["/proc/stat can't be read".to_owned()];
        };
        let cpus = if self.cpus.is_one() { 1.0 } else { 2.0 };
        let whole_s = wall_s * cpus;
        if wall_s < OBSERVED_S_MIN {
            return Vec::new();
        }
        let ours_s = own_cpu_s() - self.cpu_s;
        let foreign = ((after.busy - before.busy) / TICKS_PER_S - ours_s) / whole_s;
        let stolen = (after.stolen - before.stolen) / TICKS_PER_S / whole_s;
        let shares = [
            (foreign, FOREIGN_SHARE_MAX, "others took"),
            (stolen, STOLEN_SHARE_MAX, "the hypervisor took"),
        ];
        let beyond = shares.into_iter().filter(|(share, max, _)| share > max);
        beyond
            .map(|(share, _, who)| format!("{who} {:.0} % of the CPUs", share * 100.0))
            .collect()
    }
}

/// Of this process and of those that it has started.
fn own_cpu_s() -> f64 {
    Spent::of_process().cpu_s + ended_children_cpu_s()
}

/// Whether the runs of `who` lie too far apart.
pub(crate) fn spread(who: &str, values: &[f64], median: f64) -> Option<String> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let spread = (most - least) / median;
    (spread > SPREAD_MAX).then(|| format!("runs of {who} lie {:.0} % apart", spread * 100.0))
}

fn read(cpus: CpuPair) -> Option<Ticks> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let first = ticks_of(&text, cpus.first.0)?;
    if cpus.is_one() {
        return Some(first);
    }
    let second = ticks_of(&text, cpus.second.0)?;
    Some(Ticks {
        busy: first.busy + second.busy,
        stolen: first.stolen + second.stolen,
    })
}

/// Of a CPU's line: user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks_of(stat: &str, cpu: usize) -> Option<Ticks> {
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find(|line| line.starts_with(&name))?;
    let numbers: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|number| number.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, stolen, ..] = numbers[..] else {
        return None;
    };
    Some(Ticks {
        busy: user + nice + system + irq + softirq,
        stolen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_cpu_is_found_by_its_whole_number() {
        let stat =
            "cpu  1 1 1 1 1 1 1 1 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\ncpu10 9 9 9 9 9 9 9 9 0 0\n";
        let ticks = ticks_of(stat, 1).unwrap();
        assert_eq!((ticks.busy, ticks.stolen), (19.0, 8.0));
        assert!(ticks_of(stat, 2).is_none());
    }

    #[test]
    fn runs_that_lie_far_apart_are_named() {
        assert!(spread("ours", &[1.0, 1.1], 1.05).is_none());
        assert!(spread("ours", &[1.0, 2.0], 1.5).is_some_and(|why| why.contains("ours")));
    }

    #[test]
    fn a_moment_is_too_short_to_judge() {
        let watch = NoiseWatch::start(CpuPair::choose(None).unwrap());
        assert!(watch.reasons().is_empty());
    }
}
