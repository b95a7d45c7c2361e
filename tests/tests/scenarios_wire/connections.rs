//! B46, B48, B50: small messages, names of hosts, and connections that are cut.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::{EdgeOptions, Ending, Sender, Transport};
use ringway_netio::frame::Kind;
use ringway_shm::Bell;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::elements::{Numbers, ending, next, number};
use ringway_tests::sockets::pair;
use ringway_tests::within::{LONG, one_below};

use crate::rig::{all_rows, each_until_the_end, on_all};

#[test]
fn b46_small_messages_do_not_wait_for_each_other() {
    const ROUNDS: i64 = 200;
    on_all(|edge| {
        let options = EdgeOptions::named("edge");
        let (sockets, mut kept) = ([pair(), pair()], Vec::new());
        for (out, back) in &sockets {
            kept.extend([out.try_clone().unwrap(), back.try_clone().unwrap()]);
        }
        let [(out, back), (out_again, back_again)] = sockets;
        let mut ping = edge.sender::<Numbers>(out, &options);
        let mut to_echo = edge.receiver::<Numbers>(back, &options);
        let mut echo = edge.sender::<Numbers>(out_again, &options);
        let mut pong = edge.receiver::<Numbers>(back_again, &options);
        let echoing = thread::spawn(move || {
            let send_back = |element| echo.push(element).unwrap();
            assert_eq!(each_until_the_end(&mut to_echo, send_back), Ending::End);
            echo.finish().unwrap();
        });
        // A delayed acknowledgement comes every time.
        one_below(Duration::from_millis(20), "a quarter of them", || {
            let mut took = Vec::new();
            for round in 0..ROUNDS {
                let start = Instant::now();
                ping.push(number(round)).unwrap();
                assert_eq!(next(&mut pong), number(round));
                took.push(start.elapsed());
                thread::sleep(Duration::from_millis(1));
            }
            took.sort();
            took[took.len() / 4]
        });
        assert!(kept.iter().all(|socket| socket.nodelay().unwrap()));
        ping.finish().unwrap();
        assert_eq!(ending(&mut pong), Ending::End);
        echoing.join().unwrap();
    });
}

fn connect(host: &str, port: u16, within: Duration) -> Result<Sender<Numbers>, String> {
    let options = ConnectOptions::default().transport(TransportChoice::Socket);
    let plane = DataPlane::new();
    plane
        .connect(host, port, Bell::thread(), options.within(within))
        .map_err(|error| error.to_string())
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[test]
fn b48_a_listener_is_reached_under_every_way_to_write_its_address() {
    let mut ways = vec![("127.0.0.1", "localhost"), ("0.0.0.0", "localhost")];
    if has_ipv6() {
        // Of a wildcard of IPv6, peers of IPv4 are let in too.
        ways.extend([("::1", "::1"), ("[::1]", "[::1]"), ("::", "127.0.0.1")]);
    }
    for (bind, host) in ways {
        let plane = DataPlane::new();
        let options = ListenOptions::new(bind, 0);
        let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
        let mut sender = connect(host, listener.port(), LONG)
            .unwrap_or_else(|error| panic!("{bind}, {host}: {error}"));
        assert_eq!(sender.transport(), Transport::Socket);
        sender.push(number(1)).unwrap();
        let mut receiver = listener.accept_timeout(LONG).unwrap();
        assert_eq!(next(&mut receiver), number(1), "{bind}, {host}");
    }
}

#[test]
fn b48_who_is_not_reached_is_named_with_every_address_that_was_tried() {
    let short = Duration::from_millis(200);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = free.unwrap().port();
    let error = connect("localhost", port, short).unwrap_err();
    for part in ["localhost", &format!("127.0.0.1:{port}")] {
        assert!(error.contains(part), "{error}");
    }
    let error = connect("no-such-host.invalid", port, short).unwrap_err();
    assert!(error.contains("no-such-host.invalid"), "{error}");
}

/// A connection through one who lets so many bytes pass in either direction and then cuts it. Fillers
/// it takes out: how many there are is a matter of time, and where the others are cut should not be.
fn cut_after(forward: usize, backward: usize) -> (TcpStream, TcpStream) {
    let ((out, near), (far, back)) = (pair(), pair());
    for (from, to, bytes) in [(&near, &far, forward), (&far, &near, backward)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        thread::spawn(move || pass(from, to, bytes));
    }
    (out, back)
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut bytes: usize) {
    while bytes > 0 {
        match next_frame(&mut from, bytes) {
            Ok((Kind::FILLER, _)) => {}
            Ok((_, part)) if to.write_all(&part).is_ok() => bytes -= part.len(),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(_) | Err(_) => break,
        }
    }
    for socket in [from, to] {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// The kind of the next frame, and its first bytes. What is behind those stays unread, so that its
/// sender hears of a cut.
fn next_frame(from: &mut TcpStream, bytes: usize) -> io::Result<(Kind, Vec<u8>)> {
    let mut header = [0; 5];
    let mut seen = 0;
    while seen < header.len() {
        seen = from.peek(&mut header)?;
        if seen == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let [a, b, c, d, kind] = header;
    let whole = 4 + u32::from_be_bytes([a, b, c, d]) as usize;
    let kind = Kind(kind);
    let part = match kind {
        Kind::FILLER => whole,
        _ => whole.min(bytes),
    };
    let mut frame = vec![0; part];
    from.read_exact(&mut frame)?;
    Ok((kind, frame))
}

#[test]
fn b50_a_connection_that_is_cut_is_one_error_at_each_end_and_nothing_comes_twice() {
    const ALL: usize = usize::MAX;
    on_all(|edge| {
        let play = |forward, backward| {
            let (out, back) = cut_after(forward, backward);
            let options = EdgeOptions::named("edge");
            let mut sender = edge.sender::<Numbers>(out, &options);
            let mut receiver = edge.receiver::<Numbers>(back, &options);
            let sending = thread::spawn(move || {
                for row in 1..=10 {
                    sender
                        .push(number(row))
                        .map_err(|rejected| rejected.to_string())?;
                }
                sender
                    .finish_and_wait(LONG)
                    .map_err(|error| error.to_string())
            });
            let (rows, ending) = all_rows(&mut receiver);
            let received = receiver.remote_stats().unwrap().wire_bytes;
            (rows, ending, sending.join().unwrap(), received as usize)
        };
        let (rows, ending, sent, bytes) = play(ALL, ALL);
        assert_eq!((rows.len(), ending, sent), (10, Ending::End, Ok(())));
        let mut cuts: Vec<_> = (0..12).map(|part| (bytes * part / 12, ALL)).collect();
        cuts.extend([1, 2, 3].map(|before| (bytes - before, ALL)));
        // The grant of the receiver, and with it all that follows.
        cuts.extend([0, 3, 8].map(|bytes| (ALL, bytes)));
        for (forward, backward) in cuts {
            let (rows, ending, sent, _) = play(forward, backward);
            let at = format!("cut after {forward} bytes there and {backward} back");
            let expected: Vec<i64> = (1..=rows.len() as i64).collect();
            assert_eq!(rows, expected, "{at}");
            assert!(matches!(ending, Ending::Failed(_)), "{at}: {ending}");
            // All that version 1 can tell is that the peer's host has it, which is the one between.
            let is_told = edge.tells_reasons();
            assert!(
                sent.is_err() || !is_told,
                "{at}: the sender believes it has arrived"
            );
        }
    });
}
