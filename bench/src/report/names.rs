//! What the names of cases say.
//!
//! A name is a path. Where its last word is a number, that is the x of a line.

/// The path before the last word, and that word, if it is a number.
pub(crate) fn path_and_x(name: &str) -> Option<(&str, f64)> {
    let (path, last) = name.rsplit_once('/')?;
    let x: f64 = last.parse().ok()?;
    (x.is_finite() && x > 0.0).then_some((path, x))
}

/// What the numbers at the end of such a path count.
pub(crate) fn x_label(path: &str) -> &'static str {
    let first = path.split('/').next().unwrap_or_default();
    match first {
        "edge" => "rows in a batch",
        "sizes" => "bytes in a row",
        "load" => "offered, messages/s",
        "scale" | "memory" => "edges",
        _ => "size",
    }
}

/// `latency/row/spin` of `latency/row/spin/p99`.
pub(crate) fn without_percentile(name: &str) -> &str {
    let of_percentile = |last: &str| {
        let digits = last.strip_prefix('p').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match name.rsplit_once('/') {
        Some((path, last)) if of_percentile(last) => path,
        _ => name,
    }
}

/// What is shown together: a subcommand, and of those over several transports or with several
/// kinds of peers each by itself.
pub(crate) fn family(name: &str) -> &str {
    let mut ends = name.match_indices('/').map(|(at, _)| at);
    let (first, second) = (ends.next(), ends.next());
    let by_second = [
        "edge", "latency", "sizes", "load", "scale", "memory", "data", "peers",
    ];
    let word = &name[..first.unwrap_or(name.len())];
    match (by_second.contains(&word), second) {
        (true, Some(end)) => &name[..end],
        (true, None) if first.is_some() => name,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_end_is_the_size() {
        assert_eq!(
            path_and_x("edge/socket/int64/1"),
            Some(("edge/socket/int64", 1.0))
        );
        assert_eq!(path_and_x("scale/socket/shuffle/2x2"), None);
        assert_eq!(path_and_x("edge"), None);
        assert_eq!(without_percentile("latency/row/p999"), "latency/row");
        assert_eq!(without_percentile("latency/row/park"), "latency/row/park");
    }

    #[test]
    fn families_are_subcommands_and_transports() {
        assert_eq!(family("edge/socket/int64/1"), "edge/socket");
        assert_eq!(family("ring/u64/single"), "ring");
        assert_eq!(family("job/q0/2workers"), "job");
        assert_eq!(family("idle"), "idle");
        assert_eq!(family("edge/local"), "edge/local");
    }
}
