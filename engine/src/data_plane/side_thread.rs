//! The thread that drives the connections of those who have no worker.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringway_netio::driver::{DriverChoice, Why, open};

use crate::edge::remote::{IoThread, LinksHandle, spawn_links};

/// Starts with the first connection, and ends some time after the data plane is gone and its
/// connections are over.
#[derive(Debug)]
pub(super) struct SideThread {
    driver: Option<DriverChoice>,
    running: Mutex<Option<(LinksHandle, IoThread)>>,
}

impl SideThread {
    pub(super) fn new(driver: Option<DriverChoice>) -> Self {
        Self {
            driver,
            running: Mutex::new(None),
        }
    }

    /// Its links.
    pub(super) fn links(&self) -> Result<LinksHandle, String> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((links, _)) = &*running {
            return Ok(links.clone());
        }
        let choice = DriverChoice::from_option(self.driver).map_err(|error| error.to_string())?;
        let started = spawn_links(move || {
            let opened = open(choice).map_err(io::Error::other)?;
            if let Why::FellBack(denial) = &opened.why {
                let cause = denial.to_string();
                tracing::warn!(cause, "connections are driven by epoll, without io_uring");
            }
            Ok(opened.driver)
        });
        let started = started.map_err(|error| error.to_string())?;
        let links = started.0.clone();
        *running = Some(started);
        Ok(links)
    }

    /// Ends it, if it was started, and waits until it has, at most for `timeout`.
    pub(super) fn close(&self, timeout: Duration) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.take() {
            Some((links, thread)) => {
                let bell = links.bell().clone();
                drop(links);
                bell.ring();
                thread.wait(timeout)
            }
            None => true,
        }
    }
}
