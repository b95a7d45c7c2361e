//! Ringway.

#![forbid(unsafe_code)]

pub mod expr;
