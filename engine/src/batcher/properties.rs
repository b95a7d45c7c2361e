//! Goal: what was built comes back, whatever the rows. Method: random rows of every built-in
//! type; the seed is printed on failure and `RINGWAY_SEED` replays it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use super::{Batchable, Coded, choose_batcher};
use crate::batch::{Row, Rows};

/// Runs `check` on values of `strategy`.
pub(crate) fn holds<S: Strategy>(strategy: S, check: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    let seed = std::env::var("RINGWAY_SEED").map_or_else(
        |_| RandomState::new().hash_one(0),
        |seed| seed.parse().expect("RINGWAY_SEED is a number"),
    );
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&u64::to_le_bytes(seed));
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    match TestRunner::new_with_rng(config, rng).run(&strategy, check) {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => panic!("RINGWAY_SEED={seed}: {why}: {value:#?}"),
        Err(other) => panic!("RINGWAY_SEED={seed}: {other}"),
    }
}

fn rows_of<T: Debug>(values: impl Strategy<Value = T>) -> impl Strategy<Value = Rows<T>> {
    let time = prop_oneof![
        2 => Just(None),
        1 => Just(Some(i64::MIN)),
        1 => Just(Some(i64::MAX)),
        4 => any::<i64>().prop_map(Some),
    ];
    let row = (time, values).prop_map(|(event_time, value)| Row { value, event_time });
    prop::collection::vec(row, 0..80).prop_map(Rows::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[\\x00\\n\\t漢é ]{0,8}", "\\PC{0,20}"]
}

fn comes_back<T>(values: impl Strategy<Value = T>)
where
    T: Batchable + Clone + PartialEq + Debug,
{
    let batcher = choose_batcher::<T>(None);
    holds(rows_of(values), |rows| {
        let batch = batcher.build(&rows).unwrap();
        prop_assert_eq!(batch.schema(), batcher.schema());
        prop_assert_eq!(batch.num_rows(), rows.len());
        let parsed = batcher.parse(&batch).unwrap();
        prop_assert_eq!(&parsed, &rows);
        let from = rows.len() / 3;
        let sliced = batcher
            .parse(&batch.slice(from, rows.len() - from))
            .unwrap();
        prop_assert_eq!(sliced.into_vec(), rows.into_vec().split_off(from));
        Ok(())
    });
}

#[test]
fn rows_of_every_built_in_type_come_back() {
    comes_back(any::<i64>());
    comes_back(any::<i32>());
    comes_back(any::<u32>());
    comes_back(any::<u64>());
    comes_back(text());
    comes_back(any::<(i64, i64)>());
    comes_back((text(), any::<i64>()));
}

#[test]
fn rows_of_coded_types_come_back() {
    comes_back(prop::collection::vec(any::<u8>(), 0..20));
    comes_back((text(), (any::<u64>(), text())));
    comes_back(prop::collection::vec(prop::option::of(text()), 0..5));
    comes_back(prop::option::of(prop::option::of(any::<i16>())));
    comes_back(prop::collection::btree_map(
        text(),
        any::<(bool, i8)>(),
        0..5,
    ));
    comes_back(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::INFINITE);
}

#[test]
fn arbitrary_bytes_never_panic_and_what_decodes_encodes_to_the_same_bytes() {
    type Nested = Vec<(Option<String>, Vec<(i16, bool)>)>;
    let small = prop_oneof![3 => 0..4_u8, 1 => any::<u8>()];
    holds(prop::collection::vec(small, 0..40), |bytes| {
        if let Ok(value) = Nested::decode(&bytes) {
            let mut again = Vec::new();
            value.encode(&mut again).unwrap();
            prop_assert_eq!(&again, &bytes);
        }
        // A map may come in any order, so only its value is kept.
        if let Ok(map) = BTreeMap::<Vec<u8>, Option<bool>>::decode(&bytes) {
            let mut again = Vec::new();
            map.encode(&mut again).unwrap();
            prop_assert_eq!(again.len(), bytes.len());
            prop_assert_eq!(BTreeMap::decode(&again).unwrap(), map);
        }
        Ok(())
    });
}
