//! The side thread that drives the links of embedders, who have no worker.

use std::io;
use std::time::Duration;

use ringway_netio::driver::Driver;
use ringway_shm::{Bell, Consumer, PopError, ring};

use super::handle::{LinksHandle, links};
use super::links::Links;
use crate::clock::Clock;
use crate::limits::SPIN_BEFORE_PARK;
use crate::placement::spawn_side_thread;

/// The name of the thread.
const NAME: &str = "ringway-io";

/// How long it sleeps at most. It is woken when there is something to do; this is how soon it
/// notices that nobody needs it any more.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// A side thread that was started.
#[derive(Debug)]
pub struct IoThread {
    ended: Consumer<()>,
}

impl IoThread {
    /// Waits until the thread has ended, at most for `timeout`, and returns whether it has.
    /// Before that all handles are to be dropped.
    pub fn wait(mut self, timeout: Duration) -> bool {
        let popped = self.ended.pop_blocking(Some(timeout));
        popped != Err(PopError::Empty)
    }
}

/// Starts the side thread, and returns when its driver is there. It ends when nobody holds a
/// handle any more and its connections are over.
///
/// # Errors
/// The thread or its driver cannot be had: no descriptor, memory or thread is left.
pub fn spawn_links(
    make_driver: impl FnOnce() -> io::Result<Box<dyn Driver>> + Send + 'static,
) -> io::Result<(LinksHandle, IoThread)> {
    let (handle, seed) = links()?;
    let (mut started, mut starting) = ring::<io::Error>(1, Bell::thread(), Bell::thread());
    let (ending, ended) = ring::<()>(1, Bell::thread(), Bell::thread());
    spawn_side_thread(NAME, move || {
        // Dropped when the thread ends, in whatever way.
        let _ending = ending;
        let made = make_driver().and_then(|driver| Links::new(seed, driver, Clock::start()));
        match made {
            Ok(links) => {
                started.finish();
                run(links);
            }
            Err(error) => {
                // Whoever started this waits, so there is room.
                drop(started.try_push(error));
                started.finish();
            }
        }
    })?;
    match starting.pop_blocking(None) {
        Ok(error) => Err(error),
        Err(PopError::Finished) => Ok((handle, IoThread { ended })),
        Err(_) => Err(io::Error::other("the thread of the connections panicked")),
    }
}

/// Turns the links: spins for a while when there is nothing to do, then sleeps.
fn run(mut links: Links) {
    let clock = Clock::start();
    let mut idle_since = None;
    while links.has_handles() || links.is_needed() || !links.is_empty() {
        if links.turn() > 0 {
            idle_since = None;
            continue;
        }
        let now = clock.now();
        let since = *idle_since.get_or_insert(now);
        if now.since(since) < SPIN_BEFORE_PARK {
            std::hint::spin_loop();
            continue;
        }
        links.park(SLEEP_MAX);
        idle_since = None;
    }
}
