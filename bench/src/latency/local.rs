//! One-row batches to another thread over one local edge, and back over another.

use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, local};
use ringway::element::StreamElement;
use ringway_shm::Bell;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::backoff::Backoff;
use crate::cpus::CpuPair;
use crate::edge::socket::Idle;
use crate::error::BenchError;
use crate::pinned::{Pair, run_pair};

use super::road::Road;

/// Elements that an edge, or a queue, holds at most.
const CAPACITY_ELEMENTS: usize = 1024;

/// How long an idle thread spins before it sleeps, as a worker does.
const SPIN: Duration = Duration::from_micros(50);
/// How long it sleeps at most.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Time after which the other thread is taken to be stuck.
const STUCK_AFTER: Duration = Duration::from_secs(60);
/// Looks between two looks at the clock.
const LOOKS: u32 = 16;

type Element = StreamElement<Rows<i64>>;

/// What carries the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Edges whose ends wait like this.
    Edge(Idle),
    /// Queues of rtrb, polled.
    Rtrb,
}

/// Goes a road on the first CPU, while the second sends back what comes. Returns how many it has
/// sent back.
///
/// # Errors
/// When a batch is lost or changed, or a thread cannot be pinned.
pub(crate) fn run<T: Send>(
    cpus: CpuPair,
    carrier: Carrier,
    go: impl FnOnce(&mut dyn Road) -> Result<T, BenchError> + Send,
) -> Result<Pair<T, u64>, BenchError> {
    let pair = match carrier {
        Carrier::Edge(idle) => {
            let (here, other) = (Bell::thread(), Bell::thread());
            let open = |sender: &Bell, receiver: &Bell| {
                let options = EdgeOptions::named("bench").capacity(CAPACITY_ELEMENTS);
                local::open(options, sender.clone(), receiver.clone())
            };
            let (out, there) = open(&here, &other);
            let (answer, back) = open(&other, &here);
            let mut road = Edges {
                out,
                back,
                rest: Rest::new(here, idle),
                refused: None,
            };
            run_pair(
                cpus,
                || {
                    let gives = go(&mut road)?;
                    road.finish()?;
                    Ok::<_, BenchError>(gives)
                },
                || echo(there, answer, Rest::new(other, idle)),
            )?
        }
        Carrier::Rtrb => {
            let (out, there) = RingBuffer::new(CAPACITY_ELEMENTS);
            let (answer, back) = RingBuffer::new(CAPACITY_ELEMENTS);
            let mut road = Queues {
                out,
                back,
                backoff: Backoff::spin(),
            };
            run_pair(
                cpus,
                || {
                    let gives = go(&mut road);
                    // The other thread ends when this end is gone.
                    drop(road);
                    gives
                },
                || Ok(echo_queued(there, answer)),
            )?
        }
    };
    Ok(Pair {
        first: pair.first?,
        second: pair.second?,
        wall: pair.wall,
        spent: pair.spent,
    })
}

struct Edges {
    out: Sender<Rows<i64>>,
    back: Receiver<Rows<i64>>,
    rest: Rest,
    refused: Option<Element>,
}

impl Edges {
    /// Ends both edges in order.
    fn finish(mut self) -> Result<(), BenchError> {
        finish(self.out)?;
        while !matches!(self.back.try_pop(), Popped::Ended(_)) {
            self.rest.wait(false, || Some(SLEEP_MAX))?;
        }
        Ok(())
    }
}

struct Queues {
    out: Producer<Element>,
    back: Consumer<Element>,
    backoff: Backoff,
}

impl Road for Edges {
    fn send(&mut self, number: i64) -> Result<bool, BenchError> {
        let element = self.refused.take().unwrap_or_else(|| row(number));
        self.refused = push(&mut self.out, element)?;
        Ok(self.refused.is_none())
    }

    fn take_back(&mut self) -> Result<Option<i64>, BenchError> {
        match self.back.try_pop() {
            Popped::Element(element) => Ok(Some(number(&element))),
            Popped::Empty => Ok(None),
            Popped::Ended(ending) => Err(BenchError::new(format!("the edge ended as {ending:?}"))),
        }
    }

    fn wait(
        &mut self,
        has_worked: bool,
        limit: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        self.rest.wait(has_worked, limit)
    }
}

impl Road for Queues {
    fn send(&mut self, number: i64) -> Result<bool, BenchError> {
        Ok(!self.out.is_full() && self.out.push(row(number)).is_ok())
    }

    fn take_back(&mut self) -> Result<Option<i64>, BenchError> {
        Ok(self.back.pop().ok().map(|element| number(&element)))
    }

    fn wait(
        &mut self,
        has_worked: bool,
        _: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        if has_worked {
            self.backoff.reset();
        } else {
            self.backoff.pause();
        }
        Ok(())
    }
}

fn echo(
    mut there: Receiver<Rows<i64>>,
    mut answer: Sender<Rows<i64>>,
    mut rest: Rest,
) -> Result<u64, BenchError> {
    let limit = || Some(SLEEP_MAX);
    let mut count = 0;
    loop {
        match there.try_pop() {
            Popped::Element(element) => {
                let mut refused = push(&mut answer, element)?;
                while let Some(element) = refused {
                    rest.wait(false, limit)?;
                    refused = push(&mut answer, element)?;
                }
                count += 1;
                rest.wait(true, limit)?;
            }
            Popped::Empty => rest.wait(false, limit)?,
            Popped::Ended(Ending::End) => {
                finish(answer)?;
                return Ok(count);
            }
            Popped::Ended(other) => {
                return Err(BenchError::new(format!("the edge ended as {other:?}")));
            }
        }
    }
}

fn echo_queued(mut there: Consumer<Element>, mut answer: Producer<Element>) -> u64 {
    let mut backoff = Backoff::spin();
    let mut count = 0;
    loop {
        let Ok(mut element) = there.pop() else {
            if there.is_abandoned() && there.is_empty() {
                return count;
            }
            backoff.pause();
            continue;
        };
        while let Err(rtrb::PushError::Full(refused)) = answer.push(element) {
            backoff.pause();
            element = refused;
        }
        backoff.reset();
        count += 1;
    }
}

/// How a thread waits that has nothing to wait for but edges.
struct Rest {
    bell: Bell,
    idle: Idle,
    looks: u32,
    idle_since: Option<Instant>,
    is_armed: bool,
}

impl Rest {
    fn new(bell: Bell, idle: Idle) -> Self {
        Self {
            bell,
            idle,
            looks: 0,
            idle_since: None,
            is_armed: false,
        }
    }

    /// Waits after a look that found nothing. Before it sleeps, the caller gets a last look.
    ///
    /// # Errors
    /// When nothing has happened for a minute.
    #[inline]
    fn wait(
        &mut self,
        has_worked: bool,
        limit: impl FnOnce() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        if !has_worked {
            return self.wait_more(limit);
        }
        if std::mem::take(&mut self.is_armed) {
            self.bell.disarm();
        }
        self.idle_since = None;
        Ok(())
    }

    fn wait_more(&mut self, limit: impl FnOnce() -> Option<Duration>) -> Result<(), BenchError> {
        if std::mem::take(&mut self.is_armed) {
            match limit() {
                Some(limit) => _ = self.bell.park(Some(limit.min(SLEEP_MAX))),
                None => self.bell.disarm(),
            }
            return Ok(());
        }
        std::hint::spin_loop();
        self.looks = self.looks.wrapping_add(1);
        if self.idle != Idle::Park && !self.looks.is_multiple_of(LOOKS) {
            return Ok(());
        }
        let idle_for = self.idle_since.get_or_insert_with(Instant::now).elapsed();
        if idle_for > STUCK_AFTER {
            let words = "nothing came for a minute: the other thread is stuck";
            return Err(BenchError::new(words));
        }
        if self.idle == Idle::Park || (self.idle == Idle::Adaptive && idle_for >= SPIN) {
            self.bell.arm();
            self.is_armed = true;
        }
        Ok(())
    }
}

fn row(number: i64) -> Element {
    StreamElement::Data(Rows::from(vec![Row::at(number, number)]))
}

fn number(element: &Element) -> i64 {
    match element {
        StreamElement::Data(rows) => rows.iter().next().map_or(-1, |row| row.value),
        _ => -1,
    }
}

/// Pushes an element, and gives it back where there is no room.
fn push(to: &mut Sender<Rows<i64>>, element: Element) -> Result<Option<Element>, BenchError> {
    match to.try_push(element) {
        Ok(()) => Ok(None),
        Err(rejected) if rejected.reason == RejectReason::Full => Ok(Some(rejected.element)),
        Err(rejected) => Err(BenchError::new(rejected.reason.to_string())),
    }
}

fn finish(sender: Sender<Rows<i64>>) -> Result<(), BenchError> {
    let finished = sender.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::road::{at_a_rate, one_by_one};
    use super::super::schedule::Schedule;
    use super::*;

    #[test]
    fn whatever_carries_them_and_however_it_waits_all_batches_come_back() {
        let cpus = CpuPair::choose(None).unwrap();
        let carriers = [Idle::Spin, Idle::Adaptive, Idle::Park].map(Carrier::Edge);
        for carrier in carriers.into_iter().chain([Carrier::Rtrb]) {
            let pair = run(cpus, carrier, |road| one_by_one(road, 60)).unwrap();
            assert_eq!(pair.second, 60, "{carrier:?}");
            let far_too_many = Schedule::new(1_000_000_000, 5_000);
            let pair = run(cpus, carrier, |road| at_a_rate(road, far_too_many)).unwrap();
            assert_eq!(pair.first.sent(), 5_000, "{carrier:?}");
            assert_eq!(pair.second, 5_000, "{carrier:?}");
        }
    }

    #[test]
    fn a_rate_that_nobody_can_hold_comes_to_an_end() {
        let cpus = CpuPair::choose(None).unwrap();
        let schedule = Schedule::new(100_000_000, 1_000_000).at_most(Duration::ZERO);
        let carrier = Carrier::Edge(Idle::Adaptive);
        let pair = run(cpus, carrier, |road| at_a_rate(road, schedule)).unwrap();
        assert!(pair.first.sent() < 1_000_000 && pair.first.sent() == pair.second);
        assert!(pair.first.held_share() < 0.95);
        assert!(pair.first.into_latencies().count() > pair.second);
    }
}
