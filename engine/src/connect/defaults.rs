//! What options are where they are not given, for serde.

/// Something that is done unless it is said not to be.
pub(super) const fn yes() -> bool {
    true
}

/// Rows from which a schema is inferred.
pub(super) const fn infer_rows() -> usize {
    1000
}

/// Bytes of a split, about: much more than it costs to open a file, and little enough that a few
/// gigabytes are splits for many cores.
pub(super) const fn split_bytes() -> u64 {
    64 << 20
}
