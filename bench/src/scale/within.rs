//! Local edges between two threads.

use ringway::edge::{EdgeOptions, local};
use ringway_shm::Bell;

use crate::backoff::Backoff;
use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::edge::socket::{Load, Prebuilt};
use crate::error::BenchError;
use crate::pinned::run_pair;

use super::work::{Outputs, Subtasks, Turn, receive};

/// Moves `count` batches.
///
/// # Errors
/// When a row is lost, doubled or changed, or a thread cannot be pinned.
pub(super) fn run(
    cpus: CpuPair,
    subtasks: Subtasks,
    load: Load,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Sample, BenchError> {
    let (here, there) = (Bell::thread(), Bell::thread());
    let open = |_| local::open(EdgeOptions::named("bench"), here.clone(), there.clone());
    let (senders, receivers) = (0..subtasks.edges()).map(open).unzip();
    let pair = run_pair(
        cpus,
        || {
            let mut outputs = Outputs::new(senders, subtasks, load)?;
            let mut batches = prebuilt.batches(count);
            outputs.emit(&mut batches, count, &mut Spinning::new())?;
            outputs.finish()
        },
        || receive(receivers, &mut Spinning::new(), 0, || ()),
    )?;
    pair.first?;
    let expected = prebuilt.total(count).in_any_order();
    let (total, _) = pair.second?;
    total.in_any_order().require(expected)?;
    let bytes = prebuilt.bytes(count);
    Ok(Sample::rate(bytes, pair.wall, pair.spent, bytes))
}

/// It never sleeps.
struct Spinning(Backoff);

impl Spinning {
    fn new() -> Self {
        Self(Backoff::light())
    }
}

impl Turn for Spinning {
    fn turn(&mut self, has_worked: bool) -> Result<(), BenchError> {
        if has_worked {
            self.0.reset();
        } else {
            self.0.pause();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::edge::socket::Kind;

    use super::*;

    #[test]
    fn all_rows_come_over_however_many_edges() {
        let cpus = CpuPair::choose(None).unwrap();
        let kind = Kind::Int64;
        let load = Load { kind, rows: 64 };
        let prebuilt = load.prebuilt();
        for subtasks in [
            Subtasks::in_turn(1),
            Subtasks::in_turn(30),
            Subtasks::by_key(1, 1),
            Subtasks::by_key(3, 5),
        ] {
            let sample = run(cpus, subtasks, load, &prebuilt, 300);
            assert!(sample.unwrap().value > 0.0, "{subtasks:?}");
        }
    }

    #[test]
    fn an_edge_that_carries_nothing_is_found() {
        let cpus = CpuPair::choose(None).unwrap();
        let kind = Kind::Int64;
        let load = Load { kind, rows: 64 };
        let prebuilt = load.prebuilt();
        let error = run(cpus, Subtasks::in_turn(5), load, &prebuilt, 4).unwrap_err();
        assert!(error.to_string().contains("edge 4"), "{error}");
    }
}
