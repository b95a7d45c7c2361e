//! Lines that others write in their own time.

pub(super) mod input;
pub(super) mod source;
