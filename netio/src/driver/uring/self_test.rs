//! Whether the driver works here, found out by using it.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Settings, UringDriver};
use crate::driver::{Completion, Driver};

/// How often the test waits, and for how long at most: it takes a tenth of a millisecond.
const WAITS_MAX: usize = 40;
const WAIT: Duration = Duration::from_millis(50);

const TOKEN: &[u8] = b"ringway";

/// What did not work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: &'static str,
    pub(crate) error: io::Error,
}

/// Moves bytes over a pair of sockets, and takes one back that still receives. A filter may allow
/// one of the calls and forbid another, and a kernel may know an operation and not its newer
/// forms, so all that the driver leans on takes part.
pub(crate) fn self_test() -> Result<(), Failure> {
    let small = Settings {
        submissions: 8,
        completions: 32,
        chunks: 2,
        chunk_bytes: 4096,
        ..Settings::default()
    };
    let at = |step| move |error| Failure { step, error };
    let mut driver = UringDriver::with(small).map_err(at("io_uring_setup"))?;
    let (near, far) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| at("socketpair")(error.into()))?;
    let mut attach = |socket| driver.attach_stream(TcpStream::from(socket));
    let near = attach(near).map_err(at("ring of provided buffers"))?;
    let far = attach(far).map_err(at("ring of provided buffers"))?;
    driver.set_reading(far, true);
    driver.send(near, &mut VecDeque::from([Bytes::from_static(TOKEN)]));
    until(
        &mut driver,
        "receiving that goes on",
        |told| matches!(told, Completion::Read { chunk, .. } if **chunk == *TOKEN),
    )?;
    driver.detach(far);
    until(&mut driver, "cancelling", |told| {
        matches!(told, Completion::Detached { .. })
    })
}

fn until(
    driver: &mut UringDriver,
    step: &'static str,
    wanted: impl Fn(&Completion) -> bool,
) -> Result<(), Failure> {
    let enter = |error| Failure {
        step: "io_uring_enter",
        error,
    };
    let mut told = Vec::new();
    for _ in 0..WAITS_MAX {
        driver.poll(&mut told).map_err(enter)?;
        for told in told.drain(..) {
            match told {
                told if wanted(&told) => return Ok(()),
                Completion::Lost { error, .. } => return Err(Failure { step, error }),
                _ => {}
            }
        }
        driver.wait(Some(WAIT)).map_err(enter)?;
    }
    let error = io::ErrorKind::TimedOut.into();
    Err(Failure { step, error })
}
