//! `ringway send`: puts lines, or the batches of a file, on the wire.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use clap::Args;
use ringway::data_plane::{ConnectOptions, DataPlane, PlaneOptions, TransportChoice};
use ringway::edge::remote::{FinishError, RemoteOptions};
use ringway::edge::{Bell, RejectReason, Sender};
use ringway::element::StreamElement;
use ringway::job::file::Span;
use ringway_netio::driver::{DRIVER_VARIABLE, DriverChoice};
use ringway_netio::net::HostPort;

use crate::batches::{self, Batches};
use crate::line::{self, Line, WireType};
use crate::output::say;
use crate::processes::some_time;
use crate::recv::{LEAVE_TIME_MAX, negotiation};
use crate::{EXIT_FAILED, EXIT_INVALID};

/// How long the peer may take for what was sent. A slow consumer is no failure, so it is long;
/// a dead one is seen by its connection.
const DELIVERY_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Sends elements that are given as lines of JSON, or the batches of a file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    /// Who to send to.
    #[arg(long, value_name = "HOST:PORT")]
    connect: HostPort,

    /// What the batches hold.
    #[arg(long = "type", value_name = "T")]
    wire_type: WireType,

    /// Lines as `recv` prints them; with `--type arrow` an Arrow, Parquet or NDJSON file, by its
    /// ending. Without it, or with `-`, standard input: lines, or an Arrow IPC stream.
    file: Option<PathBuf>,

    /// Time to try connecting, for a peer that is still starting [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    connect_timeout: Option<Span>,

    /// Speak version 1 of the wire, whatever the peer offers.
    #[arg(long)]
    v1: bool,

    /// What moves the bytes: `uring`, `epoll`, or `auto` for io_uring where it can be used.
    #[arg(long, value_name = "D", env = DRIVER_VARIABLE)]
    driver: Option<DriverChoice>,
}

const EXAMPLES: &str = "\
Examples:
  echo '{\"data\": [[1000, 1], [null, 2]]}' | ringway send --connect 127.0.0.1:7000 --type int64
  ringway send --connect host:7000 --type string lines.ndjson
  ringway send --connect host:7000 --type arrow flights.parquet

The lines are those of recv (see ringway recv --help). The stream is closed at the end of the input, and
failed by a line {\"end\": \"error\", \"reason\": \"...\"}.

Exit codes: 0 the peer has everything, 1 it does not, 2 the command line cannot be used or the input
cannot be opened.";

/// Elements, or what the input says of its end.
type Lines = Box<dyn Iterator<Item = Result<Line, String>>>;

pub(crate) fn send(args: &SendArgs) -> u8 {
    let lines = match input(args) {
        Ok(lines) => lines,
        Err(error) => {
            say(format_args!("error: {error}\n"));
            return EXIT_INVALID;
        }
    };
    let plane = match plane(args) {
        Ok(plane) => plane,
        Err(error) => {
            say(format_args!("error: {error}\n"));
            return EXIT_INVALID;
        }
    };
    let sent = connect(args, &plane).and_then(|sender| send_all(sender, lines));
    // A peer is to learn that the stream failed, which a process that just ends would not say.
    plane.close(LEAVE_TIME_MAX);
    match sent {
        Ok(()) => 0,
        Err(error) => {
            say(format_args!("error: {error}\n"));
            EXIT_FAILED
        }
    }
}

fn plane(args: &SendArgs) -> Result<DataPlane, String> {
    let driver = DriverChoice::from_option(args.driver).map_err(|error| error.to_string())?;
    Ok(DataPlane::with_options(PlaneOptions {
        driver: Some(driver),
        remote: RemoteOptions::default().negotiation(negotiation(args.v1)),
    }))
}

fn connect(args: &SendArgs, plane: &DataPlane) -> Result<Sender<RecordBatch>, String> {
    let mut options = ConnectOptions::default().transport(TransportChoice::Socket);
    if let Some(span) = args.connect_timeout {
        options = options.within(Duration::from_millis(span.ms()));
    }
    let HostPort { host, port } = &args.connect;
    let codec = Arc::new(args.wire_type.columns());
    plane
        .connect_with(host, *port, Bell::thread(), options, codec)
        .map_err(|error| error.to_string())
}

fn send_all(mut sender: Sender<RecordBatch>, lines: Lines) -> Result<(), String> {
    for line in lines {
        let element = match line {
            Ok(Line::Element(element)) => element,
            Ok(Line::Closed) => break,
            Ok(Line::Failed(reason)) => {
                sender.fail(reason.clone());
                return Err(format!("the input says that it failed: {reason}"));
            }
            Err(error) => {
                sender.fail("its input cannot be read");
                return Err(error);
            }
        };
        if let Err(rejected) = sender.push(element) {
            return Err(refusal(&rejected.reason));
        }
    }
    sender
        .finish_and_wait(DELIVERY_TIME_MAX)
        .map_err(|error| match error {
            FinishError::Rejected(reason) => refusal(&reason),
            error @ FinishError::TimedOut => error.to_string(),
        })
}

fn refusal(reason: &RejectReason) -> String {
    match reason {
        RejectReason::Closed => "the peer wants no more".to_owned(),
        reason => reason.to_string(),
    }
}

/// Opens what is to be sent.
fn input(args: &SendArgs) -> Result<Lines, String> {
    let path = args.file.as_deref().filter(|path| *path != Path::new("-"));
    let wire_type = args.wire_type;
    if wire_type == WireType::Arrow {
        let batches = path.map_or_else(batches::standard_input, batches::open)?;
        return Ok(of_batches(batches));
    }
    let Some(path) = path else {
        let lines = BufReader::new(io::stdin());
        return Ok(of_lines(lines, "standard input".to_owned(), wire_type));
    };
    let name = path.display().to_string();
    let wrong = |error: io::Error| format!("{name}: {error}");
    let file = File::open(path).map_err(wrong)?;
    // A folder can be opened as a file, and only reading it fails.
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err(wrong(ErrorKind::IsADirectory.into()));
    }
    Ok(of_lines(BufReader::new(file), name, wire_type))
}

fn of_batches(batches: Batches) -> Lines {
    Box::new(batches.map(|batch| batch.map(|batch| Line::Element(StreamElement::Data(batch)))))
}

fn of_lines(input: impl BufRead + 'static, name: String, wire_type: WireType) -> Lines {
    let lines = input.lines().enumerate().filter_map(move |(index, text)| {
        let read = match text {
            Ok(text) if text.trim().is_empty() => return None,
            Ok(text) => line::read(&text, wire_type),
            Err(error) => Err(error.to_string()),
        };
        Some(read.map_err(|error| format!("{name}, line {}: {error}", index + 1)))
    });
    Box::new(lines)
}
