//! The `ringway` command and the jobs of `docs/examples`, as their users run them.
#![allow(clippy::disallowed_methods, reason = "the tests wait for processes")]

mod command;
mod example;
mod flights;
mod processes;
mod running;
mod stages;
mod streams;
mod wire;
