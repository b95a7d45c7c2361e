//! What a source is promised by its watermarks.

use super::*;
use crate::element::EVENT_TIME_MAX;

fn active(timestamp: EventTime) -> Option<Watermark> {
    Some(Watermark::active(timestamp))
}

#[test]
fn a_monotonic_watermark_is_the_highest_time_and_given_on_change_only() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic());
    assert_eq!(generator.poll(0), None);
    generator.observe(0, Some(5));
    generator.observe(0, Some(3));
    assert_eq!(generator.poll(1), active(5));
    assert_eq!(generator.poll(2), None);
    generator.observe(0, Some(4));
    assert_eq!(generator.poll(3), None);
    generator.observe_max(7, Some(6));
    assert_eq!(generator.poll(4), active(6));
    assert_eq!(generator.current(), 6);
    assert_eq!(generator.idle_at(), None);
}

#[test]
fn a_bounded_watermark_stays_behind_by_its_bound() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::bounded_out_of_orderness(10));
    generator.observe(0, Some(100));
    assert_eq!(generator.poll(0), active(90));
    generator.observe(0, Some(95));
    assert_eq!(generator.poll(0), None);
    generator.observe(0, Some(101));
    assert_eq!(generator.poll(0), active(91));
}

#[test]
fn extreme_times_saturate() {
    for bound in [0, 1, u64::MAX] {
        let strategy = WatermarkStrategy::bounded_out_of_orderness(bound);
        let mut generator = WatermarkGenerator::new(strategy.idle_after(u64::MAX));
        generator.observe(0, Some(EVENT_TIME_MIN));
        assert_eq!(
            generator.poll(i64::MAX),
            None,
            "nothing is below the beginning of time"
        );
        generator.observe(0, Some(EVENT_TIME_MAX));
        let expected = EVENT_TIME_MAX.saturating_sub_unsigned(bound);
        let given = generator.poll(i64::MAX);
        assert_eq!(
            given,
            (expected > EVENT_TIME_MIN).then_some(Watermark::active(expected))
        );
    }
}

#[test]
fn records_without_event_time_move_nothing() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic());
    generator.observe(0, None);
    assert_eq!(generator.poll(0), None);
    generator.observe(0, Some(-7));
    generator.observe_max(0, None);
    assert_eq!(generator.poll(0), active(-7));
}

#[test]
fn the_lowest_of_the_open_splits_counts() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().per_split());
    generator.split_opened(1);
    generator.split_opened(2);
    generator.observe(1, Some(100));
    assert_eq!(generator.poll(0), None, "split 2 has not spoken");
    generator.observe(2, Some(40));
    assert_eq!(generator.poll(0), active(40));
    generator.split_finished(2);
    assert_eq!(generator.poll(0), active(100));
    generator.split_finished(1);
    assert_eq!(
        generator.poll(0),
        None,
        "only the source's end is the end of time"
    );
}

#[test]
fn a_split_that_nobody_opened_holds_the_watermark_back() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().per_split());
    for split in 0..3 {
        generator.split_announced(split, None);
    }
    generator.split_opened(0);
    generator.observe(0, Some(100));
    assert_eq!(generator.poll(0), None);
    generator.split_finished(0);
    generator.split_opened(1);
    generator.observe(1, Some(50));
    assert_eq!(generator.poll(0), None);
    generator.split_finished(2);
    assert_eq!(
        generator.poll(0),
        active(50),
        "another subtask opened split 2"
    );
}

#[test]
fn a_split_whose_earliest_time_is_known_holds_back_no_further() {
    let strategy = WatermarkStrategy::bounded_out_of_orderness(10).per_split();
    let mut generator = WatermarkGenerator::new(strategy);
    generator.split_announced(0, Some(0));
    generator.split_announced(1, Some(1000));
    assert_eq!(generator.poll(0), active(0));
    generator.split_opened(0);
    generator.observe(0, Some(5000));
    assert_eq!(generator.poll(0), active(1000));
    generator.split_opened(1);
    generator.observe(1, Some(1003));
    assert_eq!(
        generator.poll(0),
        None,
        "no record of it is earlier than it said"
    );
    generator.observe(1, Some(1200));
    assert_eq!(generator.poll(0), active(1190));
}

#[test]
fn a_new_split_never_takes_the_watermark_back() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().per_split());
    generator.split_opened(0);
    generator.observe(0, Some(100));
    assert_eq!(generator.poll(0), active(100));
    generator.split_opened(1);
    generator.observe(1, Some(20));
    generator.observe(0, Some(200));
    assert_eq!(generator.poll(0), None);
    generator.observe(1, Some(150));
    assert_eq!(generator.poll(0), active(150));
}

#[test]
fn a_quiet_source_says_once_that_it_is_idle_and_the_next_record_that_it_is_not() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().idle_after(100));
    generator.observe(0, Some(5));
    assert_eq!(generator.poll(1000), active(5));
    assert_eq!(generator.idle_at(), Some(1100));
    assert_eq!(generator.poll(1099), None);
    assert_eq!(generator.poll(1100), Some(Watermark::idle(5)));
    assert_eq!(generator.idle_at(), None);
    assert_eq!(generator.poll(5000), None);
    generator.observe(0, Some(4));
    assert_eq!(generator.poll(6000), active(5), "active at the same time");
    generator.observe(0, None);
    assert_eq!(generator.poll(6050), None);
    assert_eq!(generator.poll(6149), None);
    assert_eq!(generator.poll(6150), Some(Watermark::idle(5)));
}

#[test]
fn a_source_without_any_record_becomes_idle_too() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().idle_after(100));
    assert_eq!(generator.poll(0), None);
    assert_eq!(generator.poll(100), Some(Watermark::idle(EVENT_TIME_MIN)));
    generator.observe(0, None);
    assert_eq!(
        generator.poll(101),
        active(EVENT_TIME_MIN),
        "it holds others back again"
    );
}

#[test]
fn a_quiet_split_holds_back_no_longer_than_its_idle_time() {
    let strategy = WatermarkStrategy::monotonic().per_split().idle_after(100);
    let mut generator = WatermarkGenerator::new(strategy);
    generator.split_opened(0);
    generator.split_opened(1);
    generator.observe(0, Some(10));
    generator.observe(1, Some(20));
    assert_eq!(generator.poll(0), active(10));
    generator.observe(1, Some(30));
    assert_eq!(generator.poll(60), None);
    assert_eq!(generator.idle_at(), Some(100));
    assert_eq!(generator.poll(100), active(30), "split 0 is idle");
    generator.observe(0, Some(15));
    assert_eq!(generator.poll(120), None, "no step back");
    assert_eq!(generator.poll(160), None, "split 1 is idle now");
    assert_eq!(generator.poll(220), Some(Watermark::idle(30)));
}

#[test]
fn a_source_with_a_split_that_nobody_opened_is_never_idle() {
    let strategy = WatermarkStrategy::monotonic().per_split().idle_after(100);
    let mut generator = WatermarkGenerator::new(strategy);
    generator.split_announced(0, None);
    assert_eq!(generator.poll(0), None);
    assert_eq!(generator.poll(10_000), None);
    generator.split_finished(0);
    assert_eq!(generator.poll(10_000), None);
    assert_eq!(
        generator.poll(10_100),
        Some(Watermark::idle(EVENT_TIME_MIN))
    );
}

#[test]
#[should_panic(expected = "split 3 is read but was not opened")]
fn reading_a_split_that_was_not_opened_is_a_mistake() {
    let mut generator = WatermarkGenerator::new(WatermarkStrategy::monotonic().per_split());
    generator.split_announced(3, None);
    generator.observe(3, Some(1));
}
