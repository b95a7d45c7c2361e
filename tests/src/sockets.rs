//! Connections that a test opens by hand, what runs edges over them, and bytes of version 1.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use ringway::edge::EdgeOptions;
use ringway::edge::remote::{LinksHandle, RemoteOptions, RemoteParts, spawn_links};
use ringway::wire::Wired;
use ringway_netio::driver::{DriverChoice, open};
use ringway_shm::Bell;

/// The frame that ends a stream of version 1.
pub const CLOSE: [u8; 5] = [0, 0, 0, 1, 3];

/// The two ends of a connection over loopback, with the buffers that the kernel gives.
///
/// # Panics
/// If the host has no loopback or no free port.
pub fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let out = TcpStream::connect(listener.local_addr().expect("an address"));
    let back = listener.accept().expect("a connection").0;
    (out.expect("it listens"), back)
}

/// A side thread that drives edges, over this driver.
///
/// # Panics
/// If the host refuses the driver.
pub fn io_over(driver: DriverChoice) -> LinksHandle {
    let opened = move || Ok(open(driver).map_err(std::io::Error::other)?.driver);
    spawn_links(opened).expect("a driver").0
}

/// A side thread that drives edges, over the best driver of the host.
pub fn io() -> LinksHandle {
    io_over(DriverChoice::Auto)
}

/// The parts of an edge over a connection, for a half that a thread waits on.
pub fn parts<B: Wired>(edge: EdgeOptions, remote: RemoteOptions) -> RemoteParts<B> {
    RemoteParts {
        edge,
        remote,
        codec: B::codec(),
        peer: "loopback".to_owned(),
        bell: Bell::thread(),
    }
}

/// A frame of version 1 with a batch.
pub fn frame(body: &[u8]) -> Vec<u8> {
    const ARROW_BATCH: u8 = 7;
    let mut frame = Vec::from((body.len() as u32 + 1).to_be_bytes());
    frame.push(ARROW_BATCH);
    frame.extend_from_slice(body);
    frame
}

/// The folder of recorded streams of Arrow, good and broken, with their manifest.
pub fn bad_ipc() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad-ipc")
}

/// A recorded stream of Arrow, good or broken.
///
/// # Panics
/// If there is none of that name.
pub fn recorded(name: &str) -> Vec<u8> {
    let path = bad_ipc().join(name).with_extension("arrows");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
