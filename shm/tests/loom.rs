//! Models of the ring and the bell: loom runs each of them under every order
//! of the threads' steps (up to three preemptions) and under every value that
//! the memory model lets a load see. A lost wake-up shows as a deadlock, a
//! wrong order as a data race on a slot, a lost element as a leak.
//!
//! Run by `scripts/loom`. Elements are loom's own `Arc`s, which must all be
//! dropped when a model ends.
#![cfg(loom)]

use std::mem::ManuallyDrop;
use std::task::{Wake, Waker};

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring(capacity, Bell::thread(), Bell::thread())
}

/// Pops until the end and returns what came and how it ended.
fn drain(mut consumer: Consumer<Arc<u32>>) -> (Vec<u32>, PopError) {
    let mut seen = Vec::new();
    loop {
        match consumer.pop_blocking(None) {
            Ok(element) => seen.push(*element),
            Err(end) => return (seen, end),
        }
    }
}

#[test]
fn elements_arrive_in_order_and_then_the_end() {
    for capacity in [1, 2] {
        model(move || {
            let (mut producer, consumer) = pair(capacity);
            let pushing = thread::spawn(move || {
                for element in 0..3 {
                    producer.push_blocking(Arc::new(element), None).unwrap();
                }
                producer.finish();
            });
            assert_eq!(drain(consumer), (vec![0, 1, 2], PopError::Finished));
            pushing.join().unwrap();
        });
    }
}

#[test]
fn a_dropped_producer_loses_nothing_and_is_not_an_end() {
    model(|| {
        let (mut producer, consumer) = pair(2);
        let pushing = thread::spawn(move || {
            producer.try_push(Arc::new(0)).unwrap();
            producer.try_push(Arc::new(1)).unwrap();
        });
        assert_eq!(drain(consumer), (vec![0, 1], PopError::Abandoned));
        pushing.join().unwrap();
    });
}

#[test]
fn a_dropped_consumer_gives_later_pushes_back_and_leaks_nothing() {
    model(|| {
        let (mut producer, mut consumer) = pair(2);
        producer.try_push(Arc::new(0)).unwrap();
        let popping = thread::spawn(move || {
            let _ = consumer.try_pop();
        });
        let _ = producer.try_push(Arc::new(1));
        popping.join().unwrap();
        let rejected = producer
            .try_push(Arc::new(2))
            .map_err(PushError::into_inner);
        assert_eq!(*rejected.unwrap_err(), 2);
    });
}

#[test]
fn a_producer_blocked_on_a_full_ring_learns_that_the_consumer_is_gone() {
    model(|| {
        let (mut producer, consumer) = pair(1);
        producer.try_push(Arc::new(0)).unwrap();
        let dropping = thread::spawn(move || drop(consumer));
        let rejected = producer.push_blocking(Arc::new(1), None);
        assert!(matches!(rejected, Err(PushError::Abandoned(_))));
        dropping.join().unwrap();
    });
}

#[test]
fn both_halves_may_be_dropped_at_once() {
    model(|| {
        let (mut producer, consumer) = pair(2);
        producer.try_push(Arc::new(0)).unwrap();
        producer.try_push_priority(Arc::new(1)).unwrap();
        let dropping = thread::spawn(move || drop(consumer));
        drop(producer);
        dropping.join().unwrap();
    });
}

#[test]
fn an_armed_consumer_never_misses_the_push() {
    model(|| {
        let (mut producer, mut consumer) = pair(1);
        let pushing = thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        });
        let bell = consumer.consumer_bell().clone();
        bell.arm();
        if consumer.is_ready() {
            bell.disarm();
        } else {
            bell.park(None);
        }
        assert_eq!(consumer.try_pop(), Ok(7));
        drop(pushing.join().unwrap());
    });
}

/// Shows that the models can fail: a wake-up that can be lost is found. What
/// belongs to loom must not be dropped while its panic unwinds.
#[test]
#[should_panic(expected = "deadlock")]
fn a_consumer_that_does_not_look_again_after_arming_sleeps_for_ever() {
    model(|| {
        let (mut producer, consumer) = pair(1);
        let consumer = ManuallyDrop::new(consumer);
        let pushing = ManuallyDrop::new(thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        }));
        if !consumer.is_ready() {
            consumer.consumer_bell().arm();
            consumer.consumer_bell().park(None);
        }
        drop(ManuallyDrop::into_inner(pushing).join().unwrap());
        drop(ManuallyDrop::into_inner(consumer));
    });
}

#[test]
fn one_bell_serves_two_rings() {
    model(|| {
        let bell = Bell::thread();
        let (mut first, mut from_first) = ring(1, Bell::thread(), bell.clone());
        let (mut second, mut from_second) = ring(1, Bell::thread(), bell.clone());
        let one = thread::spawn(move || {
            first.try_push(1).unwrap();
            first
        });
        let two = thread::spawn(move || {
            second.try_push(2).unwrap();
            second
        });
        let mut sum = 0;
        while sum < 3 {
            bell.arm();
            if from_first.is_empty() && from_second.is_empty() {
                bell.park(None);
            } else {
                bell.disarm();
            }
            sum += from_first.try_pop().unwrap_or(0) + from_second.try_pop().unwrap_or(0);
        }
        drop((one.join().unwrap(), two.join().unwrap()));
    });
}

#[test]
fn one_wake_covers_several_quiet_pushes() {
    model(|| {
        let (mut producer, consumer) = pair(2);
        let pushing = thread::spawn(move || {
            producer.push_quiet(Arc::new(0)).unwrap();
            producer.push_quiet(Arc::new(1)).unwrap();
            producer.wake();
            producer.finish();
        });
        assert_eq!(drain(consumer), (vec![0, 1], PopError::Finished));
        pushing.join().unwrap();
    });
}

/// Without a look at a bell in between there is no fence that could stand in
/// for the order of the end after the last element.
#[test]
fn the_end_is_never_seen_before_the_last_element() {
    model(|| {
        let (mut producer, mut consumer) = pair(1);
        let pushing = thread::spawn(move || {
            producer.push_quiet(Arc::new(0)).unwrap();
            producer.finish();
        });
        let first = consumer.pop_quiet().map(|element| *element);
        assert!(matches!(first, Ok(0) | Err(PopError::Empty)));
        pushing.join().unwrap();
    });
}

#[test]
fn the_room_that_a_dropped_consumer_makes_is_not_pushed_into() {
    model(|| {
        let (mut producer, consumer) = pair(1);
        producer.try_push(Arc::new(0)).unwrap();
        let pushing = thread::spawn(move || {
            let mut values = std::iter::once_with(|| Arc::new(1));
            assert_eq!(producer.push_from(&mut values), 0);
            assert!(producer.try_push(Arc::new(2)).is_err());
        });
        drop(consumer);
        pushing.join().unwrap();
    });
}

#[test]
fn chunks_move_whole_on_both_sides() {
    model(|| {
        let (mut producer, mut consumer) = pair(2);
        let pushing = thread::spawn(move || {
            let mut elements = (0..3).map(Arc::new);
            let pushed = producer.push_from(&mut elements);
            assert!((2..=3).contains(&pushed));
            for element in elements {
                producer.push_blocking(element, None).unwrap();
            }
            producer.finish();
        });
        let mut seen: Vec<u32> = consumer.pop_chunk(2).map(|element| *element).collect();
        let (rest, end) = drain(consumer);
        seen.extend(rest);
        assert_eq!((seen, end), (vec![0, 1, 2], PopError::Finished));
        pushing.join().unwrap();
    });
}

#[test]
fn a_priority_value_carries_its_position_and_is_never_left_behind() {
    model(|| {
        let (mut producer, mut consumer) = pair(2);
        let pushing = thread::spawn(move || {
            producer.try_push(Arc::new(0)).unwrap();
            producer.try_push_priority(Arc::new(10)).unwrap();
            producer.finish();
        });
        let (mut queued, mut overtaken) = (0, 0);
        loop {
            if let Some((letter, position)) = consumer.take_priority() {
                assert_eq!((*letter, position), (10, 1));
                overtaken += 1;
            }
            match consumer.pop_blocking(None) {
                Ok(_) => queued += 1,
                Err(PopError::Empty) => {}
                Err(end) => {
                    assert_eq!((end, queued, overtaken), (PopError::Finished, 1, 1));
                    break;
                }
            }
        }
        pushing.join().unwrap();
    });
}

#[test]
fn the_priority_slot_is_reused_only_after_it_was_taken() {
    model(|| {
        let (mut producer, mut consumer) = pair(1);
        producer.try_push_priority(Arc::new(1)).unwrap();
        let pushing = thread::spawn(move || {
            let second = producer.try_push_priority(Arc::new(2));
            (second, producer)
        });
        assert_eq!(*consumer.take_priority().unwrap().0, 1);
        let (second, producer) = pushing.join().unwrap();
        match second {
            Ok(()) => assert_eq!(*consumer.take_priority().unwrap().0, 2),
            Err(rejected) => assert!(rejected.is_full() && consumer.take_priority().is_none()),
        }
        drop(producer);
    });
}

#[test]
fn a_producer_that_waits_for_released_weight_is_woken_with_it() {
    model(|| {
        let (mut producer, mut consumer) = pair(2);
        producer.try_push(Arc::new(0)).unwrap();
        let popping = thread::spawn(move || {
            drop(consumer.pop_quiet().unwrap());
            consumer.release(100);
            consumer
        });
        let bell = producer.producer_bell().clone();
        while producer.released() < 100 {
            bell.arm();
            if producer.released() < 100 {
                bell.park(None);
            } else {
                bell.disarm();
            }
        }
        assert_eq!(producer.slots(), 2);
        drop(popping.join().unwrap());
    });
}

/// The waker of a task that is run by a thread of the model.
struct Task {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Task {
    fn new() -> std::sync::Arc<Task> {
        std::sync::Arc::new(Task {
            woken: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Sleeps until the waker was called since the last time.
    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
        drop(woken);
        // A task that is woken because a ring is at its waker asks until that is done, and
        // the model has to know that the ring needs to go on for it.
        thread::yield_now();
    }
}

impl Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

#[test]
fn a_registered_consumer_never_misses_the_push() {
    model(|| {
        let (mut producer, mut consumer) = pair(1);
        let pushing = thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        });
        let task = Task::new();
        let bell = consumer.consumer_bell().clone();
        bell.register(&Waker::from(task.clone()));
        if consumer.is_ready() {
            bell.withdraw();
        } else {
            task.sleep();
        }
        assert_eq!(consumer.try_pop(), Ok(7));
        drop(pushing.join().unwrap());
        drop(consumer);
        assert_eq!(std::sync::Arc::strong_count(&task), 1, "a waker leaked");
    });
}

/// As with parking: shows that these models can fail.
#[test]
#[should_panic(expected = "deadlock")]
fn a_consumer_that_does_not_look_again_after_registering_sleeps_for_ever() {
    model(|| {
        let (mut producer, consumer) = pair(1);
        let consumer = ManuallyDrop::new(consumer);
        let pushing = ManuallyDrop::new(thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        }));
        let task = ManuallyDrop::new(Task::new());
        if !consumer.is_ready() {
            let waker = ManuallyDrop::new(Waker::from((*task).clone()));
            consumer.consumer_bell().register(&waker);
            task.sleep();
        }
        drop(ManuallyDrop::into_inner(pushing).join().unwrap());
        drop(ManuallyDrop::into_inner(consumer));
    });
}

/// A task that moves to another thread comes with another waker, and the first is of no use
/// any more.
#[test]
fn a_task_that_registers_again_is_woken_through_the_later_waker() {
    model(|| {
        let (mut producer, mut consumer) = pair(1);
        let pushing = thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        });
        let (before, task) = (Task::new(), Task::new());
        let bell = consumer.consumer_bell().clone();
        bell.register(&Waker::from(before.clone()));
        bell.register(&Waker::from(task.clone()));
        if consumer.is_ready() {
            bell.withdraw();
        } else {
            task.sleep();
        }
        assert_eq!(consumer.try_pop(), Ok(7));
        drop(pushing.join().unwrap());
        drop(consumer);
        assert_eq!(std::sync::Arc::strong_count(&before), 1, "a waker leaked");
    });
}

#[test]
fn one_registered_waker_serves_two_rings() {
    model(|| {
        let bell = Bell::thread();
        let (mut first, mut from_first) = ring(1, Bell::thread(), bell.clone());
        let (mut second, mut from_second) = ring(1, Bell::thread(), bell.clone());
        let one = thread::spawn(move || {
            first.try_push(1).unwrap();
            first
        });
        let two = thread::spawn(move || {
            second.try_push(2).unwrap();
            second
        });
        let task = Task::new();
        let waker = Waker::from(task.clone());
        let mut sum = 0;
        while sum < 3 {
            bell.register(&waker);
            if from_first.is_empty() && from_second.is_empty() {
                task.sleep();
            } else {
                bell.withdraw();
            }
            sum += from_first.try_pop().unwrap_or(0) + from_second.try_pop().unwrap_or(0);
        }
        drop((one.join().unwrap(), two.join().unwrap()));
    });
}

/// A future that is dropped withdraws while a ring may be under way; the next one waits with
/// a waker of its own.
#[test]
fn a_waker_that_is_withdrawn_during_a_ring_does_not_cost_the_next_its_wake_up() {
    model(|| {
        let (mut producer, mut consumer) = pair(2);
        let pushing = thread::spawn(move || {
            producer.try_push(7).unwrap();
            producer
        });
        let (dropped, task) = (Task::new(), Task::new());
        let bell = consumer.consumer_bell().clone();
        bell.register(&Waker::from(dropped.clone()));
        bell.withdraw();
        bell.register(&Waker::from(task.clone()));
        if consumer.is_ready() {
            bell.withdraw();
        } else {
            task.sleep();
        }
        assert_eq!(consumer.try_pop(), Ok(7));
        drop(pushing.join().unwrap());
        drop(consumer);
        assert_eq!(std::sync::Arc::strong_count(&dropped), 1, "a waker leaked");
    });
}
