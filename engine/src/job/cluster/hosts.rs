//! Where the processes of a job are.

use std::path::Path;
use std::str::FromStr;

use ringway_netio::net::HostPort;

use crate::control::PROCESSES_MAX;

/// Where the processes of a job are: one address each, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<HostPort>);

impl Hosts {
    /// These, in the order of their numbers.
    ///
    /// # Errors
    /// There are none or too many, or two of them are the same.
    pub fn new(hosts: Vec<HostPort>) -> Result<Self, String> {
        if !(1..=PROCESSES_MAX).contains(&hosts.len()) {
            let found = hosts.len();
            return Err(format!(
                "a job runs in 1 to {PROCESSES_MAX} processes: there are {found} hosts"
            ));
        }
        for (index, host) in hosts.iter().enumerate() {
            if host.port != 0 && hosts[..index].contains(host) {
                return Err(format!(
                    "{host} is there twice: give each process a port of its own"
                ));
            }
        }
        Ok(Self(hosts))
    }

    /// Those in `text`: a list with commas, or the name of a file with one `HOST:PORT` a line,
    /// in which empty lines and those that begin with `#` do not count.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is no `HOST:PORT`.
    pub fn read(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        if !path.is_file() && (text.contains(',') || text.parse::<HostPort>().is_ok()) {
            return text.parse();
        }
        let lines = std::fs::read_to_string(path)
            .map_err(|error| format!("the file of hosts {text} cannot be read: {error}"))?;
        let mut hosts = Vec::new();
        for (number, line) in (1..).zip(lines.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let host: HostPort = line
                .parse()
                .map_err(|error| format!("{text}, line {number}: {error}"))?;
            hosts.push(host);
        }
        Self::new(hosts).map_err(|error| format!("{text}: {error}"))
    }

    /// How many processes there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Where process `process` is.
    ///
    /// # Panics
    /// When there is no such process.
    pub fn of(&self, process: usize) -> &HostPort {
        &self.0[process]
    }

    /// How many processes there are on the host that has most: they share its memory.
    pub fn most_on_one_host(&self) -> usize {
        let same = |one: &HostPort| self.0.iter().filter(|host| host.host == one.host).count();
        self.0.iter().map(same).max().unwrap_or(1)
    }

    /// The process, for people: its number and its address.
    pub(super) fn name(&self, process: usize) -> String {
        match self.0.get(process) {
            Some(host) if host.port != 0 => format!("process {process} ({host})"),
            _ => format!("process {process}"),
        }
    }
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hosts = text.split(',').map(|host| host.trim().parse::<HostPort>());
        let hosts: Result<Vec<_>, _> = hosts.collect();
        Self::new(hosts.map_err(|error| error.to_string())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_a_list_or_a_file_with_one_a_line() {
        let list = Hosts::read("a:1, [::1]:2,b:0,b:0").unwrap();
        assert_eq!((list.count(), list.most_on_one_host()), (4, 2));
        assert_eq!(list.name(1), "process 1 ([::1]:2)");
        assert_eq!(list.name(2), "process 2");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts,txt");
        std::fs::write(&path, "# two\n\n a:1\nb:2\n").unwrap();
        let file = Hosts::read(path.to_str().unwrap()).unwrap();
        assert_eq!(file, "a:1,b:2".parse().unwrap());
    }

    #[test]
    fn what_is_wrong_with_hosts_is_said_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        std::fs::write(&path, "a:1\nb\n").unwrap();
        for (text, words) in [
            (path.to_str().unwrap(), "line 2"),
            ("a:1,a:1", "twice"),
            ("a:1,b", "no port"),
            ("nowhere.txt", "cannot be read"),
        ] {
            let error = Hosts::read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
