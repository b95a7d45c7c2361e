//! The plain host: a worker has its thread for itself.

use super::{IdleAction, IdlePolicy, Idler, Worker};

/// Turns the worker on the calling thread until all its tasks are over.
pub fn run_on_thread(worker: &mut Worker, policy: IdlePolicy) {
    worker.open();
    let mut idler = Idler::new(policy);
    while !worker.is_done() {
        let work = worker.turn();
        match idler.after_turn(work, worker.now()) {
            IdleAction::Again if work == 0 => std::hint::spin_loop(),
            IdleAction::Again => {}
            IdleAction::Yield => std::thread::yield_now(),
            IdleAction::Park => park(worker),
        }
    }
}

/// Announces sleep, looks once more by turning, and sleeps if that found nothing: work that
/// arrives in between rings the bell.
fn park(worker: &mut Worker) {
    worker.bell().arm();
    if worker.turn() > 0 || worker.is_done() {
        worker.bell().disarm();
        return;
    }
    worker.sleep();
}
