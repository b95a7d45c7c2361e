//! The name of a thread, by which a profile tells ours from the baseline: `scripts/profile` drops
//! the samples of the latter, and those of what lies between the runs.

use std::ffi::{CStr, CString};

use rustix::thread::{name, set_name};

use crate::contest::Contender;

/// The name of the threads that run ours.
pub(crate) const OURS: &CStr = c"ours";

/// The name of the threads that run the baseline.
pub(crate) const BASELINE: &CStr = c"baseline";

/// The variable that tells a further process of this program what its threads are called.
const VARIABLE: &str = "RINGWAY_BENCH_THREADS";

/// A contender whose threads have a name, those in further processes too. Threads that give
/// themselves one keep that.
pub(crate) fn named<'a>(name: &'static CStr, mut contender: Contender<'a>) -> Contender<'a> {
    Box::new(move |count| {
        let _name = Name::take(name);
        contender(count)
    })
}

/// What a further process is told, so that its threads have the name of this one.
pub(crate) fn variable() -> (&'static str, String) {
    (VARIABLE, current().to_string_lossy().into_owned())
}

/// In a further process: takes the name that it was told.
pub(crate) fn take_from_variable() {
    if let Some(name) = std::env::var(VARIABLE)
        .ok()
        .and_then(|name| CString::new(name).ok())
    {
        rename(&name);
    }
}

/// The name of this thread, until it is dropped; threads that begin meanwhile have it too.
struct Name {
    before: CString,
}

impl Name {
    fn take(name: &CStr) -> Self {
        let before = current();
        rename(name);
        Self { before }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        rename(&self.before);
    }
}

fn current() -> CString {
    name().unwrap_or_default()
}

fn rename(to: &CStr) {
    // Without a name nothing but a profile is the worse.
    let _ = set_name(to);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contest::Sample;
    use crate::spent::Spent;

    #[test]
    fn the_threads_of_a_contender_have_its_name_as_long_as_it_runs() {
        let before = current();
        let mut contender = named(
            OURS,
            Box::new(|count| {
                let in_a_thread = std::thread::spawn(current).join().unwrap();
                assert_eq!((in_a_thread.as_c_str(), current().as_c_str()), (OURS, OURS));
                let wall = Duration::from_secs(1);
                Ok(Sample::rate(count, wall, Spent::default(), 0))
            }),
        );
        contender(1).unwrap();
        drop(contender);
        assert_eq!(current(), before);
    }
}
