//! How much memory there is for a job.

use std::fs::read_to_string;
use std::path::Path;

use ringway::job::file::Size;

/// Where cgroups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What edges may hold where neither the machine nor a cgroup says how much memory there is.
const MEMORY_MAX_BYTES: u64 = 4 << 30;

/// Bytes that the edges of a job may hold together if it does not say: half of the memory of
/// the machine, or of a cgroup where that has less, for state and buffers need some too. So
/// many processes of the job have equal parts of it.
pub(crate) fn default_memory_max(processes: usize) -> Size {
    let machine = read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total_bytes(&text));
    let smallest = machine.into_iter().chain(cgroup_bytes()).min();
    let bytes = smallest.map_or(MEMORY_MAX_BYTES, |bytes| bytes / 2);
    let bytes = bytes / processes.max(1) as u64;
    Size::of_bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// The memory of the machine, out of the text of `/proc/meminfo`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The least that the cgroups of this process allow, of those that allow no more than so much.
fn cgroup_bytes() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().flat_map(|line| {
        let (file, root, group) = limit_of(line)?;
        let folder = Path::new(root).join(group.trim_start_matches('/'));
        let folders = folder.ancestors().take_while(|at| at.starts_with(root));
        folders
            .filter_map(|at| read_to_string(at.join(file)).ok()?.trim().parse().ok())
            .min()
    });
    limits.min()
}

/// The file with the limit, the folder where the hierarchy begins, and the group, out of a
/// line of `/proc/self/cgroup` of version 2, or of the memory controller of version 1.
fn limit_of(line: &str) -> Option<(&'static str, &'static str, &str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    match controllers {
        "" => Some(("memory.max", CGROUPS, group)),
        _ if controllers.split(',').any(|name| name == "memory") => {
            Some(("memory.limit_in_bytes", "/sys/fs/cgroup/memory", group))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read_in_kib() {
        let text = "MemTotal:       24555840 kB\nMemFree:  1 kB\n";
        assert_eq!(total_bytes(text), Some(24_555_840 << 10));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn both_versions_of_cgroups_are_known() {
        let (file, _, group) = limit_of("0::/user.slice/a:b").unwrap();
        assert_eq!((file, group), ("memory.max", "/user.slice/a:b"));
        let (file, _, group) = limit_of("4:memory,hugetlb:/pods").unwrap();
        assert_eq!((file, group), ("memory.limit_in_bytes", "/pods"));
        assert_eq!(limit_of("7:cpu,cpuacct:/pods"), None);
    }
}
