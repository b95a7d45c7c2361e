//! The host that shares a worker's thread with file I/O: the duty cycle is one task of an
//! executor.

use ringway_netio::event_wait;
use ringway_netio::executor::yield_now;

use super::{IdleAction, IdlePolicy, Idler, Worker};

/// Turns the worker until all its tasks are over. Between two turns the executor's other tasks
/// and its I/O get their time; while the worker parks, they have the core.
///
/// # Panics
/// If the worker's bell has no descriptor: that is what the executor waits for.
pub(super) async fn run_on_executor(mut worker: Worker, policy: IdlePolicy) {
    assert!(
        worker.bell().as_fd().is_some(),
        "a worker on an executor has a bell with a descriptor"
    );
    worker.open();
    let mut idler = Idler::new(policy);
    while !worker.is_done() {
        let work = worker.turn();
        match idler.after_turn(work, worker.now()) {
            IdleAction::Again => yield_now().await,
            IdleAction::Yield => {
                std::thread::yield_now();
                yield_now().await;
            }
            IdleAction::Park => park(&mut worker).await,
        }
    }
}

/// As on a plain thread: announces sleep, looks once more by turning, and sleeps if that found
/// nothing. Here it is the executor that sleeps, if its other tasks have nothing to do either.
async fn park(worker: &mut Worker) {
    let bell = worker.bell().clone();
    bell.arm();
    if worker.turn() > 0 || worker.is_done() {
        bell.disarm();
        return;
    }
    let limit = worker.sleep_max();
    let Some(descriptor) = bell.as_fd() else {
        return bell.disarm();
    };
    match event_wait::readable(descriptor, limit).await {
        Ok(_) => bell.clear(),
        Err(error) => {
            // The thread sleeps alone, and the executor's other tasks wait for it: late, but
            // nothing is lost.
            tracing::debug!(%error, "the executor cannot wait for the worker's bell");
            bell.park(Some(limit));
        }
    }
}
