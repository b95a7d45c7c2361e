//! Edges by the stream that they belong to.

use std::collections::BTreeMap;
use std::time::Duration;

use ringway::output::EdgeReport;
use ringway::task::TaskReport;

/// The edges of one stream, taken together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamEdges {
    pub(crate) edges: u64,
    pub(crate) rows: u64,
    /// Of the fullest edge.
    pub(crate) high_water: usize,
    /// Of all edges.
    pub(crate) blocked: Duration,
}

/// Every edge of every task.
pub(crate) fn all<'a>(
    tasks: impl IntoIterator<Item = &'a TaskReport>,
) -> impl Iterator<Item = &'a EdgeReport> {
    tasks.into_iter().flat_map(|task| &task.edges)
}

/// The edges of each stream, under the name of the stream.
pub(crate) fn by_stream<'a>(
    tasks: impl IntoIterator<Item = &'a TaskReport>,
) -> BTreeMap<String, StreamEdges> {
    let mut streams: BTreeMap<String, StreamEdges> = BTreeMap::new();
    for edge in all(tasks) {
        let stream = streams.entry(stream_of(&edge.name)).or_default();
        stream.edges += 1;
        stream.rows += edge.metrics.rows;
        stream.high_water = stream.high_water.max(edge.metrics.high_water);
        stream.blocked += edge.metrics.blocked;
    }
    streams
}

/// The name of an edge without the numbers of its subtasks: `a -> b` of `a[0] -> b[1]`.
fn stream_of(edge: &str) -> String {
    let mut name = String::with_capacity(edge.len());
    let mut rest = edge;
    while let Some((before, after)) = rest.split_once('[') {
        name.push_str(before);
        match after.split_once(']') {
            Some((number, behind)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest = behind;
            }
            _ => {
                name.push('[');
                rest = after;
            }
        }
    }
    name.push_str(rest);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_a_stream_have_one_name() {
        assert_eq!(stream_of("a[0] -> b[12]"), "a -> b");
        assert_eq!(stream_of("a[x] -> b"), "a[x] -> b");
    }
}
