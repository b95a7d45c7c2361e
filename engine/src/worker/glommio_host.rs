//! The host that shares a worker's thread with file I/O: the duty cycle is one task of an
//! executor.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use ringway_netio::event_wait;
use ringway_netio::executor::{IoTurn, yield_now};

use super::{IdleAction, IdlePolicy, Idler, Worker};

/// How long a worker that does not park keeps timers and I/O of the executor waiting.
const IO_EVERY: Duration = Duration::from_millis(1);

/// Turns the worker until all its tasks are over. Between two turns the executor's other tasks
/// get their time, and once in a millisecond its I/O; while the worker parks, they have the
/// core.
///
/// # Panics
/// If the worker's bell has no descriptor: that is what the executor waits for.
pub(super) async fn run_on_executor(mut worker: Worker, policy: IdlePolicy, io: IoTurn) {
    assert!(
        worker.bell().as_fd().is_some(),
        "a worker on an executor has a bell with a descriptor"
    );
    worker.open();
    let mut idler = Idler::new(policy);
    let mut io_at = worker.now();
    while !worker.is_done() {
        let work = worker.turn();
        let now = worker.now();
        let slept = match idler.after_turn(work, now) {
            IdleAction::Again => false,
            IdleAction::Yield => {
                std::thread::yield_now();
                false
            }
            IdleAction::Park => park(&mut worker).await,
        };
        if slept {
            io_at = worker.now();
            continue;
        }
        yield_now().await;
        if now.since(io_at) >= IO_EVERY {
            look_at_io(&io).await;
            io_at = now;
        }
    }
}

async fn look_at_io(io: &IoTurn) {
    if let Err(error) = io.take().await {
        tracing::debug!(%error, "the executor cannot look at its I/O");
    }
}

/// As on a plain thread: announces sleep, looks once more by turning, and sleeps if that found
/// nothing. Here it is the executor that sleeps, if its other tasks have nothing to do either.
/// Returns whether they had their time.
async fn park(worker: &mut Worker) -> bool {
    let bell = worker.bell().clone();
    bell.arm();
    if worker.turn() > 0 || worker.is_done() {
        bell.disarm();
        return false;
    }
    let limit = worker.sleep_max();
    let Some(descriptor) = bell.as_fd() else {
        bell.disarm();
        return false;
    };
    let rung = event_wait::readable(descriptor, limit);
    let waited = match &worker.links {
        Some(links) => first(rung, event_wait::readable(links.as_fd(), limit)).await,
        None => rung.await,
    };
    match waited {
        Ok(_) => {
            bell.clear();
            // Without a time to wait there was no look at I/O either.
            !limit.is_zero()
        }
        Err(error) => {
            // The thread sleeps alone, and the executor's other tasks wait for it: late, but
            // nothing is lost.
            tracing::debug!(%error, "the executor cannot wait for the worker's bell");
            worker.sleep();
            false
        }
    }
}

/// What the first of two gives.
async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(output),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await
}
