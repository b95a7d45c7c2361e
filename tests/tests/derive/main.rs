//! Goal: a struct that derives `Columnar` has the columns that other engines on the same wire
//! expect, comes back as it was, and is refused where a batch does not hold it. Method: schemas
//! are compared with a table; random structs of every field type are built, sent through Arrow's
//! stream format, sliced and parsed; damaged batches are parsed; where `RINGWAY_VECTORS` names a
//! folder of recorded streams, the struct in its `wire` folder is decoded too.
// As strict as a user's own crate may be, so that the derived code is held to it.
#![forbid(unsafe_code)]
#![deny(missing_docs, unreachable_pub, clippy::all)]

pub mod documented;
mod identity;
mod recorded;
mod refused;
mod schema;
mod structs;
mod views;
