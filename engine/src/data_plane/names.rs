//! The names under which an endpoint is found.

use super::ListenOptions;

/// All keys of one endpoint: one port, several hosts, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    hosts: Vec<String>,
    port: u16,
    is_wildcard: bool,
}

impl Names {
    pub(super) fn new(options: &ListenOptions, port: u16) -> Self {
        let bind_host = normal(&options.bind_host);
        let is_wildcard = bind_host == "0.0.0.0" || bind_host == "::";
        let mut hosts = vec![bind_host];
        hosts.extend(options.advertised_hosts.iter().map(|host| normal(host)));
        if is_wildcard {
            hosts.extend(["127.0.0.1", "::1", "localhost"].map(String::from));
        }
        let mut seen = Vec::with_capacity(hosts.len());
        hosts.retain(|host| {
            let is_new = !seen.contains(host);
            if is_new {
                seen.push(host.clone());
            }
            is_new
        });
        Self {
            hosts,
            port,
            is_wildcard,
        }
    }

    /// Every host, the bind host first.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn contains(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own == host)
    }

    /// The name that this has in common with another endpoint, if the two cannot be told
    /// apart. A wildcard takes its port on every address of the host.
    pub(super) fn clash(&self, other: &Names) -> Option<String> {
        if self.port != other.port {
            return None;
        }
        let shared = self.hosts.iter().find(|host| other.contains(host));
        match shared {
            Some(host) => Some(host.clone()),
            None if self.is_wildcard || other.is_wildcard => Some(self.hosts[0].clone()),
            None => None,
        }
    }
}

/// A host as the registry writes it.
pub(super) fn normal(host: &str) -> String {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host).to_ascii_lowercase()
}

/// Host and port as errors and edge names write them.
pub(super) fn display(host: &str, port: u16) -> String {
    let host = normal(host);
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bind: &str, advertised: &[&str], port: u16) -> Names {
        let options = ListenOptions::new(bind, port);
        let options = advertised
            .iter()
            .fold(options, |options, &host| options.advertised(host));
        Names::new(&options, port)
    }

    #[test]
    fn a_wildcard_is_found_on_loopback_and_every_host_once() {
        let all = names("0.0.0.0", &["Worker-3", "localhost", "worker-3"], 1);
        assert_eq!(
            all.hosts(),
            ["0.0.0.0", "worker-3", "localhost", "127.0.0.1", "::1"]
        );
        assert_eq!(names("127.0.0.1", &[], 1).hosts(), ["127.0.0.1"]);
    }

    #[test]
    fn endpoints_clash_on_a_shared_name_or_a_wildcard_at_one_port_only() {
        let wildcard = names("::", &[], 1);
        assert_eq!(
            names("10.0.0.1", &[], 1).clash(&wildcard),
            Some("10.0.0.1".into())
        );
        assert_eq!(names("10.0.0.1", &[], 2).clash(&wildcard), None);
        let first = names("10.0.0.1", &["worker"], 1);
        assert_eq!(names("10.0.0.2", &[], 1).clash(&first), None);
        assert_eq!(
            names("10.0.0.2", &["worker"], 1).clash(&first),
            Some("worker".into())
        );
    }

    #[test]
    fn an_ipv6_address_is_shown_in_brackets() {
        assert_eq!(display("::1", 80), "[::1]:80");
        assert_eq!(display("[::1]", 80), "[::1]:80");
        assert_eq!(display("Worker", 80), "worker:80");
    }
}
