//! Batches of every type in regions of memory: what is written is read, and what somebody else
//! has changed is refused or read as something that is sound.

use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use ringway::wire::region::{RegionDecoder, RegionEncoder, RegionKind};
use ringway_tests::columns::{ROWS, columns};
use ringway_tests::seed::Seeded;

/// Slices, the whole and nothing among them.
const SLICES: [(usize, usize); 6] = [(0, ROWS), (0, 0), (3, 5), (7, 5), (ROWS, 0), (1, 1)];

/// How often each region is changed.
const CHANGES: usize = 300;

fn batches() -> Vec<(String, RecordBatch)> {
    let all = columns();
    let mut batches: Vec<(String, RecordBatch)> = all
        .iter()
        .map(|(name, column)| {
            let batch = RecordBatch::try_from_iter([("column", Arc::clone(column))]);
            (name.clone(), batch.unwrap())
        })
        .collect();
    let together = RecordBatch::try_from_iter(all).unwrap();
    batches.push(("all of them".to_owned(), together));
    batches
}

fn region(encoder: &mut RegionEncoder, batch: &RecordBatch) -> (RegionKind, Vec<u8>) {
    let prepared = encoder.prepare(batch).unwrap();
    let mut region = Vec::new();
    encoder.write(7, &mut region);
    assert_eq!(region.len(), prepared.bytes);
    (prepared.kind, region)
}

#[test]
fn batches_of_every_type_and_their_slices_come_back_as_they_were() {
    let (mut flat, mut messages) = (0, 0);
    for (name, whole) in batches() {
        for copies in [false, true] {
            let mut encoder = RegionEncoder::new();
            let mut decoder = RegionDecoder::new(copies);
            for (start, rows) in SLICES {
                let batch = whole.slice(start, rows);
                let (kind, region) = region(&mut encoder, &batch);
                match kind {
                    RegionKind::Flat => flat += 1,
                    RegionKind::Messages => messages += 1,
                }
                let decoded = decoder.decode(kind, Bytes::from(region.clone())).unwrap();
                assert_eq!(decoded, batch, "{name}, {start} and {rows}");
                assert_eq!(decoded.schema(), batch.schema());
                let decoded = match kind {
                    RegionKind::Flat => decoder.decode_copied(kind, &region).unwrap(),
                    // Its dictionaries came before, and would come again.
                    RegionKind::Messages => decoded,
                };
                assert_eq!(decoded, batch, "{name}, {start} and {rows}, copied");
            }
        }
    }
    assert!(flat > messages && messages > 0);
}

/// Nothing that the decoder gives may be unsound: all values are looked at, and encoded again.
#[test]
fn a_region_that_somebody_has_changed_is_refused_or_sound() {
    let mut seed = Seeded::new();
    let (mut refused, mut taken) = (0, 0);
    for (name, whole) in batches() {
        let mut encoder = RegionEncoder::new();
        let (_, first) = region(&mut encoder, &whole);
        let (kind, second) = region(&mut encoder, &whole.slice(2, 9));
        for change in 0..CHANGES {
            let with_schema = change % 4 == 0;
            let sound = if with_schema { &first } else { &second };
            let mut changed = sound.clone();
            for _ in 0..=seed.below(3) {
                let at = seed.below(changed.len() as u64) as usize;
                changed[at] = match seed.below(3) {
                    0 => 0,
                    1 => 0xff,
                    _ => changed[at] ^ (1 << seed.below(8)),
                };
            }
            if seed.below(10) == 0 {
                changed.truncate(seed.below(changed.len() as u64) as usize);
            }
            let mut decoder = RegionDecoder::new(false);
            if !with_schema {
                decoder.decode_copied(kind, &first).unwrap();
            }
            match decoder.decode(kind, Bytes::from(changed)) {
                Ok(batch) => {
                    taken += 1;
                    assert!(!format!("{batch:?}").is_empty());
                    let again = RegionEncoder::new().prepare(&batch);
                    assert!(again.is_ok(), "{name}: {again:?}");
                }
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(!text.contains("panicked"), "{name}: {text}");
                }
            }
        }
    }
    assert!(refused > 0 && taken > 0, "{refused} refused, {taken} taken");
}
