//! What processes compare before they run a job together.

use crate::job::graph::Port;
use crate::partition::Fnv1a;

use super::Plan;

/// The hash of all that must be the same in every process. It depends on nothing of the
/// process or the build: two builds of one version agree.
pub(super) fn of(plan: &Plan) -> u64 {
    let mut hash = Fnv1a::new();
    hash.write_part(env!("CARGO_PKG_VERSION").as_bytes());
    hash.write_part(plan.name.as_bytes());
    hash.write_u64(plan.processes as u64);
    hash.write_u64(plan.graph.notes.finish());
    chains(&mut hash, plan);
    links(&mut hash, plan);
    hash.finish()
}

fn chains(hash: &mut Fnv1a, plan: &Plan) {
    hash.write_u64(plan.chains.len() as u64);
    for chain in &plan.chains {
        hash.write_u64(chain.nodes.len() as u64);
        for ((node, name), uid) in chain.nodes.iter().zip(&chain.names).zip(&chain.uids) {
            hash.write_u64(node.0 as u64);
            hash.write_part(name.as_bytes());
            hash.write_part(uid.as_bytes());
            let sides = plan.graph[*node].factory.sides().len();
            hash.write_u64(sides as u64);
            for port in std::iter::once(Port::Main).chain((0..sides).map(Port::Side)) {
                output(hash, plan, *node, port);
            }
        }
        hash.write_u64(chain.processes.len() as u64);
        for process in &chain.processes {
            hash.write_u64(*process as u64);
        }
    }
}

fn output(hash: &mut Fnv1a, plan: &Plan, node: crate::job::NodeId, port: Port) {
    let payload = plan.graph.output_type(node, port);
    hash.write_part(payload.map_or("", |payload| payload.name()).as_bytes());
    let codec = plan.graph.codec(node, port);
    let Some(schema) = codec.as_ref().and_then(|codec| codec.schema()) else {
        return;
    };
    for field in schema.fields() {
        hash.write_part(field.name().as_bytes());
        hash.write_part(field.data_type().to_string().as_bytes());
        hash.write_u32(u32::from(field.is_nullable()));
    }
}

fn links(hash: &mut Fnv1a, plan: &Plan) {
    hash.write_u64(plan.links.len() as u64);
    for link in &plan.links {
        let port = match link.port {
            Port::Main => u64::MAX,
            Port::Side(side) => side as u64,
        };
        for number in [link.from, link.node.0, link.to, link.edges] {
            hash.write_u64(number as u64);
        }
        hash.write_u64(port);
        hash.write_part(link.exchange.to_string().as_bytes());
        hash.write_part(link.choice.to_string().as_bytes());
    }
}
