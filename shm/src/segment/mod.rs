//! Memory that one process writes and another reads.
//!
//! Each side of an edge between processes owns one segment: a memfd that it
//! alone may write. It reserves all memory, seals the size and all later
//! writing, and passes the descriptor on; the peer checks the seals, the size
//! and the header, and maps it for reading. Nothing is named in a file system,
//! so nothing stays behind. `docs/SHARED_MEMORY.md` has the layout.

mod error;
mod header;
mod map;
mod memory;

pub use error::OpenError;
pub(crate) use header::{Header, Role};
pub(crate) use map::Map;
pub(crate) use memory::{Own, RETURNS_BYTES, SLOTS_OFFSET, Shape, WORDS_OFFSET, inspect};

use std::io;

/// Which pages a segment asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The pages that the kernel gives by itself.
    #[default]
    Normal,
    /// Reserved huge pages (`vm.nr_hugepages`) of the default size. Where there are not enough
    /// of them, normal ones, and [`PagesInUse`] says so.
    Huge,
}

/// Which pages a segment has.
#[derive(Debug)]
pub enum PagesInUse {
    /// Normal ones, as was asked.
    Normal,
    /// Huge ones, as was asked.
    Huge,
    /// Normal ones, though huge ones were asked for, because the kernel said this. To have them,
    /// raise `vm.nr_hugepages`.
    NormalInstead(io::Error),
}
