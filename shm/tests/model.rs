//! Random operations against a naive queue, on one thread and on two.
//!
//! Each test prints its seed; `RINGWAY_SEED` replays it. With two threads the
//! operations of each side replay, their interleaving does not.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::thread;

use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

/// A small generator (splitmix64), so that a seed means the same for ever.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let seed = match std::env::var("RINGWAY_SEED") {
            Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
            Err(_) => RandomState::new().hash_one(0),
        };
        println!("RINGWAY_SEED={seed}");
        Random(seed)
    }

    fn fork(&mut self) -> Random {
        Random(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The ring as one would write it with a lock and no care for speed.
#[derive(Default)]
struct Naive {
    queue: VecDeque<u64>,
    capacity: usize,
    pushed: u64,
    popped: u64,
    released: u64,
    high_water: usize,
    letter: Option<(u64, u64)>,
}

impl Naive {
    fn push(&mut self, value: u64) -> Result<(), PushError<u64>> {
        if self.queue.len() == self.capacity {
            return Err(PushError::Full(value));
        }
        self.queue.push_back(value);
        self.pushed += 1;
        self.high_water = self.high_water.max(self.queue.len());
        Ok(())
    }

    fn pop(&mut self) -> Option<u64> {
        let value = self.queue.pop_front()?;
        self.popped += 1;
        Some(value)
    }

    fn put(&mut self, value: u64) -> Result<(), PushError<u64>> {
        if self.letter.is_some() {
            return Err(PushError::Full(value));
        }
        self.letter = Some((value, self.pushed));
        Ok(())
    }
}

/// One random operation on both; they must agree on its result.
fn step(
    random: &mut Random,
    naive: &mut Naive,
    producer: &mut Producer<u64>,
    consumer: &mut Consumer<u64>,
) {
    let value = random.next();
    match random.below(10) {
        0 | 1 => assert_eq!(producer.try_push(value), naive.push(value)),
        2 => assert_eq!(producer.push_quiet(value), naive.push(value)),
        3 => {
            let mut values = value..value.saturating_add(random.below(6));
            let pushed = producer.push_from(&mut values.clone());
            let expected = values
                .by_ref()
                .take_while(|value| naive.push(*value).is_ok())
                .count();
            assert_eq!(pushed, expected);
        }
        4 | 5 => assert_eq!(consumer.try_pop().ok(), naive.pop()),
        6 => {
            let (max, taken) = (random.below(6) as usize, random.below(6) as usize);
            let expected: Vec<u64> = (0..max.min(taken)).map_while(|_| naive.pop()).collect();
            assert_eq!(
                consumer.pop_chunk(max).take(taken).collect::<Vec<_>>(),
                expected
            );
        }
        7 => assert_eq!(producer.try_push_priority(value), naive.put(value)),
        8 => assert_eq!(consumer.take_priority(), naive.letter.take()),
        _ => {
            let weight = random.below(1000);
            consumer.release(weight);
            naive.released += weight;
        }
    }
    assert_eq!(producer.len(), naive.queue.len());
    assert_eq!(consumer.len(), naive.queue.len());
    assert_eq!(consumer.peek(), naive.queue.front());
    assert_eq!(
        (producer.position(), consumer.position()),
        (naive.pushed, naive.popped)
    );
    assert_eq!(producer.released(), naive.released);
    assert_eq!(producer.high_water(), naive.high_water);
    assert_eq!(
        consumer.peek_priority(),
        naive.letter.map(|(_, position)| position)
    );
    let until = naive.popped + random.below(6);
    let ahead = (until - naive.popped) as usize;
    assert!(
        consumer
            .peek_until(until)
            .eq(naive.queue.iter().take(ahead))
    );
}

#[test]
fn every_operation_agrees_with_a_naive_queue() {
    let mut random = Random::new();
    for _ in 0..200 {
        let capacity = 1 + random.below(9) as usize;
        let (mut producer, mut consumer) = ring(capacity, Bell::thread(), Bell::thread());
        let mut naive = Naive {
            capacity,
            ..Naive::default()
        };
        for _ in 0..500 {
            step(&mut random, &mut naive, &mut producer, &mut consumer);
        }
    }
}

/// A number, and a handle that shows whether the element is still alive.
type Counted = (u64, Arc<()>);

/// Pushes 0, 1, 2 and so on in random ways, and priority values that say where
/// they were pushed. Returns how many elements it pushed.
fn push_randomly(mut producer: Producer<Counted>, mut random: Random, alive: Arc<()>) -> u64 {
    for _ in 0..1_000_000 {
        let next = producer.position();
        match random.below(8) {
            0 => producer.push_blocking((next, alive.clone()), None).unwrap(),
            1 => {
                let mut values = (next..).map(|value| (value, alive.clone())).take(5);
                producer.push_from(&mut values);
            }
            2 => {
                let mut values = next..next + random.below(4);
                // Stops at the first that is rejected: what follows may fit again.
                values.all(|value| producer.push_quiet((value, alive.clone())).is_ok());
                producer.wake();
            }
            3 if random.below(8) == 0 => {
                let _ = producer.try_push_priority((next, alive.clone()));
            }
            _ => {
                let _ = producer.try_push((next, alive.clone()));
            }
        }
        assert!(producer.high_water() <= producer.capacity());
    }
    let pushed = producer.position();
    producer.finish();
    pushed
}

/// Pops in random ways, checks that nothing is missing or out of order, and
/// returns how many elements came before the end.
fn pop_randomly(mut consumer: Consumer<Counted>, mut random: Random) -> u64 {
    let mut next = 0;
    let mut expect = |value: Counted| {
        assert_eq!(value.0, next);
        next += 1;
    };
    let mut letters = None;
    loop {
        if let Some((letter, position)) = consumer.take_priority() {
            assert_eq!(letter.0, position);
            assert!(letters <= Some(position));
            letters = Some(position);
        }
        let result = match random.below(4) {
            0 => consumer.try_pop(),
            1 => {
                let max = random.below(12) as usize;
                consumer.pop_chunk(max).take(6).for_each(&mut expect);
                continue;
            }
            2 => {
                let first = consumer.position();
                let queued: Vec<u64> = consumer
                    .peek_until(first + 4)
                    .map(|value| value.0)
                    .collect();
                assert!(
                    queued
                        .iter()
                        .copied()
                        .eq(first..first + queued.len() as u64)
                );
                consumer.pop_quiet().inspect(|_| consumer.wake())
            }
            _ => consumer.pop_blocking(None),
        };
        match result {
            Ok(value) => expect(value),
            Err(PopError::Empty) => {}
            Err(end) => {
                assert_eq!(end, PopError::Finished);
                return next;
            }
        }
    }
}

#[test]
fn a_million_random_steps_on_two_threads_lose_and_reorder_nothing() {
    let mut random = Random::new();
    let alive = Arc::new(());
    let capacity = 8 + random.below(60) as usize;
    let (producer, consumer) = ring(capacity, Bell::thread(), Bell::thread());
    let (pushing, popping) = (random.fork(), random.fork());
    let held = alive.clone();
    let pushing = thread::spawn(move || push_randomly(producer, pushing, held));
    let popped = pop_randomly(consumer, popping);
    assert_eq!(popped, pushing.join().unwrap());
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// One short life of a ring: what each half does before it goes.
struct Life {
    consumer: Consumer<Counted>,
    pushed: u64,
    finishes: bool,
    popped: u64,
}

fn live(mut life: Life) {
    for expected in 0..life.popped {
        match life.consumer.pop_blocking(None) {
            Ok(value) => assert_eq!(value.0, expected),
            Err(end) => {
                assert_eq!(expected, life.pushed, "elements were lost before the end");
                assert_eq!(end == PopError::Finished, life.finishes);
                return;
            }
        }
    }
}

#[test]
fn halves_that_go_at_random_moments_leak_and_lose_nothing() {
    let mut random = Random::new();
    let alive = Arc::new(());
    let (mut lives, mut to_live) = ring(4, Bell::thread(), Bell::thread());
    let living = thread::spawn(move || {
        while let Ok(life) = to_live.pop_blocking(None) {
            live(life);
        }
    });
    for _ in 0..20_000 {
        let capacity = 1 + random.below(4) as usize;
        let (mut producer, consumer) = ring(capacity, Bell::thread(), Bell::thread());
        let (pushed, popped) = (random.below(6), random.below(8));
        let finishes = random.below(2) == 0;
        lives
            .push_blocking(
                Life {
                    consumer,
                    pushed,
                    finishes,
                    popped,
                },
                None,
            )
            .unwrap();
        for value in 0..pushed {
            if producer
                .push_blocking((value, alive.clone()), None)
                .is_err()
            {
                break;
            }
        }
        if finishes {
            producer.finish();
        }
    }
    lives.finish();
    living.join().unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
}
