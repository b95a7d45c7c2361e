//! `ringway recv`: prints what comes over the wire.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use clap::Args;
use ringway::clock::{Clock, Monotonic};
use ringway::data_plane::{
    AcceptedStream, DataPlane, ListenOptions, PlaneOptions, StreamListener, TransportChoice,
};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::{Bell, Ending, Popped};
use ringway::element::StreamElement;
use ringway::limits::STEP_ELEMENTS_MAX;
use ringway_netio::driver::{DRIVER_VARIABLE, DriverChoice};
use ringway_netio::net::HostPort;
use ringway_netio::session::Negotiation;

use crate::line::{self, WireType};
use crate::output::say;
use crate::{EXIT_FAILED, EXIT_INVALID};

/// Time for peers to take the last word, before the process goes.
pub(crate) const LEAVE_TIME_MAX: Duration = Duration::from_secs(10);

/// Streams that are served at a time; more senders wait.
const STREAMS_MAX: usize = 256;

/// Prints the elements of a stream as lines of JSON.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecvArgs {
    /// Where to listen. Port 0 takes a free one; `listening HOST:PORT` on standard error says
    /// which.
    #[arg(long, value_name = "HOST:PORT")]
    listen: HostPort,

    /// What the batches hold. A peer that sends another schema is refused.
    #[arg(long = "type", value_name = "T")]
    wire_type: WireType,

    /// End after one stream. Otherwise up to 256 are served at a time, for ever, and each line
    /// has the number of its stream.
    #[arg(long)]
    once: bool,

    /// Time to sleep after each data element, in milliseconds: a slow consumer.
    #[arg(long, value_name = "N", default_value_t = 0)]
    delay_ms: u64,

    /// Offer nothing beyond version 1 of the wire.
    #[arg(long)]
    v1: bool,

    /// What moves the bytes: `uring`, `epoll`, or `auto` for io_uring where it can be used.
    #[arg(long, value_name = "D", env = DRIVER_VARIABLE)]
    driver: Option<DriverChoice>,
}

const EXAMPLES: &str = "\
Examples:
  ringway recv --listen 127.0.0.1:7000 --type int64 --once
  ringway recv --listen 0.0.0.0:7000 --type arrow
  ringway recv --listen 127.0.0.1:0 --type string --delay-ms 100

Each line is one element: {\"data\": [[event_time, value...], ...]}, {\"watermark\": 1000}, {\"idle\": 1500},
{\"barrier\": 7, \"mode\": \"aligned\", \"terminal\": false},
{\"drain\": {\"subtask\": 3, \"target_parallelism\": 8}};
the last of a stream is {\"end\": \"closed\"} or {\"end\": \"error\", \"reason\": \"...\"}.
With --type arrow a row is an array of all columns, and no event time is needed.

Exit codes, with --once: 0 the stream was closed, 1 it failed, 2 the command line cannot be used.";

/// A stream that is served.
struct Stream {
    number: u64,
    accepted: AcceptedStream<RecordBatch>,
    /// Not before this is the next element taken.
    ready_at: Monotonic,
}

/// What became of a turn of a stream.
enum Turn {
    Worked,
    /// Nothing has come.
    Waits,
    /// The next element is not to be taken before this.
    Delayed(Monotonic),
    Ended(u8),
}

/// Why nothing can be printed any more.
struct Unprintable(io::Error);

pub(crate) fn recv(args: &RecvArgs) -> u8 {
    let bell = Bell::thread();
    let (plane, listener) = match listen(args, &bell) {
        Ok(listening) => listening,
        Err(error) => {
            say(format_args!("error: {error}\n"));
            return EXIT_INVALID;
        }
    };
    let at = HostPort::new(args.listen.host.clone(), listener.port());
    say(format_args!("listening {at}\n"));
    let served = serve(args, listener, &bell);
    // Who sent the last stream is yet to be told how it ended.
    plane.close(LEAVE_TIME_MAX);
    match served {
        Ok(code) => code,
        Err(Unprintable(error)) => {
            // Nobody reads on: that is worth no words, but what was not read is not received.
            if error.kind() != ErrorKind::BrokenPipe {
                say(format_args!(
                    "error: standard output cannot be written: {error}\n"
                ));
            }
            EXIT_FAILED
        }
    }
}

type Listening = (DataPlane, StreamListener<RecordBatch>);

fn listen(args: &RecvArgs, bell: &Bell) -> Result<Listening, String> {
    let driver = DriverChoice::from_option(args.driver).map_err(|error| error.to_string())?;
    let plane = DataPlane::with_options(PlaneOptions {
        driver: Some(driver),
        remote: RemoteOptions {
            negotiation: negotiation(args.v1),
            // Lines come in the order of the elements.
            overtaking: false,
            ..RemoteOptions::default()
        },
    });
    let options = ListenOptions::new(args.listen.host.clone(), args.listen.port)
        .transport(TransportChoice::Socket);
    let codec = Arc::new(args.wire_type.columns());
    let listener = plane.listen_for_streams(options, bell.clone(), codec, STREAMS_MAX);
    let listener = listener.map_err(|error| error.to_string())?;
    Ok((plane, listener))
}

/// Which form of the wire is offered or taken.
pub(crate) fn negotiation(only_v1: bool) -> Negotiation {
    match only_v1 {
        true => Negotiation::Off,
        false => Negotiation::Prefer,
    }
}

fn serve(
    args: &RecvArgs,
    listener: StreamListener<RecordBatch>,
    bell: &Bell,
) -> Result<u8, Unprintable> {
    let clock = Clock::start();
    let mut listener = Some(listener);
    let mut streams: Vec<Stream> = Vec::new();
    let mut numbers = 0..;
    let mut is_armed = false;
    loop {
        let mut worked = false;
        while let Some(accepted) = listener.as_ref().and_then(StreamListener::try_accept) {
            worked = true;
            streams.push(Stream {
                number: numbers.next().unwrap_or_default(),
                accepted,
                ready_at: clock.now(),
            });
            if args.once {
                listener = None;
            }
        }
        let mut next_turn: Option<Monotonic> = None;
        let mut index = 0;
        while let Some(stream) = streams.get_mut(index) {
            match turn(args, stream, clock)? {
                Turn::Ended(code) if args.once => return Ok(code),
                Turn::Ended(_) => {
                    worked = true;
                    // Another stream takes its place and is looked at next.
                    drop(streams.swap_remove(index));
                    continue;
                }
                Turn::Worked => worked = true,
                Turn::Waits => {}
                Turn::Delayed(until) => {
                    next_turn = Some(next_turn.map_or(until, |next| next.min(until)));
                }
            }
            index += 1;
        }
        is_armed = match (worked, is_armed) {
            (true, true) => {
                bell.disarm();
                false
            }
            (true, false) => false,
            // Something may have come after its stream was looked at, so look once more.
            (false, false) => {
                bell.arm();
                true
            }
            (false, true) => {
                bell.park(next_turn.map(|until| until.since(clock.now())));
                false
            }
        };
    }
}

/// Prints some of the elements that have come.
fn turn(args: &RecvArgs, stream: &mut Stream, clock: Clock) -> Result<Turn, Unprintable> {
    let number = (!args.once).then_some(stream.number);
    for taken in 0..STEP_ELEMENTS_MAX {
        if clock.now() < stream.ready_at {
            return Ok(match taken {
                0 => Turn::Delayed(stream.ready_at),
                _ => Turn::Worked,
            });
        }
        let element = match stream.accepted.receiver.try_pop() {
            Popped::Element(element) => element,
            Popped::Empty if taken > 0 => return Ok(Turn::Worked),
            Popped::Empty => return Ok(Turn::Waits),
            Popped::Ended(ending) => {
                print(&line::of_ending(&ending, number))?;
                return Ok(Turn::Ended(code(&ending)));
            }
        };
        match line::of_element(&element, number) {
            Ok(line) => print(&line)?,
            Err(error) => {
                print(&line::of_error(
                    &format!("a value cannot be shown: {error}"),
                    number,
                ))?;
                return Ok(Turn::Ended(EXIT_FAILED));
            }
        }
        if matches!(element, StreamElement::Data(_)) && args.delay_ms > 0 {
            let delay = Duration::from_millis(args.delay_ms);
            stream.ready_at = clock.now().after(delay);
        }
    }
    Ok(Turn::Worked)
}

fn code(ending: &Ending) -> u8 {
    match ending.is_orderly() {
        true => 0,
        false => EXIT_FAILED,
    }
}

fn print(line: &str) -> Result<(), Unprintable> {
    let mut output = io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(Unprintable)
}
