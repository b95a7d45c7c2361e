//! The structs that the tests derive for, and random ones.

use std::collections::BTreeMap;

use ringway::batch::{Row, Rows};
use ringway::batcher::Columnar;
use ringway_tests::seed::Seeded;

/// What a trade might be.
#[derive(Clone, Debug, PartialEq, Columnar)]
pub(crate) struct Trade {
    pub(crate) id: i64,
    pub(crate) symbol: String,
    pub(crate) price: f64,
    pub(crate) live: bool,
    #[columnar(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) legs: Vec<Leg>,
}

/// A struct within a struct, in a list and in an option.
#[derive(Clone, Debug, PartialEq, Columnar)]
pub(crate) struct Leg {
    pub(crate) venue: String,
    pub(crate) quantity: Option<i32>,
}

/// Every type that a field may have.
#[derive(Clone, Debug, Default, PartialEq, Columnar)]
pub(crate) struct Everything {
    pub(crate) i8: i8,
    pub(crate) i16: i16,
    pub(crate) i32: i32,
    pub(crate) i64: i64,
    pub(crate) u8: u8,
    pub(crate) u16: u16,
    pub(crate) u32: u32,
    pub(crate) u64: u64,
    pub(crate) f32: f32,
    pub(crate) f64: f64,
    pub(crate) bool: bool,
    pub(crate) text: String,
    pub(crate) optional: Optional,
    pub(crate) many: Many,
    pub(crate) nested: Option<Many>,
}

/// Options of every kind.
#[derive(Clone, Debug, Default, PartialEq, Columnar)]
pub(crate) struct Optional {
    pub(crate) number: Option<u16>,
    pub(crate) real: Option<f32>,
    pub(crate) flag: Option<bool>,
    pub(crate) text: Option<String>,
    pub(crate) list: Option<Vec<String>>,
    pub(crate) map: Option<BTreeMap<u8, bool>>,
}

/// Lists and maps of every kind.
#[derive(Clone, Debug, Default, PartialEq, Columnar)]
pub(crate) struct Many {
    pub(crate) numbers: Vec<i32>,
    pub(crate) flags: Vec<bool>,
    pub(crate) holes: Vec<Option<i64>>,
    pub(crate) lists: Vec<Vec<String>>,
    pub(crate) structs: Vec<Option<Optional>>,
    pub(crate) by_text: BTreeMap<String, i64>,
    pub(crate) by_number: BTreeMap<i64, Option<String>>,
    pub(crate) of_lists: BTreeMap<bool, Vec<Option<u8>>>,
}

/// Rows of every type of field.
pub(crate) fn random_rows(seed: &mut Seeded, rows: u64) -> Rows<Everything> {
    let row = |seed: &mut Seeded| Row {
        value: everything(seed),
        event_time: option(seed, integer),
    };
    (0..rows).map(|_| row(seed)).collect()
}

fn everything(seed: &mut Seeded) -> Everything {
    Everything {
        i8: integer(seed) as i8,
        i16: integer(seed) as i16,
        i32: integer(seed) as i32,
        i64: integer(seed),
        u8: integer(seed) as u8,
        u16: integer(seed) as u16,
        u32: integer(seed) as u32,
        u64: integer(seed) as u64,
        f32: real(seed) as f32,
        f64: real(seed),
        bool: flag(seed),
        text: text(seed),
        optional: optional(seed),
        many: many(seed),
        nested: option(seed, many),
    }
}

fn optional(seed: &mut Seeded) -> Optional {
    Optional {
        number: option(seed, |seed| integer(seed) as u16),
        real: option(seed, |seed| real(seed) as f32),
        flag: option(seed, flag),
        text: option(seed, text),
        list: option(seed, |seed| list(seed, text)),
        map: option(seed, |seed| map(seed, |seed| integer(seed) as u8, flag)),
    }
}

fn many(seed: &mut Seeded) -> Many {
    Many {
        numbers: list(seed, |seed| integer(seed) as i32),
        flags: list(seed, flag),
        holes: list(seed, |seed| option(seed, integer)),
        lists: list(seed, |seed| list(seed, text)),
        structs: list(seed, |seed| option(seed, optional)),
        by_text: map(seed, text, integer),
        by_number: map(seed, integer, |seed| option(seed, text)),
        of_lists: map(seed, flag, |seed| {
            list(seed, |seed| option(seed, |seed| integer(seed) as u8))
        }),
    }
}

fn integer(seed: &mut Seeded) -> i64 {
    match seed.below(4) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => seed.below(3) as i64 - 1,
        _ => seed.number() as i64,
    }
}

/// Numbers that are equal to themselves, so that structs can be compared.
fn real(seed: &mut Seeded) -> f64 {
    const EXTREMES: [f64; 6] = [0.0, -0.0, f64::INFINITY, f64::MIN, f64::MAX, 5e-324];
    match seed.below(8) {
        at @ 0..6 => EXTREMES[at as usize],
        _ => seed.number() as f64 / 7.0,
    }
}

fn flag(seed: &mut Seeded) -> bool {
    seed.below(2) == 0
}

fn text(seed: &mut Seeded) -> String {
    let letters = ['a', '\0', '\n', 'é', '漢', '\u{10ffff}'];
    let len = seed.below(6);
    let letter = |seed: &mut Seeded| letters[seed.below(6) as usize];
    (0..len).map(|_| letter(seed)).collect()
}

fn option<T>(seed: &mut Seeded, value: impl Fn(&mut Seeded) -> T) -> Option<T> {
    (seed.below(3) > 0).then(|| value(seed))
}

fn list<T>(seed: &mut Seeded, value: impl Fn(&mut Seeded) -> T) -> Vec<T> {
    let len = seed.below(4);
    (0..len).map(|_| value(seed)).collect()
}

fn map<K: Ord, V>(
    seed: &mut Seeded,
    key: impl Fn(&mut Seeded) -> K,
    value: impl Fn(&mut Seeded) -> V,
) -> BTreeMap<K, V> {
    let len = seed.below(4);
    (0..len).map(|_| (key(seed), value(seed))).collect()
}
