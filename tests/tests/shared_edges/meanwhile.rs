//! A driver during whose poll something happens first.
//!
//! A thread looks at what its edges have in memory, and then at its connections. What happens in
//! between is seen in the wrong order: the end of a connection before what its peer had said by then.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use ringway_netio::buffer::Body;
use ringway_netio::driver::{
    Completion, ConnectionId, Driver, DriverChoice, DriverKind, ListenerId, Socket,
};

/// What is to happen in the next poll.
pub(crate) type Meanwhile = Rc<Cell<Option<Box<dyn FnOnce()>>>>;

pub(crate) struct Interrupted {
    driver: Box<dyn Driver>,
    meanwhile: Meanwhile,
}

impl Interrupted {
    pub(crate) fn open(driver: DriverChoice) -> (Box<dyn Driver>, Meanwhile) {
        let driver = ringway_netio::driver::open(driver).unwrap().driver;
        let meanwhile = Meanwhile::default();
        let interrupted = Self {
            driver,
            meanwhile: Rc::clone(&meanwhile),
        };
        (Box::new(interrupted), meanwhile)
    }
}

fn is_end(completion: &Completion) -> bool {
    matches!(completion, Completion::Eof { .. } | Completion::Lost { .. })
}

impl Driver for Interrupted {
    /// Lets happen what is to happen, which ends a connection, and polls until that is seen.
    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize> {
        let Some(happen) = self.meanwhile.take() else {
            return self.driver.poll(completions);
        };
        happen();
        let mut count = 0;
        while !completions.iter().any(is_end) {
            count += self.driver.poll(completions)?;
        }
        Ok(count)
    }

    fn kind(&self) -> DriverKind {
        self.driver.kind()
    }

    fn listen(&mut self, listener: Socket) -> io::Result<ListenerId> {
        self.driver.listen(listener)
    }

    fn stop_listening(&mut self, listener: ListenerId) {
        self.driver.stop_listening(listener);
    }

    fn attach(&mut self, socket: Socket) -> io::Result<ConnectionId> {
        self.driver.attach(socket)
    }

    fn detach(&mut self, connection: ConnectionId) {
        self.driver.detach(connection);
    }

    fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize {
        self.driver.send(connection, queue)
    }

    fn set_reading(&mut self, connection: ConnectionId, reads: bool) {
        self.driver.set_reading(connection, reads);
    }

    fn expect_tail(&mut self, connection: ConnectionId, bytes: usize) {
        self.driver.expect_tail(connection, bytes);
    }

    fn read_body(&mut self, connection: ConnectionId, body: Body) {
        self.driver.read_body(connection, body);
    }

    fn shutdown_write(&mut self, connection: ConnectionId) {
        self.driver.shutdown_write(connection);
    }

    fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize> {
        self.driver.unacknowledged_bytes(connection)
    }

    fn tend(&mut self) {
        self.driver.tend();
    }

    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        self.driver.watch(descriptor)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.driver.wait(timeout)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.driver.as_fd()
    }

    fn copied_bytes(&self) -> u64 {
        self.driver.copied_bytes()
    }
}
