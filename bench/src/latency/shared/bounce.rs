//! 64 bytes there and back.

use std::io::Read;
use std::os::unix::net::UnixStream;

use ringway_shm::Bell;

use crate::edge::RAW_BYTES;
use crate::error::BenchError;
use crate::shared::linked::{link_in, link_out};
use crate::shared::meeting::{Meeting, join, pass, take};
use crate::shared::memfd::{Copied, RingIn, RingOut, WakeUps};
use crate::shared::{WayIn, WayOut};

use super::{Echo, Times, Trips};

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
            pass(&stream, &[std::os::fd::AsFd::as_fd(&stream)])?;
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
        Echo::Row(_) => Err(BenchError::new("a row goes over an edge")),
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
    for _ in 0..count {
        let mut pushed = Ok(());
        while !there.pop(|message| pushed = back.push(message))? {
            there.wait()?;
        }
        pushed?;
        back.publish();
    }
    Ok(count)
}
