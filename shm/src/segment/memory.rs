//! Making a segment, and looking at that of a peer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create,
};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::segment::error::OpenError;
use crate::segment::header::{HEADER_WORDS, Header, Role, wrong};
use crate::segment::map::Map;
use crate::segment::{Pages, PagesInUse};

/// What a peer must have given up: to change the size, to write by any way but the mapping that
/// the owner has already (which includes taking memory away), and to change the seals.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::FUTURE_WRITE)
    .union(SealFlags::SEAL);

/// Where the words lie by which the two sides tell each other where they are.
pub(crate) const WORDS_OFFSET: usize = 256;

/// Where the slots of messages begin. The header and the words lie below.
pub(crate) const SLOTS_OFFSET: usize = 4096;

/// What the words of a consumer take, in whole small pages.
pub(crate) const RETURNS_BYTES: usize = 8192;

/// Pages above this size don't exist.
const PAGE_BYTES_MAX: usize = 1 << 30;

/// Where the parts of a segment lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) page_bytes: usize,
    pub(crate) segment_bytes: usize,
    pub(crate) slots: usize,
    pub(crate) arena_offset: usize,
    pub(crate) arena_bytes: usize,
}

impl Shape {
    /// A segment of words is a page or two, which may have any size.
    pub(crate) const WORDS_BYTES_MAX: u64 = PAGE_BYTES_MAX as u64;

    /// A segment of one page, for the words of a bell.
    pub(crate) fn words(page_bytes: usize) -> Shape {
        Shape::without_messages(page_bytes, page_bytes)
    }

    /// A segment for the words of a consumer.
    pub(crate) fn returns(page_bytes: usize) -> Shape {
        Shape::without_messages(page_bytes, RETURNS_BYTES.next_multiple_of(page_bytes))
    }

    fn without_messages(page_bytes: usize, segment_bytes: usize) -> Shape {
        Shape {
            page_bytes,
            segment_bytes,
            slots: 0,
            arena_offset: 0,
            arena_bytes: 0,
        }
    }

    /// A segment with descriptors and payloads, of which there are at least so many bytes.
    pub(crate) fn messages(page_bytes: usize, slots: usize, arena_bytes: usize) -> Shape {
        let arena_offset = (SLOTS_OFFSET + slots * size_of::<u64>()).next_multiple_of(page_bytes);
        let arena_bytes = arena_bytes.next_multiple_of(page_bytes);
        Shape {
            page_bytes,
            segment_bytes: arena_offset + arena_bytes,
            slots,
            arena_offset,
            arena_bytes,
        }
    }

    fn header(&self, role: Role) -> Header {
        Header {
            segment_bytes: self.segment_bytes as u64,
            page_bytes: self.page_bytes as u64,
            slots: self.slots as u64,
            arena_offset: self.arena_offset as u64,
            arena_bytes: self.arena_bytes as u64,
            ..Header::new(role)
        }
    }
}

/// A segment of this process: it alone writes into it.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) map: Map,
    pub(crate) shape: Shape,
    pub(crate) descriptor: OwnedFd,
}

impl Own {
    /// Makes a segment of the shape that `shape` gives for a size of pages, reserved, mapped and
    /// sealed, with its header written. Huge pages are replaced by normal ones where there are none.
    pub(crate) fn new(
        role: Role,
        pages: Pages,
        shape: impl Fn(usize) -> Shape,
    ) -> Result<(Own, PagesInUse), OpenError> {
        let normal = || Own::make(role, shape(rustix::param::page_size()), false);
        if pages == Pages::Normal {
            return Ok((normal()?, PagesInUse::Normal));
        }
        match huge_page_bytes().map(|bytes| Own::make(role, shape(bytes), true)) {
            Ok(Ok(own)) => Ok((own, PagesInUse::Huge)),
            Ok(Err(OpenError::NoMemory { source, .. } | OpenError::System { source, .. })) => {
                Ok((normal()?, PagesInUse::NormalInstead(source)))
            }
            Ok(Err(other)) => Err(other),
            Err(errno) => Ok((normal()?, PagesInUse::NormalInstead(errno.into()))),
        }
    }

    fn make(role: Role, shape: Shape, huge: bool) -> Result<Own, OpenError> {
        let bytes = shape.segment_bytes as u64;
        let failed = |call| move |errno| OpenError::from_call(call, bytes, errno);
        check_file_size_limit(bytes)?;
        let descriptor = create(huge).map_err(failed("memfd_create"))?;
        ftruncate(&descriptor, bytes).map_err(failed("ftruncate"))?;
        // All memory now, so that no access of either side can fail later.
        retry_on_intr(|| fallocate(&descriptor, FallocateFlags::empty(), 0, bytes))
            .map_err(failed("fallocate"))?;
        let map = Map::new(descriptor.as_fd(), &shape, true).map_err(failed("mmap"))?;
        write_header(&map, shape.header(role));
        fcntl_add_seals(&descriptor, SEALS).map_err(failed("fcntl(F_ADD_SEALS)"))?;
        Ok(Own {
            map,
            shape,
            descriptor,
        })
    }
}

/// Looks at the segment that a peer passed, and maps it for reading if it may be used.
pub(crate) fn inspect(
    descriptor: BorrowedFd<'_>,
    role: Role,
    bytes_max: u64,
) -> Result<(Map, Shape), OpenError> {
    let seals = fcntl_get_seals(descriptor).map_err(|errno| OpenError::NotMemory(errno.into()))?;
    let missing = SEALS.difference(seals);
    if !missing.is_empty() {
        return Err(OpenError::seals_missing(missing));
    }
    // From here on neither the size nor what is reserved can change.
    let found = fstat(descriptor).map_err(|errno| OpenError::NotMemory(errno.into()))?;
    let bytes = u64::try_from(found.st_size).unwrap_or(0);
    if bytes > bytes_max {
        return Err(OpenError::TooLarge {
            found: bytes,
            max: bytes_max,
        });
    }
    let reserved = u64::try_from(found.st_blocks)
        .unwrap_or(0)
        .saturating_mul(512);
    if reserved < bytes {
        return Err(OpenError::NotReserved { reserved, bytes });
    }
    let header = read_header(descriptor, bytes)?;
    header.check(role)?;
    if header.segment_bytes != bytes {
        return Err(OpenError::WrongSize {
            found: bytes,
            needed: header.segment_bytes,
        });
    }
    let shape = shape_of(&header, role)?;
    let failed = |errno| OpenError::from_call("mmap", bytes, errno);
    let map = Map::new(descriptor, &shape, false).map_err(failed)?;
    Ok((map, shape))
}

/// The shape that a header describes, if it is one that this side makes too.
fn shape_of(header: &Header, role: Role) -> Result<Shape, OpenError> {
    let page_bytes = header.page_bytes as usize;
    if page_bytes < rustix::param::page_size() || page_bytes > PAGE_BYTES_MAX {
        return Err(wrong("page_bytes", header.page_bytes));
    }
    let shape = match role {
        Role::Bell => Shape::words(page_bytes),
        Role::Consumer => Shape::returns(page_bytes),
        Role::Producer => {
            // Each is below the size of the file, so that no sum of them overflows.
            if header.slots > header.segment_bytes || !header.slots.is_power_of_two() {
                return Err(wrong("slots", header.slots));
            }
            if header.arena_bytes > header.segment_bytes || header.arena_bytes == 0 {
                return Err(wrong("arena_bytes", header.arena_bytes));
            }
            Shape::messages(
                page_bytes,
                header.slots as usize,
                header.arena_bytes as usize,
            )
        }
    };
    let fields = [
        ("slots", header.slots, shape.slots),
        ("arena_offset", header.arena_offset, shape.arena_offset),
        ("arena_bytes", header.arena_bytes, shape.arena_bytes),
        ("segment_bytes", header.segment_bytes, shape.segment_bytes),
    ];
    for (field, found, needed) in fields {
        if found != needed as u64 {
            return Err(wrong(field, found));
        }
    }
    Ok(shape)
}

/// A memfd that can be sealed and never executed.
fn create(huge: bool) -> Result<OwnedFd, Errno> {
    let mut flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    if huge {
        flags |= MemfdFlags::HUGETLB;
    }
    match memfd_create(c"ringway", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 don't know the flag, and don't insist on it.
        Err(Errno::INVAL) => memfd_create(c"ringway", flags),
        made => made,
    }
}

/// The size of a page of the kind that `MFD_HUGETLB` takes, as an empty one tells.
fn huge_page_bytes() -> Result<usize, Errno> {
    let probe = create(true)?;
    let bytes = usize::try_from(fstat(&probe)?.st_blksize).unwrap_or(0);
    if bytes.is_power_of_two() && bytes <= PAGE_BYTES_MAX {
        Ok(bytes)
    } else {
        Err(Errno::INVAL)
    }
}

/// A file above the limit would not give an error but a signal that ends the process.
fn check_file_size_limit(bytes: u64) -> Result<(), OpenError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(OpenError::FileSizeLimit { bytes, limit }),
        _ => Ok(()),
    }
}

fn write_header(map: &Map, header: Header) {
    let at = map.at(0).cast::<Header>();
    // SAFETY: a segment is at least a page, at whose beginning a header is aligned, and nobody
    // else knows this one yet.
    unsafe { at.write(header) };
}

/// Copies the header out before anything in it is believed.
fn read_header(descriptor: BorrowedFd<'_>, bytes: u64) -> Result<Header, OpenError> {
    let mut copied = [0u8; size_of::<Header>()];
    let read = retry_on_intr(|| pread(descriptor, &mut copied, 0));
    let read = read.map_err(|errno| OpenError::NotMemory(errno.into()))?;
    if read < copied.len() {
        return Err(OpenError::WrongSize {
            found: bytes,
            needed: copied.len() as u64,
        });
    }
    let mut words = [0; HEADER_WORDS];
    let (pieces, _) = copied.as_chunks::<8>();
    for (word, piece) in words.iter_mut().zip(pieces) {
        *word = u64::from_ne_bytes(*piece);
    }
    Ok(Header::from_words(words))
}
