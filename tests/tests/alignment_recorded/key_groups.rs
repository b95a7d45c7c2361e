//! Key groups and subtasks, by their definition and as they are recorded.

use ringway::partition::{
    Parallelism, fnv1a64, key_group, key_group_of_hash, key_group_range, key_hash_i64, subtask_of,
};

use super::recorded;

const RECORDED_PARALLELISMS: [u32; 7] = [1, 2, 3, 4, 5, 8, 128];

#[test]
fn every_group_belongs_to_the_subtask_whose_range_holds_it() {
    for subtasks in 1..=128 {
        let parallelism = Parallelism::new(subtasks).expect("a legal parallelism");
        let mut next = 0;
        for subtask in 0..subtasks {
            let range = key_group_range(subtask, parallelism);
            assert_eq!(range.start, next);
            assert!(!range.is_empty(), "each subtask has work");
            next = range.end;
            assert!(
                range
                    .into_iter()
                    .all(|group| subtask_of(group, parallelism) == subtask)
            );
        }
        assert_eq!(next, 128);
    }
}

#[test]
fn keys_go_where_they_are_written_down_to_go() {
    check(
        "int64le 7 4bd7a317074c5b62 98 0 1 2 3 3 6 98
p=2: [0,64) [64,128)",
    );
    if let Some(text) = recorded("key_groups.txt") {
        let (keys, ranges) = check(&text);
        assert!(keys > 10 && ranges > 5);
    }
}

/// Checks lines of keys and of ranges. Returns the number of each.
fn check(text: &str) -> (usize, usize) {
    let (mut keys, mut ranges) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(line) = line.strip_prefix("p=") {
            check_ranges(line);
            ranges += 1;
        } else {
            check_key(line);
            keys += 1;
        }
    }
    (keys, ranges)
}

/// A line such as `int64le 42 <hash> <group> <subtask at each parallelism>`.
fn check_key(line: &str) {
    let (kind, rest) = line.split_once(' ').expect("kind and value");
    let (value, fields) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').expect("a closing quote"),
        None => rest.split_once(' ').expect("value and hash"),
    };
    let (hash, group) = match kind {
        "int64le" => {
            let hash = key_hash_i64(value.parse().expect("an integer"));
            (hash, key_group_of_hash(hash))
        }
        "bytes" => (fnv1a64(value.as_bytes()), key_group(value.as_bytes())),
        other => panic!("there is no kind {other}"),
    };
    let subtasks = RECORDED_PARALLELISMS.map(|subtasks| {
        let parallelism = Parallelism::new(subtasks).expect("a legal parallelism");
        subtask_of(group, parallelism).to_string()
    });
    let ours = format!("{hash:016x} {group} {}", subtasks.join(" "));
    assert_eq!(ours, fields.trim(), "{line}");
}

/// A line such as `4: [0,32) [32,64) [64,96) [96,128)`.
fn check_ranges(line: &str) {
    let (subtasks, ranges) = line.split_once(": ").expect("parallelism and ranges");
    let subtasks = subtasks.parse().expect("a parallelism");
    let parallelism = Parallelism::new(subtasks).expect("a legal parallelism");
    let ours: Vec<String> = (0..subtasks)
        .map(|subtask| key_group_range(subtask, parallelism))
        .map(|range| format!("[{},{})", range.start, range.end))
        .collect();
    assert_eq!(ours.join(" "), ranges);
}
