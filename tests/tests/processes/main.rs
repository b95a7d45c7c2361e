//! Jobs of several processes. The processes are threads here and the edges between them rings,
//! but in `sharing`; all else is as between real ones: each makes its own plan, and they meet over sockets.
#![allow(clippy::disallowed_methods, reason = "the tests wait for threads")]

mod gathering;
mod hub;
mod outcomes;
mod plans;
mod rig;
mod sharing;
