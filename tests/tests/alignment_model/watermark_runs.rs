//! Random sequences for merged watermarks and for those of a source.

use ringway::element::Watermark;
use ringway::watermark::{WatermarkGenerator, WatermarkMerge, WatermarkStrategy};
use ringway_tests::seed::Seeded;

use super::for_each_seed;
use super::generator_model::{GeneratorModel, SPLITS, Told};
use super::merge_model::MergeModel;

#[test]
fn merged_watermarks_agree_with_a_naive_model() {
    for_each_seed(|seed| {
        let mut random = Seeded::from_seed(seed);
        let inputs = 1 + random.below(9) as usize;
        let (mut merge, mut model) = (WatermarkMerge::new(inputs), MergeModel::new(inputs));
        for _ in 0..60 {
            let input = random.below(merge.input_count() as u64) as usize;
            match random.below(20) {
                0 => {
                    merge.close(input);
                    model.close(input);
                }
                1 => assert_eq!(merge.add_input(), model.add_input()),
                2 | 3 => assert_eq!(merge.refresh(), model.refresh()),
                kind => {
                    let timestamp = match random.below(40) {
                        0 => i64::MAX,
                        1 => i64::MIN,
                        _ => random.below(100) as i64 - 50,
                    };
                    let watermark = Watermark {
                        timestamp,
                        idle: kind < 8,
                    };
                    let merged = merge.on_watermark(input, watermark);
                    assert_eq!(merged, model.on_watermark(input, watermark));
                }
            }
            assert_eq!(merge.current(), model.current());
        }
    });
}

#[test]
fn watermarks_of_splits_agree_with_a_naive_model() {
    for_each_seed(|seed| {
        let mut random = Seeded::from_seed(seed);
        let bound_ms = random.below(3) * 10;
        let idle_after_ms = (random.below(3) > 0).then(|| 1 + random.below(20));
        let mut strategy = WatermarkStrategy::bounded_out_of_orderness(bound_ms).per_split();
        if let Some(quiet_ms) = idle_after_ms {
            strategy = strategy.idle_after(quiet_ms);
        }
        let mut generator = WatermarkGenerator::new(strategy);
        let mut model = GeneratorModel::new(bound_ms, idle_after_ms);
        let mut now_ms = 0;
        for _ in 0..40 {
            let told = next_told(&model, &mut random, &mut now_ms);
            match told {
                Told::Announced(split, earliest) => generator.split_announced(split, earliest),
                Told::Opened(split) => generator.split_opened(split),
                Told::Record(split, time) => generator.observe(split, time),
                Told::Finished(split) => generator.split_finished(split),
                Told::Poll(now_ms) => {
                    let given = generator.poll(now_ms);
                    assert_eq!(given, model.poll(now_ms), "{:#?}", model.history);
                    continue;
                }
            }
            model.history.push(told);
        }
    });
}

/// Something that a source may tell now.
fn next_told(model: &GeneratorModel, random: &mut Seeded, now_ms: &mut i64) -> Told {
    let split = random.below(SPLITS);
    let time = Some(random.below(200) as i64 - 100);
    match random.below(12) {
        0 if !model.is_open(split) => Told::Announced(split, time.filter(|_| split > 1)),
        1 | 2 if !model.is_open(split) => Told::Opened(split),
        3 if model.is_known(split) => Told::Finished(split),
        4..=6 if model.is_open(split) => Told::Record(split, time),
        7 if model.is_open(split) => Told::Record(split, None),
        _ => {
            *now_ms += random.below(12) as i64;
            Told::Poll(*now_ms)
        }
    }
}
