//! What a user is promised about where records go.

use super::*;

fn parallelism(subtasks: u32) -> Parallelism {
    Parallelism::new(subtasks).expect("a legal parallelism")
}

#[test]
fn the_hash_is_fnv_1a_of_64_bits() {
    // From the published test vectors of the hash.
    assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn a_key_has_the_same_group_every_time_and_the_group_exists() {
    for key in -500..500 {
        let group = key_group_of_hash(key_hash_i64(key));
        assert!(group < 128);
        assert_eq!(group, key_group(&key.to_le_bytes()));
    }
    let groups = [0, 1, 2, -1, 42].map(|key| key_group_of_hash(key_hash_i64(key)));
    assert_eq!(groups, [69, 36, 7, 61, 111]);
}

#[test]
fn the_ranges_of_all_subtasks_cover_every_group_once() {
    for subtasks in 1..=128 {
        let ranges = (0..subtasks).map(|subtask| key_group_range(subtask, parallelism(subtasks)));
        assert!(ranges.clone().flatten().eq(0..128));
        for (subtask, range) in ranges.enumerate() {
            for group in range {
                assert_eq!(subtask_of(group, parallelism(subtasks)) as usize, subtask);
            }
        }
    }
}

#[test]
fn doubling_the_subtasks_splits_each_in_two() {
    for group in 0..128 {
        let before = subtask_of(group, parallelism(2));
        let after = subtask_of(group, parallelism(4));
        assert!(after == 2 * before || after == 2 * before + 1);
    }
}

#[test]
fn keys_spread_over_the_subtasks_that_own_them() {
    let mut hit = [false; 6];
    for key in 0..500 {
        let subtask = subtask_of(key_group_of_hash(key_hash_i64(key)), parallelism(6));
        hit[subtask as usize] = true;
        assert_eq!(
            subtask_of(key_group_of_hash(key_hash_i64(key)), Parallelism::ONE),
            0
        );
    }
    assert_eq!(hit, [true; 6]);
}

#[test]
fn a_parallelism_without_a_key_group_for_each_subtask_is_refused() {
    assert_eq!(Parallelism::new(0), Err(ParallelismRefused::Zero));
    assert_eq!(parallelism(128).subtasks(), 128);
    let refused = Parallelism::new(129).expect_err("there are 128 key groups");
    assert_eq!(
        refused,
        ParallelismRefused::AboveKeyGroups { subtasks: 129 }
    );
    assert!(refused.to_string().contains("at most 128"));
}

#[test]
fn a_key_of_several_columns_is_hashed_as_nested_pairs() {
    let pair = key_hash_parts(&[b"alice", &1_i64.to_le_bytes()]);
    assert_eq!(pair, fnv1a64(b"\x05\0\0\0alice\x01\0\0\0\0\0\0\0"));
    let nested = key_hash_parts(&[b"a", b"bc", b"d"]);
    assert_eq!(nested, fnv1a64(b"\x01\0\0\0a\x02\0\0\0bcd"));
    assert_ne!(
        key_hash_parts(&[b"a", b"bc"]),
        key_hash_parts(&[b"ab", b"c"])
    );
    assert_eq!(key_hash_parts(&[b"alone"]), fnv1a64(b"alone"));
    assert_eq!(key_hash_parts(&[]), fnv1a64(b""));
}

#[test]
fn writing_in_pieces_hashes_like_writing_at_once() {
    let mut hash = Fnv1a::new();
    hash.write_u32(1);
    hash.write_u64(2);
    hash.write_i64(-3);
    hash.write(b"xy");
    let mut bytes = Vec::new();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(2_u64.to_le_bytes());
    bytes.extend((-3_i64).to_le_bytes());
    bytes.extend(b"xy");
    assert_eq!(hash.finish(), fnv1a64(&bytes));
    assert_eq!(Fnv1a::default(), Fnv1a::new());
}

#[test]
fn rebalanced_records_go_to_every_output_in_turn() {
    let mut rebalance = Rebalance::new();
    let outputs: Vec<usize> = (0..7).map(|_| rebalance.next_output(3)).collect();
    assert_eq!(outputs, [0, 1, 2, 0, 1, 2, 0]);
}
