//! Job files: what may stand in one, how whatever does not fit is refused, and what comes of jobs
//! that run.
//!
//! Each case of the first two takes a job that is valid, changes one thing in it, and says what
//! comes of it. The same job in JSON gives the same plan, and errors at the same keys. What jobs
//! make of rows is compared with small computations over all of them.

mod clashes;
mod forms;
mod grouped;
mod joins;
mod pages;
mod refused;
mod refused_operators;
mod running;
mod sample;
mod stages;
