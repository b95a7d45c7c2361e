//! What the tests of links share.
#![allow(dead_code, reason = "each test crate uses a part")]

pub(crate) mod child;
pub(crate) mod forged;

use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;

use ringway_shm::Bell;
use ringway_shm::link::{Consumer, DESCRIPTORS, Incoming, LinkConfig, Outgoing, Producer};

/// A link whose two halves are in this process, each with its own mappings.
pub(crate) fn pair(config: &LinkConfig) -> (Producer, Consumer) {
    let (to_producer, to_consumer) = (bell(), bell());
    let outgoing = Outgoing::new(config, &to_producer).unwrap();
    let incoming = Incoming::new(&to_consumer).unwrap();
    let (ours, theirs) = (
        copies(outgoing.descriptors()),
        copies(incoming.descriptors()),
    );
    let producer = outgoing.meet(theirs).unwrap();
    let consumer = incoming.meet(ours, usize::MAX).unwrap();
    (producer, consumer)
}

pub(crate) fn bell() -> Bell {
    Bell::descriptor().unwrap()
}

pub(crate) fn copies(
    descriptors: [std::os::fd::BorrowedFd<'_>; DESCRIPTORS],
) -> [OwnedFd; DESCRIPTORS] {
    descriptors.map(|descriptor| descriptor.try_clone_to_owned().unwrap())
}

/// The smallest link.
pub(crate) fn small() -> LinkConfig {
    LinkConfig {
        arena_bytes: 0,
        messages_max: 64,
        ..LinkConfig::default()
    }
}

/// A small generator (splitmix64), so that a seed means the same for ever.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn new() -> Random {
        let seed = match std::env::var("RINGWAY_SEED") {
            Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
            Err(_) => RandomState::new().hash_one(0),
        };
        println!("RINGWAY_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The bytes of the message with this number, so that a reader knows what must come.
pub(crate) fn content(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random(number);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// How many files this process has open.
///
/// Pipes are not counted: no link has any, but a sanitizer does, once it has looked up a name.
pub(crate) fn open_files() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = all.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let is_pipe = |target: &std::path::PathBuf| target.to_string_lossy().starts_with("pipe:");
    targets.filter(|target| !is_pipe(target)).count()
}

/// How many mappings of segments this process has.
pub(crate) fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd:")).count()
}
