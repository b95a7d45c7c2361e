//! TCP, without blocking.

use std::io::IoSlice;
use std::net::TcpStream;

use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};

use crate::buffer::Body;
use crate::driver::acknowledging::acknowledge_late;
use crate::driver::nonblocking::{Readiness, Stream};

impl Stream for TcpStream {
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (bytes, _) = recv(self, buffer, RecvFlags::DONTWAIT)?;
        Ok(bytes)
    }

    fn read_body(&self, body: &mut Body) -> Result<(usize, usize), Errno> {
        let spare = body.spare();
        let asked = spare.len();
        let bytes = self.read(spare)?;
        body.advance(bytes);
        Ok((bytes, asked))
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(self, slices, &mut SendAncillaryBuffer::default(), flags)
    }

    fn acknowledge_late(&self) {
        acknowledge_late(self);
    }

    fn has_unread(&self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }

    fn shutdown_write(&self) -> Result<(), Errno> {
        shutdown(self, Shutdown::Write)
    }
}

impl From<EventFlags> for Readiness {
    fn from(flags: EventFlags) -> Self {
        let broken = EventFlags::ERR | EventFlags::HUP;
        Self {
            readable: flags.contains(EventFlags::IN),
            writable: flags.intersects(broken | EventFlags::OUT),
            hung_up: flags.intersects(broken | EventFlags::RDHUP),
        }
    }
}
