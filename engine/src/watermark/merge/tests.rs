//! What a subtask is promised by its merged watermark.

use super::*;

fn active(timestamp: EventTime) -> Option<Watermark> {
    Some(Watermark::active(timestamp))
}

fn tell(merge: &mut WatermarkMerge, input: usize, timestamp: EventTime) -> Option<Watermark> {
    merge.on_watermark(input, Watermark::active(timestamp))
}

fn tell_idle(merge: &mut WatermarkMerge, input: usize) -> Option<Watermark> {
    merge.on_watermark(input, Watermark::idle(99))
}

#[test]
fn the_merged_watermark_is_the_lowest() {
    let mut merge = WatermarkMerge::new(3);
    assert_eq!(tell(&mut merge, 0, 100), None);
    assert_eq!(tell(&mut merge, 1, 200), None);
    assert_eq!(tell(&mut merge, 2, 50), active(50));
    assert_eq!(tell(&mut merge, 2, 150), active(100));
    assert_eq!(merge.current(), 100);
}

#[test]
fn a_closed_input_holds_nothing_back() {
    let mut merge = WatermarkMerge::new(2);
    assert_eq!(tell(&mut merge, 0, 10), None);
    merge.close(1);
    assert_eq!(merge.refresh(), active(10));
    assert_eq!(tell(&mut merge, 0, 500), active(500));
    assert_eq!(tell(&mut merge, 1, 7), None);
    merge.close(0);
    merge.close(0);
    assert_eq!(merge.refresh(), Some(Watermark::MAX));
    assert_eq!(merge.refresh(), None);
}

#[test]
fn an_idle_input_holds_nothing_back_and_comes_back_no_lower() {
    let mut merge = WatermarkMerge::new(2);
    assert_eq!(tell(&mut merge, 0, 100), None);
    assert_eq!(tell(&mut merge, 1, 50), active(50));
    assert_eq!(tell_idle(&mut merge, 1), active(100));
    assert_eq!(tell(&mut merge, 1, 70), None);
    assert_eq!(tell(&mut merge, 0, 200), None);
    assert_eq!(tell(&mut merge, 1, 150), active(150));
}

#[test]
fn idleness_of_all_is_said_once() {
    let mut merge = WatermarkMerge::new(2);
    assert_eq!(tell(&mut merge, 0, 100), None);
    assert_eq!(tell(&mut merge, 1, 100), active(100));
    assert_eq!(tell_idle(&mut merge, 0), None);
    assert_eq!(tell_idle(&mut merge, 1), Some(Watermark::idle(100)));
    assert_eq!(tell_idle(&mut merge, 1), None);
    assert_eq!(tell(&mut merge, 0, 3), active(100), "it is active again");
    merge.close(0);
    assert_eq!(merge.refresh(), Some(Watermark::idle(100)));
}

#[test]
fn the_end_of_all_inputs_is_the_end_of_time_even_after_idleness() {
    let mut merge = WatermarkMerge::new(2);
    assert_eq!(tell_idle(&mut merge, 0), None);
    assert_eq!(
        tell_idle(&mut merge, 1),
        Some(Watermark::idle(EVENT_TIME_MIN))
    );
    merge.close(0);
    merge.close(1);
    assert_eq!(merge.refresh(), Some(Watermark::MAX));
}

#[test]
fn an_added_input_holds_the_watermark_where_it_is() {
    let mut merge = WatermarkMerge::new(0);
    assert_eq!(merge.refresh(), None);
    assert_eq!(merge.add_input(), 0);
    assert_eq!(tell(&mut merge, 0, 10), active(10));
    assert_eq!(merge.add_input(), 1);
    assert_eq!(tell(&mut merge, 0, 20), None);
    assert_eq!(tell(&mut merge, 1, 5), None);
    assert_eq!(tell(&mut merge, 1, 30), active(20));
    assert_eq!(merge.input_count(), 2);
}

#[test]
fn a_source_that_never_speaks_holds_back_until_it_is_idle() {
    // Three inputs of which the third says nothing and the second falls silent.
    let mut merge = WatermarkMerge::new(3);
    assert_eq!(tell(&mut merge, 0, 1000), None);
    assert_eq!(tell(&mut merge, 1, 1000), None);
    assert_eq!(tell(&mut merge, 0, 5000), None);
    assert_eq!(tell_idle(&mut merge, 2), active(1000));
    assert_eq!(tell_idle(&mut merge, 1), active(5000));
    assert_eq!(tell(&mut merge, 1, 3000), None, "no step back");
    assert_eq!(tell(&mut merge, 1, 6000), None);
    assert_eq!(tell(&mut merge, 0, 6000), active(6000));
    assert_eq!(tell(&mut merge, 2, 7000), None);
}
