//! Fixed-width fields of a body. All integers are big-endian.

/// The `N` bytes from `at`, if the body has them.
pub(super) fn array<const N: usize>(body: &[u8], at: usize) -> Option<[u8; N]> {
    body.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The byte at `at`.
pub(super) fn byte(body: &[u8], at: usize) -> Option<u8> {
    body.get(at).copied()
}

/// The 16 bits from `at`.
pub(super) fn u16_at(body: &[u8], at: usize) -> Option<u16> {
    array(body, at).map(u16::from_be_bytes)
}

/// The 32 bits from `at`.
pub(super) fn u32_at(body: &[u8], at: usize) -> Option<u32> {
    array(body, at).map(u32::from_be_bytes)
}

/// The 64 bits from `at`.
pub(super) fn u64_at(body: &[u8], at: usize) -> Option<u64> {
    array(body, at).map(u64::from_be_bytes)
}

/// The 64 bits from `at`, with their sign.
pub(super) fn i64_at(body: &[u8], at: usize) -> Option<i64> {
    array(body, at).map(i64::from_be_bytes)
}

/// The 128 bits from `at`.
pub(super) fn u128_at(body: &[u8], at: usize) -> Option<u128> {
    array(body, at).map(u128::from_be_bytes)
}
