//! Local edges of this process.

use ringway::batch::{Row, Rows};
use ringway::edge::{EdgeOptions, Popped, Receiver, Sender, local};
use ringway::element::StreamElement;
use ringway::limits::{CONTROL_ELEMENTS_MAX, EDGE_CAPACITY_ELEMENTS};
use ringway_shm::Bell;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

use super::resident::Resident;

/// Two capacities, from which it is known what a slot takes.
const CAPACITIES: [usize; 2] = [1, 257];

type Edge = (Sender<Rows<i64>>, Receiver<Rows<i64>>);

/// What an edge takes, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct HeldLocally {
    /// When all of its slots have been used, beside these.
    pub(super) beside_slots: f64,
    /// Idle, of the default capacity: of its slots there is what was touched.
    pub(super) idle: f64,
    /// The same when all of its slots have been used.
    pub(super) used: f64,
}

/// Opens so many edges of some capacities, and uses them.
///
/// # Errors
/// When an element is lost, or the memory can't be read.
pub(super) fn hold(edges: usize) -> Result<HeldLocally, BenchError> {
    let mut kept = vec![open(1)];
    let [fewer_capacity, more_capacity] = CAPACITIES;
    let fewer = take(edges, fewer_capacity, &mut kept)?;
    let more = take(edges, more_capacity, &mut kept)?;
    let more_slots = slots(more_capacity) - slots(fewer_capacity);
    let slot_bytes = (more.used - fewer.used) / more_slots as f64;
    let default = take(edges, EDGE_CAPACITY_ELEMENTS, &mut kept)?;
    Ok(HeldLocally {
        beside_slots: (fewer.used - slots(fewer_capacity) as f64 * slot_bytes).max(0.0),
        idle: default.idle,
        used: default.used,
    })
}

/// Slots of an edge: control elements have some beside those of the data, and the ring rounds up.
fn slots(capacity: usize) -> usize {
    (capacity + CONTROL_ELEMENTS_MAX).next_power_of_two()
}

/// What an edge of some capacity takes, in bytes.
struct Taken {
    idle: f64,
    used: f64,
}

/// Opens so many edges of a capacity, and uses all of their slots.
fn take(edges: usize, capacity: usize, kept: &mut Vec<Edge>) -> Result<Taken, BenchError> {
    // Where they lie is not theirs.
    kept.reserve(edges);
    let before = Resident::now()?;
    let first = kept.len();
    kept.extend((0..edges).map(|_| open(capacity)));
    let idle = Resident::now()? - before;
    for edge in &mut kept[first..] {
        pass(edge, slots(capacity))?;
    }
    let used = Resident::now()? - before;
    let each = |all: Resident| all.own_bytes / edges as f64;
    Ok(Taken {
        idle: each(idle),
        used: each(used),
    })
}

/// One element after the other, so that each slot has had one and none is left.
fn pass((sender, receiver): &mut Edge, elements: usize) -> Result<(), BenchError> {
    for number in 0..elements as i64 {
        let rows = Rows::from(vec![Row::at(number, number)]);
        let pushed = sender.try_push(StreamElement::Data(rows));
        pushed.map_err(|rejected| BenchError::new(rejected.reason.to_string()))?;
        match receiver.try_pop() {
            Popped::Element(StreamElement::Data(rows))
                if rows.iter().next().is_some_and(|row| row.value == number) => {}
            other => return Err(BenchError::new(format!("{other:?} came for {number}"))),
        }
    }
    Ok(())
}

fn open(capacity: usize) -> Edge {
    // A worker's bell is shared by all its edges, so it is no part of one.
    thread_local! {
        static BELLS: (Bell, Bell) = (Bell::thread(), Bell::thread());
    }
    let options = EdgeOptions::named("idle[0] -> idle[0]").capacity(capacity);
    BELLS.with(|(sender, receiver)| local::open(options, sender.clone(), receiver.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_takes_its_slots_once_they_have_been_used() {
        let held = hold(200).unwrap();
        let slots = slots(EDGE_CAPACITY_ELEMENTS) as f64;
        // Other tests may free memory meanwhile.
        assert!(held.used - held.idle > slots * 16.0, "{held:?}");
    }
}
