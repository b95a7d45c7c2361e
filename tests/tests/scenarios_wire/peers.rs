//! B16, B17: peers that send nonsense, to a process of its own that is measured.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ringway::data_plane::{DataPlane, ListenOptions};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::{EdgeOptions, Ending, Popped};
use ringway::element::StreamElement;
use ringway::wire::Columns;
use ringway_shm::Bell;
use ringway_tests::seed::Seeded;
use ringway_tests::sockets::{CLOSE, frame, recorded};
use ringway_tests::usage::{open_descriptors, resident_bytes};
use ringway_tests::within::LONG;

use ringway_tests::process::{Process, hear, part, tell};

/// Takes every stream, tells how each ended, and what this process uses when asked.
fn serve(stalled_after: Duration) {
    let remote = RemoteOptions {
        stalled_after,
        ..RemoteOptions::version_1()
    };
    let options = ListenOptions::new("127.0.0.1", 0).remote(remote);
    let plane = DataPlane::new();
    let codec = Arc::new(Columns::any());
    let listener = plane.listen_for_streams(options, Bell::thread(), codec, 256);
    let listener = listener.unwrap();
    tell("port", listener.port());
    thread::spawn(|| {
        while hear().is_some() {
            tell("resident", resident_bytes());
            tell("descriptors", open_descriptors());
        }
        std::process::exit(0);
    });
    let mut streams = Vec::new();
    loop {
        streams.extend(listener.try_accept().map(|stream| (stream, 0)));
        streams.retain_mut(|(stream, rows)| match stream.receiver.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => {
                *rows += batch.num_rows();
                true
            }
            Popped::Element(_) | Popped::Empty => true,
            Popped::Ended(Ending::End) => {
                tell("over", format!("in order, {rows} rows"));
                false
            }
            Popped::Ended(ending) => {
                tell("over", ending);
                false
            }
        });
        thread::sleep(Duration::from_micros(100));
    }
}

/// The process, from outside.
struct Server {
    process: Process,
    port: u16,
    /// Streams that have ended because their peers fell silent.
    stalled: usize,
}

impl Server {
    fn start(test: &str, part: &str) -> Self {
        let mut process = Process::start(test, part);
        let port = process.number("port") as u16;
        Self {
            process,
            port,
            stalled: 0,
        }
    }

    fn connect(&self) -> TcpStream {
        let peer = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        peer.set_read_timeout(Some(LONG)).unwrap();
        peer
    }

    /// How a session of these bytes ends, where no other is open.
    fn play(&mut self, bytes: &[u8]) -> String {
        let mut peer = self.connect();
        // The other end may hang up before it has all of it.
        let _ = peer.write_all(bytes);
        let _ = peer.shutdown(Shutdown::Write);
        let answer = self.over();
        assert!(!answer.contains("panicked"), "{answer}");
        answer
    }

    /// How the next stream ends whose peer does not fall silent: of those that do, each ends in
    /// its own time, and they are counted.
    fn over(&mut self) -> String {
        loop {
            let answer = self.process.next("over");
            if !answer.contains("stalled") {
                return answer;
            }
            self.stalled += 1;
        }
    }

    fn serves(&mut self, good: &[u8]) {
        assert_eq!(self.play(good), "in order, 3 rows");
    }

    /// Bytes of memory and open descriptors.
    fn used(&mut self) -> (u64, u64) {
        self.process.say("what is used?");
        let resident = self.process.number("resident");
        (resident, self.process.number("descriptors"))
    }

    fn settles_at(&mut self, descriptors: u64) {
        let start = Instant::now();
        while self.used().1 > descriptors {
            assert!(start.elapsed() < LONG, "descriptors are left open");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn good() -> Vec<u8> {
    [&frame(&recorded("ok_int_utf8"))[..], &CLOSE].concat()
}

/// Waits until the other end has hung up.
fn is_hung_up_on(mut peer: TcpStream) {
    let mut rest = Vec::new();
    if let Err(error) = peer.read_to_end(&mut rest) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn b16_lengths_that_are_only_claimed_cost_no_memory_and_hold_nobody_up() {
    if part().is_some() {
        return serve(Duration::from_secs(3));
    }
    let test = "peers::b16_lengths_that_are_only_claimed_cost_no_memory_and_hold_nobody_up";
    let mut server = Server::start(test, "server");
    server.serves(&good());
    let (before, descriptors) = server.used();
    // A body as large as an edge may hold by default.
    let largest = u32::try_from(EdgeOptions::named("edge").bytes_max).unwrap();
    let peers: Vec<_> = (0..200)
        .map(|_| {
            let mut peer = server.connect();
            peer.write_all(&largest.to_be_bytes()).unwrap();
            peer.write_all(&[7]).unwrap();
            peer
        })
        .collect();
    server.serves(&good());
    for above in [largest + (1 << 20), 0x7fff_ffff, 0xffff_ff7f, 0xffff_ffff] {
        let mut peer = server.connect();
        peer.write_all(&above.to_be_bytes()).unwrap();
        let answer = server.over();
        assert!(answer.contains("above the limit"), "{answer}");
        is_hung_up_on(peer);
    }
    let (during, _) = server.used();
    assert!(
        during < before + (64 << 20),
        "{before} bytes, then {during}"
    );
    for answered in server.stalled..peers.len() {
        let answer = server.process.next("over");
        assert!(answer.contains("stalled"), "{answered}: {answer}");
    }
    peers.into_iter().for_each(is_hung_up_on);
    server.serves(&good());
    server.settles_at(descriptors);
}

#[test]
fn b17_a_session_broken_anywhere_fails_alone_and_leaves_nothing_behind() {
    if part().is_some() {
        return serve(Duration::from_secs(10));
    }
    let test = "peers::b17_a_session_broken_anywhere_fails_alone_and_leaves_nothing_behind";
    let mut server = Server::start(test, "server");
    let good = good();
    for _ in 0..50 {
        server.serves(&good);
    }
    let (before, descriptors) = server.used();
    for cut in 0..good.len().min(600) {
        let answer = server.play(&good[..cut]);
        assert!(answer.starts_with("failed: "), "cut at {cut}: {answer}");
    }
    server.serves(&good);
    for changed in 0..good.len().min(600) {
        let mut bytes = good.clone();
        bytes[changed] ^= 0xff;
        server.play(&bytes);
    }
    server.serves(&good);
    let mut random = Seeded::new();
    for _ in 0..500 {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let body: Vec<u8> = (0..random.below(200))
                .map(|_| random.below(256) as u8)
                .collect();
            bytes.extend((body.len() as u32).to_be_bytes());
            bytes.extend(body);
        }
        server.play(&bytes);
    }
    server.serves(&good);
    server.settles_at(descriptors);
    let (after, _) = server.used();
    assert!(after < before + (16 << 20), "{before} bytes, then {after}");
}
