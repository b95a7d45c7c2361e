//! Where subtasks run: in which process, and on which worker of it.

use crate::job::graph::{ExchangeKind, Graph};

use super::{ChainPlan, PlanError};

/// Spreads subtasks over processes. A chain that a forward stream leads into is where that
/// comes from, so that subtask to subtask stays in a process. A chain with as many subtasks as
/// processes, or more, has as many in each, neighbours together; smaller ones go round. Nodes
/// that say a process run there.
///
/// # Errors
/// A node says a process that the job does not have.
pub(super) fn processes(
    graph: &Graph,
    chains: &mut [ChainPlan],
    exchanges: &[ExchangeKind],
    processes: usize,
) -> Result<(), PlanError> {
    let mut next = 0;
    for index in 0..chains.len() {
        let subtasks = chains[index].parallelism.subtasks() as usize;
        let placed = if processes == 1 {
            vec![0; subtasks]
        } else if let Some(process) = said(graph, &chains[index], processes)? {
            vec![process; subtasks]
        } else if let Some(before) =
            forward_from(graph, &chains[..index], &chains[index], exchanges)
        {
            chains[before].processes.clone()
        } else if subtasks >= processes {
            let block = |subtask| subtask * processes / subtasks;
            (0..subtasks).map(block).collect()
        } else {
            let first = next;
            next += subtasks;
            let round = |subtask| (first + subtask) % processes;
            (0..subtasks).map(round).collect()
        };
        chains[index].processes = placed;
    }
    Ok(())
}

/// Spreads the subtasks of each process over its workers: equal numbers of adjacent chains meet
/// on the same worker, chains with one subtask go round.
pub(super) fn workers(chains: &mut [ChainPlan], workers: usize, processes: usize) {
    let mut placed = vec![0; processes];
    for chain in chains {
        let on_worker = chain.processes.iter().map(|&process| {
            let worker = placed[process] % workers;
            placed[process] += 1;
            worker
        });
        chain.workers = on_worker.collect();
    }
}

/// The process that the nodes of a chain say; they all say the same.
fn said(graph: &Graph, chain: &ChainPlan, processes: usize) -> Result<Option<usize>, PlanError> {
    let node = &graph[chain.nodes[0]];
    match node.process {
        Some(process) if process >= processes => Err(PlanError::NoProcess {
            name: node.name.clone(),
            process,
            processes,
        }),
        said => Ok(said),
    }
}

/// The chain before this one from which a forward stream leads into it.
fn forward_from(
    graph: &Graph,
    before: &[ChainPlan],
    chain: &ChainPlan,
    exchanges: &[ExchangeKind],
) -> Option<usize> {
    let streams = graph.streams.iter().zip(exchanges);
    let mut forward = streams.filter(|(stream, exchange)| {
        stream.to == chain.nodes[0] && **exchange == ExchangeKind::Forward
    });
    forward.find_map(|(stream, _)| {
        before
            .iter()
            .position(|before| before.nodes.contains(&stream.from))
    })
}
