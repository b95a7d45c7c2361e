//! Nothing is lost and nobody hangs, whichever executor polls the halves.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;

use ringway::edge::{Receiver, Sender, local};
use ringway_netio::executor::Executor;
use ringway_tests::block_on::block_on;
use ringway_tests::conformance::elements::{Numbers, room_for};
use ringway_tests::within::{LONG, within};
use tokio::runtime::{Builder, Runtime};

use crate::parts::{send_all, take_all, take_all_blocking};

/// Narrow edges, where every element waits, and one where few do.
const CAPACITIES: [usize; 3] = [1, 3, 1024];

const COUNT: i64 = 10_000;

/// Runs each pair of halves with `run`, which returns how many elements were taken.
fn with_every_capacity(run: impl Fn(Sender<Numbers>, Receiver<Numbers>) -> i64 + Send + 'static) {
    within(LONG, "every element is taken", move || {
        for capacity in CAPACITIES {
            let (sender, receiver) = local::pair(room_for(capacity));
            assert_eq!(run(sender, receiver), COUNT, "capacity {capacity}");
        }
    });
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
}

/// Two tasks of one runtime.
fn in_runtime(runtime: &Runtime, sender: Sender<Numbers>, receiver: Receiver<Numbers>) -> i64 {
    runtime.block_on(async {
        let sending = tokio::spawn(send_all(sender, COUNT));
        let taken = tokio::spawn(take_all(receiver)).await.unwrap();
        sending.await.unwrap();
        taken
    })
}

#[test]
fn two_tasks_of_tokio_on_one_thread_agree() {
    with_every_capacity(|sender, receiver| in_runtime(&current_thread(), sender, receiver));
}

#[test]
fn two_tasks_of_tokio_on_two_threads_agree() {
    with_every_capacity(|sender, receiver| in_runtime(&multi_thread(), sender, receiver));
}

#[test]
fn a_task_of_tokio_feeds_a_thread_that_blocks() {
    with_every_capacity(|sender, receiver| {
        let runtime = current_thread();
        let taking = thread::spawn(move || take_all_blocking(receiver));
        runtime.block_on(send_all(sender, COUNT));
        taking.join().unwrap()
    });
}

#[test]
fn two_threads_with_an_executor_made_by_hand_agree() {
    with_every_capacity(|sender, receiver| {
        let sending = thread::spawn(move || block_on(send_all(sender, COUNT)));
        let taken = block_on(take_all(receiver));
        sending.join().unwrap();
        taken
    });
}

/// Runs a future on a glommio executor of the calling thread. Where there cannot be one, the
/// denial is what is promised, and the future runs by hand.
fn on_glommio<F: Future<Output: 'static> + 'static>(future: F) -> F::Output {
    match Executor::new("test") {
        Ok(executor) => executor.run(future),
        Err(denial) => {
            assert_eq!(Executor::support(), Err(denial));
            block_on(future)
        }
    }
}

#[test]
fn a_glommio_executor_takes_what_a_task_of_tokio_sends() {
    with_every_capacity(|sender, receiver| {
        let sending = thread::spawn(move || current_thread().block_on(send_all(sender, COUNT)));
        let taken = on_glommio(take_all(receiver));
        sending.join().unwrap();
        taken
    });
}

#[test]
fn a_glommio_executor_sends_what_a_thread_takes() {
    with_every_capacity(|sender, receiver| {
        let taking = thread::spawn(move || take_all_blocking(receiver));
        on_glommio(send_all(sender, COUNT));
        taking.join().unwrap()
    });
}

#[test]
fn two_glommio_executors_agree() {
    with_every_capacity(|sender, receiver| {
        let sending = thread::spawn(move || on_glommio(send_all(sender, COUNT)));
        let taken = on_glommio(take_all(receiver));
        sending.join().unwrap();
        taken
    });
}

/// It would starve the others of its thread otherwise, as long as its edge has elements.
#[test]
fn a_half_that_never_has_to_wait_lets_other_tasks_run() {
    let (sender, receiver) = local::pair(room_for(COUNT as usize));
    let turns = Rc::new(Cell::new(0));
    let local = tokio::task::LocalSet::new();
    let counted = Rc::clone(&turns);
    local.spawn_local(async move {
        loop {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    });
    let (sent, taken) = current_thread().block_on(local.run_until(async {
        send_all(sender, 1_000).await;
        let sent = turns.get();
        assert_eq!(take_all(receiver).await, 1_000);
        (sent, turns.get() - sent)
    }));
    assert!(sent >= 5, "{sent} turns while 1,100 elements were sent");
    assert!(taken >= 5, "{taken} turns while 1,100 elements were taken");
}
