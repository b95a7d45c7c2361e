//! Whether what is to carry the streams of a job can.

use crate::data_plane::TransportChoice;
use crate::job::graph::Graph;

use super::{LinkPlan, PlanError, PlanOptions};

/// Refuses what contradicts itself, and warns of what has no effect.
pub(super) fn check(
    graph: &Graph,
    links: &[LinkPlan],
    options: &PlanOptions,
    warnings: &mut Vec<String>,
) -> Result<(), PlanError> {
    for (index, stream) in graph.streams.iter().enumerate() {
        let link = links.iter().find(|link| link.stream == index);
        let between = link.map_or(0, |link| link.edges_between);
        let choice = stream.transport.unwrap_or(options.transport);
        let from = || graph.output_name(stream.from, stream.port);
        let to = || graph[stream.to].name.clone();
        match (choice, stream.transport) {
            (TransportChoice::Local, _) if between > 0 => {
                return Err(PlanError::LocalBetween {
                    from: from(),
                    to: to(),
                });
            }
            (_, Some(choice @ (TransportChoice::Shared | TransportChoice::Socket)))
                if between == 0 =>
            {
                return Err(PlanError::NothingBetween {
                    from: from(),
                    to: to(),
                    choice,
                });
            }
            _ => {}
        }
    }
    let is_forced = [TransportChoice::Shared, TransportChoice::Socket];
    if options.processes == 1 && is_forced.contains(&options.transport) {
        warnings.push(format!(
            "the transport `{}` is for edges between processes, and the job runs in one",
            options.transport
        ));
    }
    Ok(())
}
