//! What is being measured, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The variable that asks for what is done in lines, where stderr is no terminal: so a report
/// knows how far its parts are.
pub(crate) const LINES: &str = "RINGWAY_BENCH_LINES";

/// A line on stderr that says what runs now. It is hidden where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self(bar)
    }

    /// Says what runs now. The line moves only here: a thread that moved it by itself would
    /// run beside the measurement.
    pub(crate) fn say(&self, what: String) {
        self.0.set_message(what);
        self.0.tick();
    }

    /// Prints a line that stays, on a terminal or where lines were asked for.
    pub(crate) fn done(&self, what: &str) {
        if self.0.is_hidden() && std::env::var_os(LINES).is_none() {
            return;
        }
        self.tell(what);
    }

    /// Prints a line that stays, whatever stderr is.
    pub(crate) fn tell(&self, what: &str) {
        self.0.suspend(|| eprintln!("{what}"));
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
