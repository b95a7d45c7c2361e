//! Job files: what may stand in one, and how whatever does not fit is refused.
//!
//! Each case takes a job that is valid, changes one thing in it, and says what comes of it. The
//! same job in JSON gives the same plan, and errors at the same keys.

mod clashes;
mod forms;
mod refused;
mod sample;
