//! 64 bytes there and back.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ringway_shm::Bell;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::edge::RAW_BYTES;
use crate::error::BenchError;
use crate::latency::closed_loop;
#[cfg(feature = "aeron")]
use crate::shared::aeron;
use crate::shared::linked::{link_in, link_out};
use crate::shared::meeting::{Meeting, join, pass, take};
use crate::shared::memfd::{Copied, RingIn, RingOut, WakeUps};
use crate::shared::{MESSAGES_MAX, WayIn, WayOut};

use super::super::road::{Road, Times, at_a_rate};
use super::super::schedule::{OpenLoop, Schedule};
use super::{Echo, Trips};

/// The streams of Aeron out and back.
#[cfg(feature = "aeron")]
const AERON_STREAMS: [i32; 2] = [1, 2];

/// What a message begins with that is the last one.
const END: u64 = u64::MAX;

/// Messages under way at most: fewer than a ring holds, so that no end waits for room while it
/// might look at what has come.
const UNDER_WAY_MAX: u64 = MESSAGES_MAX as u64 / 4;

/// Sends, and waits for the answer.
///
/// # Errors
/// When the peer is gone, or something else comes back.
pub(super) fn ask(echo: Echo, meeting: &Meeting, trips: &Trips) -> Result<Times, BenchError> {
    let stream = meeting.accept()?;
    match echo {
        Echo::Link(idle) => {
            let bell = Bell::descriptor()?;
            let there = link_in(&stream, &bell, RAW_BYTES)?;
            let back = link_out(&stream, &bell, RAW_BYTES, idle)?.impatient();
            ask_all(there, back, stream, trips.count)
        }
        Echo::Memfd => {
            let there = RingIn::make(RAW_BYTES, Copied::Plain)?;
            let back = RingOut::make(RAW_BYTES)?.impatient();
            pass(&stream, &[there.descriptor(), back.descriptor()])?;
            ask_all(there, back, stream, trips.count)
        }
        #[cfg(feature = "iceoryx2")]
        Echo::Iceoryx => {
            let services = crate::shared::iceoryx::Services::new()?;
            let [out, answer] = names(trips);
            let back = services.subscriber(&answer, RAW_BYTES)?.impatient();
            let there = services.publisher(&out, RAW_BYTES)?;
            // Now there is someone for the other process to publish for.
            pass(&stream, &[stream.as_fd()])?;
            ask_all(there, back, stream, trips.count)
        }
        Echo::Futex => {
            let words = WakeUps::make()?;
            pass(&stream, &[words.descriptor()])?;
            let mut times = Times::begin();
            for number in 0..trips.count {
                words.ask(number as u32 + 1);
                times.is_back();
            }
            Ok(times)
        }
        #[cfg(feature = "aeron")]
        Echo::Aeron => {
            let mut stream = stream;
            let driver = aeron::Driver::start(&mut stream)?;
            let [out, answer] = AERON_STREAMS;
            let back = driver.client().subscription(answer)?.impatient();
            let there = driver.client().publication(out)?.connected();
            ask_all(there, back, stream, trips.count)
        }
        Echo::UnixStream => closed_loop::ask::<RAW_BYTES>(&stream, &stream, trips.count),
        Echo::Pipe => {
            let (there, out) = pipe_with(PipeFlags::CLOEXEC)?;
            let (back, answer) = pipe_with(PipeFlags::CLOEXEC)?;
            pass(&stream, &[there.as_fd(), answer.as_fd()])?;
            drop((there, answer));
            closed_loop::ask::<RAW_BYTES>(File::from(out), File::from(back), trips.count)
        }
        Echo::Row(_) => Err(BenchError::new("a row goes over an edge")),
    }
}

/// Sends over bare rings what is due, and waits for the answers.
///
/// # Errors
/// As for [`ask`].
pub(super) fn ask_at_a_rate(meeting: &Meeting, schedule: Schedule) -> Result<OpenLoop, BenchError> {
    let mut stream = meeting.accept()?;
    let mut road = Rings {
        there: RingIn::make(RAW_BYTES, Copied::Plain)?,
        back: RingOut::make(RAW_BYTES)?.impatient(),
        under_way: 0,
    };
    pass(&stream, &[road.there.descriptor(), road.back.descriptor()])?;
    let trips = at_a_rate(&mut road, schedule)?;
    road.push(END)?;
    // The other process closes the stream at its end; until then it may need these ends.
    stream.read_exact(&mut [0]).unwrap_err();
    Ok(trips)
}

/// Two bare rings.
struct Rings {
    there: RingIn,
    back: RingOut,
    under_way: u64,
}

impl Rings {
    fn push(&mut self, number: u64) -> Result<(), BenchError> {
        let mut message = [0; RAW_BYTES];
        message[..8].copy_from_slice(&number.to_le_bytes());
        self.there.push(&message)?;
        self.there.publish();
        Ok(())
    }
}

impl Road for Rings {
    fn send(&mut self, number: i64) -> Result<bool, BenchError> {
        if self.under_way == UNDER_WAY_MAX {
            return Ok(false);
        }
        self.under_way += 1;
        self.push(number as u64)?;
        Ok(true)
    }

    fn take_back(&mut self) -> Result<Option<i64>, BenchError> {
        let mut number = None;
        self.back
            .pop(|message| number = message.first_chunk().copied().map(i64::from_le_bytes))?;
        self.under_way -= u64::from(number.is_some());
        Ok(number)
    }

    fn wait(
        &mut self,
        has_worked: bool,
        _: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        if has_worked { Ok(()) } else { self.back.wait() }
    }
}

/// In the other process: answers what [`ask`] asks.
///
/// # Errors
/// When the peer is gone.
pub(super) fn answer(echo: Echo, trips: &Trips) -> Result<u64, BenchError> {
    match echo {
        Echo::Link(idle) => {
            let stream = join(&trips.meeting)?;
            let bell = Bell::descriptor()?;
            let there = link_out(&stream, &bell, RAW_BYTES, idle)?.impatient();
            let back = link_in(&stream, &bell, RAW_BYTES)?;
            answer_all(there, back, trips.count)
        }
        Echo::Memfd => {
            let stream = join(&trips.meeting)?;
            let [there, back] = take(&stream)?;
            let there = RingOut::of(there, RAW_BYTES)?.impatient();
            answer_all(there, RingIn::of(back, RAW_BYTES)?, trips.count)
        }
        #[cfg(feature = "iceoryx2")]
        Echo::Iceoryx => {
            let services = crate::shared::iceoryx::Services::new()?;
            let [out, answer] = names(trips);
            let there = services.subscriber(&out, RAW_BYTES)?.impatient();
            let stream = join(&trips.meeting)?;
            let [_ready] = take(&stream)?;
            let back = services.publisher(&answer, RAW_BYTES)?;
            answer_all(there, back, trips.count)
        }
        Echo::Futex => {
            let stream = join(&trips.meeting)?;
            let [memory] = take(&stream)?;
            let words = WakeUps::of(memory)?;
            (0..trips.count).for_each(|number| words.answer(number as u32 + 1));
            Ok(trips.count)
        }
        #[cfg(feature = "aeron")]
        Echo::Aeron => {
            let mut stream = join(&trips.meeting)?;
            let client = aeron::Client::join(&mut stream)?;
            let [out, answer] = AERON_STREAMS;
            let there = client.subscription(out)?.impatient();
            let back = client.publication(answer)?.connected();
            answer_all(there, back, trips.count)
        }
        Echo::UnixStream => {
            let stream = join(&trips.meeting)?;
            closed_loop::answer::<RAW_BYTES>(&stream, &stream)
        }
        Echo::Pipe => {
            let [there, back] = take(&join(&trips.meeting)?)?;
            closed_loop::answer::<RAW_BYTES>(File::from(there), File::from(back))
        }
        Echo::Row(_) => Err(BenchError::new("a row goes over an edge")),
    }
}

/// The services out and back.
#[cfg(feature = "iceoryx2")]
fn names(trips: &Trips) -> [String; 2] {
    ["out", "back"].map(|way| format!("{}-{way}", trips.meeting))
}

fn ask_all(
    mut there: impl WayIn,
    mut back: impl WayOut,
    mut stream: UnixStream,
    count: u64,
) -> Result<Times, BenchError> {
    let mut message = [0; RAW_BYTES];
    let mut times = Times::begin();
    for number in 0..count {
        message[..8].copy_from_slice(&number.to_le_bytes());
        there.push(&message)?;
        there.publish();
        let mut is_same = false;
        while !back.pop(|answer| is_same = answer == message)? {
            back.wait()?;
        }
        times.is_back();
        if !is_same {
            return Err(BenchError::new(format!("another answer to {number} came")));
        }
    }
    // The other process closes the stream at its end; until then it may need these ends.
    stream.read_exact(&mut [0]).unwrap_err();
    Ok(times)
}

fn answer_all(mut there: impl WayOut, mut back: impl WayIn, count: u64) -> Result<u64, BenchError> {
    let mut answered = 0;
    let mut is_end = false;
    while answered < count {
        let mut pushed = Ok(());
        while !there.pop(|message| {
            is_end = message.starts_with(&END.to_le_bytes());
            if !is_end {
                pushed = back.push(message);
            }
        })? {
            there.wait()?;
        }
        pushed?;
        if is_end {
            break;
        }
        back.publish();
        answered += 1;
    }
    Ok(answered)
}
