//! The CPU quota of the process's cgroup.

use std::fs;
use std::path::{Path, PathBuf};

/// CPUs that the cgroup's quota pays for, rounded up; `None` where there is none.
pub(super) fn cpu_quota() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    quota_under(Path::new("/sys/fs/cgroup"), &groups)
}

/// The least quota of the groups in `groups` (as `/proc/self/cgroup` has them) and of those
/// above them, mounted under `root`.
fn quota_under(root: &Path, groups: &str) -> Option<usize> {
    let quotas = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let least = |root: PathBuf, read: fn(&Path) -> Option<f64>| {
            upwards(&root, path)
                .filter_map(|group| read(&group))
                .reduce(f64::min)
        };
        if controllers.is_empty() {
            return least(root.to_owned(), version_2)
                .or_else(|| least(root.join("unified"), version_2));
        }
        let has_cpu = controllers.split(',').any(|name| name == "cpu");
        let mounts = [controllers, "cpu"].map(|name| root.join(name));
        mounts
            .into_iter()
            .filter(|_| has_cpu)
            .find_map(|mount| least(mount, version_1))
    });
    let cpus = quotas.reduce(f64::min)?;
    // A quota beyond any machine is none.
    (cpus.is_finite() && cpus < 1e6).then(|| (cpus.ceil() as usize).max(1))
}

/// The group and those above it. A container may see a path that exists only outside of it;
/// its own group is then the root.
fn upwards(root: &Path, path: &str) -> impl Iterator<Item = PathBuf> {
    let group = PathBuf::from(path.trim_start_matches('/'));
    let levels: Vec<PathBuf> = group.ancestors().map(|level| root.join(level)).collect();
    levels.into_iter()
}

fn version_2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

fn version_1(group: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    ratio(quota.trim(), period.trim())
}

/// `None` for no quota: `max` in version 2, -1 in version 1.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.parse::<u64>().ok()? as f64;
    let period = period.parse::<u64>().ok().filter(|period| *period > 0)? as f64;
    Some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_quota_on_the_way_up_counts_and_is_rounded_up() {
        let root = tree(&[
            ("a/b/cpu.max", "max 100000\n"),
            ("a/cpu.max", "150000 100000\n"),
            ("cpu.max", "400000 100000\n"),
        ]);
        assert_eq!(quota_under(root.path(), "0::/a/b\n"), Some(2));
        assert_eq!(quota_under(root.path(), "0::/not/seen/here\n"), Some(4));
    }

    #[test]
    fn a_quota_of_the_first_version_counts_and_minus_one_is_none() {
        let root = tree(&[
            ("cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n"),
            ("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        let groups = |path| format!("7:memory:/x\n4:cpu,cpuacct:{path}\n0::/\n");
        assert_eq!(quota_under(root.path(), &groups("/job")), Some(1));
        assert_eq!(quota_under(root.path(), &groups("/other")), None);
    }

    #[test]
    fn what_cannot_be_read_is_no_quota() {
        let root = tree(&[("cpu.max", "a lot\n")]);
        for groups in ["0::/\n", "", "nonsense\n", "4:cpu\n"] {
            assert_eq!(quota_under(root.path(), groups), None);
        }
    }
}
