//! Which segments are made, and which of a peer are refused and how.

mod common;

use std::os::fd::OwnedFd;

use common::child::alone;
use common::forged::{
    ARENA, ARENA_OFFSET, Forged, PAGE, RETURNS, VERSION, all_seals, consumer_header,
    producer_header,
};
use common::{Random, bell, copies, mappings, open_files, pair, small};
use ringway_shm::Bell;
use ringway_shm::link::{Incoming, LinkConfig, Outgoing};
use ringway_shm::segment::{OpenError, Pages, PagesInUse};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const NO_LIMIT: usize = usize::MAX;

/// Why a consumer refuses a producer's segment.
fn refusal(header: [u64; 8], bytes: u64, seals: SealFlags) -> OpenError {
    let forged = Forged::new(header, bytes, seals);
    forged.try_consumer(NO_LIMIT).map(drop).unwrap_err()
}

/// Why a consumer refuses what else was passed in place of a segment.
fn refusal_of(segment: OwnedFd) -> OpenError {
    let good = Outgoing::new(&small(), &bell()).unwrap();
    let [_, page, eventfd] = copies(good.descriptors());
    let refused = Incoming::new(&bell())
        .unwrap()
        .meet([segment, page, eventfd], NO_LIMIT);
    refused.map(drop).unwrap_err()
}

#[test]
fn a_segment_can_neither_be_resized_nor_emptied_nor_written_by_who_gets_it() {
    let half = Outgoing::new(&small(), &bell()).unwrap();
    for descriptor in &half.descriptors()[..2] {
        assert_eq!(ftruncate(descriptor, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(descriptor, 1 << 30), Err(Errno::PERM));
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(descriptor, hole, 0, PAGE), Err(Errno::PERM));
        assert_eq!(rustix::io::pwrite(descriptor, b"x", 0), Err(Errno::PERM));
        // SAFETY: the kernel chooses the place, and refuses.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                PAGE as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                descriptor,
                0,
            )
        };
        assert_eq!(mapped.err(), Some(Errno::PERM));
    }
}

#[test]
fn a_forged_segment_by_the_table_is_taken() {
    Forged::producer().try_consumer(NO_LIMIT).unwrap();
    Forged::consumer().try_producer().unwrap();
}

#[test]
fn a_segment_without_each_of_the_seals_is_refused_by_name() {
    for seal in all_seals().iter() {
        let seals = all_seals().difference(seal);
        let refused = refusal(producer_header(), ARENA_OFFSET + ARENA, seals);
        assert!(
            matches!(&refused, OpenError::SealsMissing { .. }),
            "{refused}"
        );
        let (name, _) = seal.iter_names().next().unwrap();
        assert!(refused.to_string().contains(name), "{refused}");
    }
}

#[test]
fn what_is_no_memory_is_refused() {
    let (reader, _writer) = rustix::pipe::pipe().unwrap();
    assert!(matches!(refusal_of(reader), OpenError::NotMemory(_)));
    let directory = std::fs::File::open("/").unwrap();
    assert!(matches!(
        refusal_of(directory.into()),
        OpenError::NotMemory(_)
    ));
}

#[test]
fn a_segment_of_another_size_than_its_header_says_is_refused() {
    let right = ARENA_OFFSET + ARENA;
    for bytes in [PAGE, right - PAGE, right + PAGE] {
        let refused = refusal(producer_header(), bytes, all_seals());
        let OpenError::WrongSize { found, needed } = refused else {
            panic!("{refused}");
        };
        assert_eq!((found, needed), (bytes, right));
    }
    let empty = memfd_create("empty", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::fcntl_add_seals(&empty, all_seals()).unwrap();
    assert!(matches!(
        refusal_of(empty),
        OpenError::WrongSize { found: 0, .. }
    ));
}

#[test]
fn a_segment_whose_memory_is_not_reserved_is_refused() {
    let sparse = memfd_create("sparse", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&sparse, ARENA_OFFSET + ARENA).unwrap();
    rustix::fs::fcntl_add_seals(&sparse, all_seals()).unwrap();
    let refused = refusal_of(sparse);
    assert!(
        matches!(refused, OpenError::NotReserved { reserved: 0, .. }),
        "{refused}"
    );
}

#[test]
fn a_segment_above_the_limit_of_the_other_side_is_refused() {
    let forged = Forged::producer();
    let bytes = (ARENA_OFFSET + ARENA) as usize;
    forged.try_consumer(bytes).unwrap();
    let refused = forged.try_consumer(bytes - 1).unwrap_err();
    assert!(matches!(refused, OpenError::TooLarge { .. }), "{refused}");
}

#[test]
fn each_field_of_a_header_that_is_wrong_is_named() {
    let bytes = ARENA_OFFSET + ARENA;
    let with = |index: usize, word: u64| {
        let mut header = producer_header();
        header[index] = word;
        refusal(header, bytes, all_seals())
    };
    assert!(matches!(with(0, 0), OpenError::NotASegment));
    let version = with(1, 4 | 1 << 32);
    assert!(matches!(version, OpenError::Version { theirs: 4, ours: 3 }));
    assert!(version.is_version() && !with(0, 0).is_version());
    let fields = [
        (1, VERSION | 2 << 32, "role"),
        (1, VERSION | 9 << 32, "role"),
        (3, 0, "page_bytes"),
        (3, 3000, "page_bytes"),
        (3, 512, "page_bytes"),
        (3, 1 << 40, "page_bytes"),
        (4, 0, "slots"),
        (4, 1000, "slots"),
        (4, 1 << 62, "slots"),
        (4, 2048, "arena_offset"),
        (5, 4096, "arena_offset"),
        (6, 0, "arena_bytes"),
        (6, u64::MAX, "arena_bytes"),
        (6, ARENA + 1, "arena_bytes"),
        (6, ARENA - PAGE, "segment_bytes"),
    ];
    for (index, word, name) in fields {
        let refused = with(index, word);
        let OpenError::WrongHeader { field, .. } = refused else {
            panic!("{index} {word}: {refused}");
        };
        assert_eq!(field, name, "{index} {word}");
    }
    let mut small = producer_header();
    (small[2], small[6]) = (ARENA_OFFSET + PAGE, PAGE);
    let refused = refusal(small, ARENA_OFFSET + PAGE, all_seals());
    assert!(
        matches!(
            refused,
            OpenError::WrongHeader {
                field: "arena_bytes",
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn random_headers_are_refused_and_never_mapped_wrongly() {
    let mut random = Random::new();
    for _ in 0..2000 {
        let (mut header, bytes) = if random.below(2) == 0 {
            (producer_header(), ARENA_OFFSET + ARENA)
        } else {
            (consumer_header(), RETURNS)
        };
        for _ in 0..=random.below(3) {
            let word = &mut header[random.below(8) as usize];
            *word = match random.below(3) {
                0 => random.next(),
                1 => 1 << random.below(64),
                _ => word.wrapping_add(random.below(9)).wrapping_sub(4),
            };
        }
        let forged = Forged::new(header, bytes, all_seals());
        // Whatever is taken can be read from one end to the other.
        if let Ok(mut consumer) = forged.try_consumer(NO_LIMIT) {
            let _ = consumer.try_pop().map(|message| message.bytes().len());
        }
        drop(forged.try_producer());
    }
}

#[test]
fn what_is_no_bell_is_refused() {
    let blocking = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let (_reader, pipe) = rustix::pipe::pipe().unwrap();
    let memory = memfd_create("x", MemfdFlags::empty()).unwrap();
    rustix::fs::fcntl_setfl(&memory, rustix::fs::OFlags::NONBLOCK).unwrap();
    for wrong in [blocking, pipe, memory] {
        let good = Outgoing::new(&small(), &bell()).unwrap();
        let [segment, page, _] = copies(good.descriptors());
        let refused = Incoming::new(&bell())
            .unwrap()
            .meet([segment, page, wrong], NO_LIMIT);
        let refused = refused.map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::NotABell { .. }), "{refused}");
    }
    // The page of a bell in place of a segment, and the other way round.
    let good = Outgoing::new(&small(), &bell()).unwrap();
    let [segment, page, eventfd] = copies(good.descriptors());
    let refused = Incoming::new(&bell())
        .unwrap()
        .meet([page, segment, eventfd], NO_LIMIT);
    let refused = refused.map(drop).unwrap_err();
    assert!(
        matches!(refused, OpenError::WrongHeader { field: "role", .. }),
        "{refused}"
    );
}

#[test]
fn a_bell_without_a_descriptor_is_refused_on_this_side() {
    let refused = Outgoing::new(&small(), &Bell::thread())
        .map(drop)
        .unwrap_err();
    assert!(matches!(refused, OpenError::BellHasNoDescriptor));
}

#[test]
fn huge_pages_are_used_or_normal_ones_with_the_reason() {
    let config = LinkConfig {
        pages: Pages::Huge,
        ..small()
    };
    let half = Outgoing::new(&config, &bell()).unwrap();
    match half.pages() {
        PagesInUse::Huge => {}
        PagesInUse::NormalInstead(reason) => assert!(reason.raw_os_error().is_some()),
        PagesInUse::Normal => panic!("huge pages were forgotten"),
    }
    let incoming = Incoming::new(&bell()).unwrap();
    let theirs = copies(incoming.descriptors());
    let ours = copies(half.descriptors());
    let mut producer = half.meet(theirs).unwrap();
    let mut consumer = incoming.meet(ours, NO_LIMIT).unwrap();
    producer.push_small(1, b"through whichever pages").unwrap();
    producer.flush();
    assert_eq!(
        consumer.try_pop().unwrap().bytes(),
        b"through whichever pages"
    );
}

#[test]
fn a_segment_that_no_memory_is_left_for_says_so() {
    let huge = LinkConfig {
        arena_bytes: 1 << 30,
        ..small()
    };
    alone("a_segment_that_no_memory_is_left_for_says_so", || {
        limit(Resource::As, 512 << 20);
        let refused = Outgoing::new(&huge, &bell()).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::NoMemory { .. }), "{refused}");
        limit(Resource::Fsize, 1 << 20);
        let refused = Outgoing::new(&huge, &bell()).map(drop).unwrap_err();
        assert!(
            matches!(refused, OpenError::FileSizeLimit { .. }),
            "{refused}"
        );
    });
}

#[test]
fn nothing_is_left_open_or_mapped_when_both_halves_are_gone() {
    alone(
        "nothing_is_left_open_or_mapped_when_both_halves_are_gone",
        || {
            let cycle = || drop(pair(&small()));
            cycle();
            let before = (open_files(), mappings());
            for _ in 0..20 {
                cycle();
            }
            let refused = Forged::new([0; 8], PAGE, all_seals());
            let _ = refused.try_consumer(NO_LIMIT).map(drop);
            drop(refused);
            assert_eq!((open_files(), mappings()), before);
        },
    );
}

#[test]
fn a_process_without_descriptors_left_says_so() {
    alone("a_process_without_descriptors_left_says_so", || {
        let bell = bell();
        // The standard streams have the only numbers below it.
        limit(Resource::Nofile, 3);
        let refused = Outgoing::new(&small(), &bell).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::NoDescriptors(_)), "{refused}");
    });
}

fn limit(resource: Resource, current: u64) {
    let limit = Rlimit {
        current: Some(current),
        maximum: getrlimit(resource).maximum,
    };
    setrlimit(resource, limit).unwrap();
}
