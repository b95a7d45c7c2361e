//! The bytes that `tests/fuzz` begins with and those that it once found, and changes of them.
//!
//! Goal: no bytes, whoever made them, panic or give a batch that is unsound. Method: each function
//! of `fuzzed` over the files of `data/fuzz` and `data/bad-ipc`, over bytes that are right, and
//! over both with bytes changed at random.

use std::fs;
use std::path::{Path, PathBuf};

use ringway_tests::fuzzed::{TARGETS, seeds};
use ringway_tests::seed::Seeded;
use ringway_tests::sockets::bad_ipc;

/// Changes of each file and of each seed.
const CHANGES: usize = 60;

/// What a target begins with: its seeds, its files, and the broken Arrow streams where it reads Arrow.
fn beginnings(target: &str) -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz");
    let mut all = seeds(target);
    all.extend(files(&data.join(target)));
    if target.starts_with("ipc") {
        all.extend(files(&bad_ipc()));
    }
    assert!(!all.is_empty(), "{target} has nothing to begin with");
    all
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn changed(bytes: &[u8], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(bytes.len() as u64 + 1) as usize;
        match seeded.below(5) {
            0 if at < bytes.len() => bytes[at] = seeded.number() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
            2 if at < bytes.len() => bytes[at] = [0, 0x7f, 0x80, 0xff][seeded.below(4) as usize],
            3 => bytes.truncate(at),
            _ => bytes.insert(at, seeded.number() as u8),
        }
    }
    bytes
}

#[test]
fn bytes_that_are_kept_neither_panic_nor_give_what_is_unsound() {
    for (name, fuzzed) in TARGETS {
        beginnings(name).iter().for_each(|bytes| fuzzed(bytes));
    }
}

#[test]
fn changes_of_them_neither_panic_nor_give_what_is_unsound() {
    let mut seeded = Seeded::new();
    for (name, fuzzed) in TARGETS {
        for bytes in beginnings(name) {
            for _ in 0..CHANGES {
                fuzzed(&changed(&bytes, &mut seeded));
            }
        }
    }
}
