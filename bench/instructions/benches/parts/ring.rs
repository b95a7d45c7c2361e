//! The ring, with both ends on one thread.

use std::hint::black_box;

use gungraun::prelude::*;
use ringway_shm::{Bell, Consumer, Producer, ring};

fn numbers() -> (Producer<u64>, Consumer<u64>) {
    ring(1024, Bell::thread(), Bell::thread())
}

#[library_benchmark]
#[bench::u64(numbers())]
pub(crate) fn push_64_and_pop_64(
    (mut producer, mut consumer): (Producer<u64>, Consumer<u64>),
) -> (Producer<u64>, Consumer<u64>) {
    for number in 0..64 {
        let pushed = producer.try_push(black_box(number));
        assert!(pushed.is_ok());
    }
    for _ in 0..64 {
        let popped = black_box(consumer.try_pop());
        assert!(popped.is_ok());
    }
    (producer, consumer)
}
