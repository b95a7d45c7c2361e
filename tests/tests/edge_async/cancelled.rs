//! Futures that are dropped before they are ready: nothing is lost, doubled or kept.

use std::sync::Arc;
use std::thread;

use ringway::edge::{Popped, local};
use ringway_tests::block_on::block_on;
use ringway_tests::conformance::elements::{counted, ending, next, number, push, room_for};
use ringway_tests::seed::Seeded;
use ringway_tests::within::{LONG, within};
use tokio::runtime::Builder;

use crate::polled::Task;

#[test]
fn a_pending_push_that_is_dropped_pushes_nothing_and_drops_the_element() {
    let alive = Arc::new(());
    let (mut sender, mut receiver) = local::pair(room_for(1));
    let task = Task::new();
    push(&mut sender, counted(&alive));
    let mut pushing = sender.push_async(counted(&alive));
    assert!(task.poll(&mut pushing).is_pending());
    assert_eq!(Arc::strong_count(&alive), 3);
    drop(pushing);
    assert_eq!(Arc::strong_count(&alive), 2);
    assert!(
        !task.is_held(),
        "the edge keeps no waker of a task that waits no more"
    );
    assert!(next(&mut receiver).is_data());
    assert_eq!(task.wakes(), 0);
    sender.finish().unwrap();
    assert!(ending(&mut receiver).is_orderly());
}

#[test]
fn a_pending_push_gives_its_element_back() {
    let (mut sender, mut receiver) = local::pair(room_for(1));
    let task = Task::new();
    push(&mut sender, number(1));
    let mut pushing = sender.push_async(number(2));
    assert!(task.poll(&mut pushing).is_pending());
    assert_eq!(pushing.into_element(), Some(number(2)));
    assert!(!task.is_held());
    assert_eq!(next(&mut receiver), number(1));
    push(&mut sender, number(3));
    assert_eq!(next(&mut receiver), number(3));
    let mut pushing = sender.push_async(number(4));
    assert!(task.poll(&mut pushing).is_ready());
    assert_eq!(pushing.into_element(), None, "it was accepted");
}

#[test]
fn a_push_that_was_never_polled_pushes_nothing() {
    let (mut sender, mut receiver) = local::pair(room_for(1));
    assert_eq!(sender.push_async(number(1)).into_element(), Some(number(1)));
    assert_eq!(receiver.try_pop(), Popped::Empty);
}

#[test]
fn a_pending_pop_that_is_dropped_takes_nothing() {
    let (mut sender, mut receiver) = local::pair(room_for(2));
    let task = Task::new();
    for value in 0..10 {
        let mut pop = receiver.pop_async();
        assert!(task.poll(&mut pop).is_pending());
        // With the element there, and the wake-up under way.
        push(&mut sender, number(value));
        drop(pop);
        assert!(!task.is_held());
        assert_eq!(next(&mut receiver), number(value));
    }
}

#[test]
fn a_thread_may_wait_where_a_dropped_future_has_waited() {
    let (mut sender, mut receiver) = local::pair(room_for(1));
    let task = Task::new();
    assert!(task.poll(&mut receiver.pop_async()).is_pending());
    let pushing = thread::spawn(move || {
        sender.push(number(1)).unwrap();
        sender.push(number(2)).unwrap();
    });
    assert_eq!(next(&mut receiver), number(1));
    assert_eq!(next(&mut receiver), number(2));
    pushing.join().unwrap();
    assert_eq!(task.wakes(), 0);
}

/// Each side gives up some waits at random, as `select!` does, and begins them anew.
#[test]
fn what_is_dropped_and_begun_anew_loses_no_element_and_no_wake_up() {
    let mut random = Seeded::new();
    let seeds = (random.number(), random.number());
    within(LONG, "every element is taken", move || {
        let (mut sender, mut receiver) = local::pair(room_for(2));
        let count = 5_000;
        let sending = thread::spawn(move || {
            let mut random = Seeded::from_seed(seeds.0);
            let task = Task::new();
            for value in 0..count {
                let mut element = number(value);
                while random.below(2) == 0 {
                    let mut pushing = sender.push_async(element);
                    let polled = task.poll(&mut pushing);
                    match pushing.into_element() {
                        Some(back) => element = back,
                        None => {
                            assert!(polled.is_ready());
                            element = number(-1);
                            break;
                        }
                    }
                }
                if element != number(-1) {
                    block_on(sender.ready(&element)).unwrap();
                    sender.try_push(element).unwrap();
                }
            }
            sender.finish().unwrap();
        });
        let mut random = Seeded::from_seed(seeds.1);
        let task = Task::new();
        for value in 0..count {
            let mut popped = std::task::Poll::Pending;
            while popped.is_pending() && random.below(2) == 0 {
                popped = task.poll(&mut receiver.pop_async());
            }
            let popped = match popped {
                std::task::Poll::Ready(popped) => popped,
                std::task::Poll::Pending => block_on(receiver.pop_async()),
            };
            assert_eq!(popped, Popped::Element(number(value)));
        }
        sending.join().unwrap();
        assert!(ending(&mut receiver).is_orderly());
    });
}

/// The case of an embedder: a stream of elements beside something else to wait for.
#[test]
fn a_select_over_two_edges_gets_every_element_of_both() {
    within(LONG, "every element is taken", || {
        let runtime = Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.unwrap();
        let (one, mut from_one) = local::pair(room_for(1));
        let (two, mut from_two) = local::pair(room_for(64));
        runtime.spawn(crate::parts::send_all(one, 3_000));
        runtime.spawn(crate::parts::send_all(two, 3_000));
        let taken = runtime.block_on(async {
            let (mut taken, mut open) = (0, [true, true]);
            while open[0] || open[1] {
                let (popped, edge) = tokio::select! {
                    popped = from_one.pop_async(), if open[0] => (popped, 0),
                    popped = from_two.pop_async(), if open[1] => (popped, 1),
                };
                match popped {
                    Popped::Element(element) => taken += usize::from(element.is_data()),
                    Popped::Empty => panic!("no barrier overtakes"),
                    Popped::Ended(_) => open[edge] = false,
                }
            }
            taken
        });
        assert_eq!(taken, 6_000);
    });
}
