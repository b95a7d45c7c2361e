//! The processes that the harness starts. Goal: they end with it, and one that stalls is seen in the figures
//! for what it is. Method: the program is run, and it or the process that it has started is sent signals.

mod children;
mod endings;
mod stalls;
