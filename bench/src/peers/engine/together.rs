//! Our job over two processes, whose edges between them are sockets.

use std::net::TcpListener;

use ringway::data_plane::TransportChoice;
use ringway::job::{
    Cluster, ClusterOptions, Hosts, Plan, PlanOptions, RunOptions, SocketEdges, start_in,
};
use ringway::partition::Parallelism;
use ringway_netio::driver::DriverChoice;

use crate::error::BenchError;
use crate::job::exchange::{Input, ended, said};
use crate::spent::Spent;

use super::{Pairs, Run, Share};

/// Runs the job as one of its processes, each of which has one worker.
///
/// # Errors
/// When the processes do not find each other, or the job fails.
pub(super) fn run(
    share: &Share,
    process: usize,
    listener: Option<TcpListener>,
) -> Result<Run, BenchError> {
    let (job, all) = said(&Input::<Pairs>::new(share.smoke), share.count)?;
    let options = PlanOptions {
        parallelism: Parallelism::new(2)?,
        workers: vec![Some(share.cpu.0)],
        processes: 2,
        transport: TransportChoice::Socket,
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options)?;
    let hosts = Hosts::read(&share.hosts).map_err(BenchError::new)?;
    let cluster = ClusterOptions {
        listener,
        ..ClusterOptions::new(hosts, process)
    };
    let edges = SocketEdges::listen(&plan, &cluster, DriverChoice::from_option(None)?);
    let edges = Box::new(edges.map_err(BenchError::new)?);
    let cluster = Cluster::gather(&plan, cluster, edges, &mut || None)?;
    let before = Spent::of_process();
    let wall = ended(start_in(&plan, &RunOptions::default(), cluster)?)?;
    let spent = Spent::of_process() - before;
    let sums = all.lock().map_err(|_| BenchError::new("a sink panicked"))?;
    Ok(Run {
        sums: sums.clone(),
        wall,
        spent,
    })
}
