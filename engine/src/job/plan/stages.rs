//! The stages of a job: chains cut apart at blocking exchanges.

use std::collections::HashSet;

use crate::job::graph::{Graph, NodeId};

use super::{ChainPlan, LinkPlan, PlanError, StagePlan};

/// Makes sure that what waits for the end of its input is behind sources that end.
///
/// # Errors
/// [`PlanError::NeverEnds`], when one does not.
pub(super) fn check_ends(graph: &Graph) -> Result<(), PlanError> {
    for (source, node) in graph.nodes().filter(|(_, node)| node.is_unbounded) {
        let behind = reached(graph, source);
        let waiting = graph
            .nodes()
            .find(|(id, node)| node.needs_end && behind.contains(id));
        if let Some((waiting, _)) = waiting {
            let halves = graph.blocking.iter().find(|edge| edge.from == waiting);
            let named = halves.map_or(waiting, |edge| edge.to);
            return Err(PlanError::NeverEnds {
                name: graph[named].name.clone(),
                source_name: node.name.clone(),
            });
        }
    }
    Ok(())
}

/// The nodes that rows of `from` come to.
fn reached(graph: &Graph, from: NodeId) -> HashSet<NodeId> {
    let mut reached = HashSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        let streams = graph.streams.iter().filter(|stream| stream.from == node);
        open.extend(
            streams
                .map(|stream| stream.to)
                .filter(|to| reached.insert(*to)),
        );
    }
    reached
}

/// The stages of `chains`. A group is as late as what reads from it allows, so that groups that
/// nothing reads from, which alone may run without an end, are in the last one.
///
/// # Errors
/// When what spills and what reads it are in one group, or wait for each other, or the job has
/// several processes.
pub(super) fn of(
    graph: &Graph,
    chains: &[ChainPlan],
    links: &[LinkPlan],
    processes: usize,
) -> Result<Vec<StagePlan>, PlanError> {
    if let (Some(edge), true) = (graph.blocking.first(), processes > 1) {
        return Err(PlanError::BlockingBetween {
            name: graph[edge.to].name.clone(),
        });
    }
    let groups = groups(chains, links);
    let group_of = |node: NodeId| {
        let has = |group: &Vec<usize>| {
            group
                .iter()
                .any(|chain| chains[*chain].nodes.contains(&node))
        };
        // Invariant: every node has a chain, and every chain a group.
        groups.iter().position(has).expect("every node has a group")
    };
    let cuts = graph.blocking.iter();
    let cuts: Vec<(usize, usize)> = cuts
        .map(|edge| (group_of(edge.from), group_of(edge.to)))
        .collect();
    // How many stages are behind each group.
    let mut behind = vec![0; groups.len()];
    for _ in 0..=groups.len() {
        let mut is_settled = true;
        for &(from, to) in &cuts {
            if behind[from] < behind[to] + 1 {
                behind[from] = behind[to] + 1;
                is_settled = false;
            }
        }
        if is_settled {
            return Ok(in_stages(groups, &behind));
        }
    }
    // Whatever is still pushed forward is on a circle.
    let circle = graph.blocking.iter().zip(&cuts);
    let circle = circle.filter(|(_, (from, _))| behind[*from] >= groups.len());
    Err(PlanError::BlockingWithin {
        names: circle
            .map(|(edge, _)| graph[edge.to].name.clone())
            .collect(),
    })
}

fn in_stages(groups: Vec<Vec<usize>>, behind: &[usize]) -> Vec<StagePlan> {
    let last = behind.iter().copied().max().unwrap_or(0);
    let mut stages = vec![StagePlan { groups: Vec::new() }; last + 1];
    for (group, behind) in groups.into_iter().zip(behind) {
        stages[last - behind].groups.push(group);
    }
    stages
}

/// The chains in groups between which no link leads.
fn groups(chains: &[ChainPlan], links: &[LinkPlan]) -> Vec<Vec<usize>> {
    let mut group_of: Vec<usize> = (0..chains.len()).collect();
    for link in links {
        let (one, other) = (group_of[link.from], group_of[link.to]);
        let joined = |group: &mut usize| {
            if *group == other {
                *group = one;
            }
        };
        group_of.iter_mut().for_each(joined);
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); chains.len()];
    for (chain, group) in group_of.into_iter().enumerate() {
        groups[group].push(chain);
    }
    groups.retain(|group| !group.is_empty());
    groups
}
