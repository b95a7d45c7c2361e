//! How much the edges of a job may hold.

use crate::job::graph::Graph;
use crate::limits::{EDGE_BYTES_MAX, EDGE_BYTES_MIN, OUTBOX_BYTES_MAX};

use super::{ChainPlan, LinkPlan, PlanError, PlanOptions};

/// Gives edges that do not say a bound their share of the job's memory, and refuses what does
/// not fit. Returns what the process needs that needs most; an edge between two processes
/// counts in both.
pub(super) fn bound(
    graph: &Graph,
    chains: &[ChainPlan],
    links: &mut [LinkPlan],
    options: &PlanOptions,
    warnings: &mut Vec<String>,
) -> Result<u64, PlanError> {
    let edges: Vec<Vec<usize>> = links
        .iter()
        .map(|link| edges_in(link, chains, options.processes))
        .collect();
    let outboxes = |process: usize| {
        let tasks = chains.iter().flat_map(|chain| &chain.processes);
        tasks.filter(|of| **of == process).count() as u64 * OUTBOX_BYTES_MAX as u64
    };
    let need = |links: &[LinkPlan], process: usize| {
        let of_edges = links.iter().zip(&edges);
        let of_edges = of_edges.map(|(link, edges)| edges[process] as u64 * link.bytes_max as u64);
        outboxes(process) + of_edges.sum::<u64>()
    };
    let open = |process: usize| {
        let open = links.iter().zip(&edges).filter(|(l, _)| l.bytes_max == 0);
        open.map(|(_, edges)| edges[process]).sum::<usize>()
    };
    let shares = (0..options.processes).filter_map(|process| {
        let left = options
            .memory_max_bytes
            .saturating_sub(need(links, process));
        let open = open(process);
        (open > 0).then(|| (left / open as u64, open))
    });
    if let Some((share, open)) = shares.min() {
        let share = usize::try_from(share).unwrap_or(EDGE_BYTES_MAX);
        let bytes_max = share.clamp(EDGE_BYTES_MIN, EDGE_BYTES_MAX);
        if bytes_max < EDGE_BYTES_MAX {
            warnings.push(format!(
                "{open} edges share the memory of the job: each holds at most {bytes_max} bytes"
            ));
        }
        links
            .iter_mut()
            .filter(|l| l.bytes_max == 0)
            .for_each(|l| l.bytes_max = bytes_max);
    }
    let needs = (0..options.processes).map(|process| (need(links, process), process));
    let (need_bytes, process) = needs.max().unwrap_or_default();
    let of_link =
        |(link, edges): &(&LinkPlan, &Vec<usize>)| edges[process] as u64 * link.bytes_max as u64;
    match links.iter().zip(&edges).max_by_key(of_link) {
        Some((link, edges)) if need_bytes > options.memory_max_bytes => Err(PlanError::Memory {
            need_bytes,
            have_bytes: options.memory_max_bytes,
            from: graph[link.node].name.clone(),
            to: graph[graph.streams[link.stream].to].name.clone(),
            edges: edges[process],
            bytes_max: link.bytes_max,
        }),
        _ => Ok(need_bytes),
    }
}

/// How many edges of a link each process has an end of.
fn edges_in(link: &LinkPlan, chains: &[ChainPlan], processes: usize) -> Vec<usize> {
    let (from, to) = (&chains[link.from].processes, &chains[link.to].processes);
    let mut edges = vec![0; processes];
    for (sending, &process) in from.iter().enumerate() {
        for receiving in link.receivers(sending, to.len()) {
            edges[process] += 1;
            if to[receiving] != process {
                edges[to[receiving]] += 1;
            }
        }
    }
    edges
}
