//! Edges between "processes" that are threads of this one: rings that two clusters meet at.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ringway::job::payload::Erased;
use ringway::job::remote::{RemoteEdges, RemoteError, RemoteSide, RunIdentity, WantedHalf};
use ringway_shm::Bell;

/// Where the halves of edges meet. A clone is another way in.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<(Mutex<Halves>, Condvar)>);

#[derive(Default)]
struct Halves {
    /// The bell of the half that came first.
    first: HashMap<u64, (RemoteSide, Bell)>,
    /// Halves that were made when the second one came, for the first.
    made: HashMap<u64, Erased>,
    /// What every process said of the run.
    runs: Vec<(u128, u32)>,
}

impl Hub {
    /// The job numbers and attempts that the processes were told.
    pub(crate) fn runs(&self) -> Vec<(u128, u32)> {
        self.0.0.lock().unwrap().runs.clone()
    }
}

impl RemoteEdges for Hub {
    fn port(&self) -> Option<u16> {
        Some(7)
    }

    fn open(
        &mut self,
        run: &RunIdentity,
        wanted: Vec<WantedHalf>,
    ) -> Result<Vec<Erased>, RemoteError> {
        let (halves, changed) = &*self.0;
        let mut halves = halves.lock().unwrap();
        halves.runs.push((run.job, run.attempt));
        let mut own = HashMap::new();
        for half in &wanted {
            assert_ne!(half.peer, run.process, "it is in another process");
            assert!(run.addresses[half.peer].ends_with(":7"));
            let Some((side, bell)) = halves.first.remove(&half.edge) else {
                let first = (half.side, half.bell.clone());
                halves.first.insert(half.edge, first);
                continue;
            };
            assert_ne!(side, half.side, "two halves of edge {}", half.edge);
            let (from, to) = match half.side {
                RemoteSide::Sender => (half.bell.clone(), bell),
                RemoteSide::Receiver => (bell, half.bell.clone()),
            };
            let (sender, receiver) = half.payload.open_edge(half.options.clone(), from, to);
            let (mine, theirs) = match half.side {
                RemoteSide::Sender => (sender, receiver),
                RemoteSide::Receiver => (receiver, sender),
            };
            own.insert(half.edge, mine);
            halves.made.insert(half.edge, theirs);
        }
        changed.notify_all();
        let mut opened = Vec::new();
        for half in &wanted {
            if let Some(mine) = own.remove(&half.edge) {
                opened.push(mine);
                continue;
            }
            let limit = Duration::from_secs(10);
            let (waited, timeout) = changed
                .wait_timeout_while(halves, limit, |halves| {
                    !halves.made.contains_key(&half.edge)
                })
                .unwrap();
            halves = waited;
            if timeout.timed_out() {
                return Err(RemoteError(format!("nobody came to edge {}", half.edge)));
            }
            opened.extend(halves.made.remove(&half.edge));
        }
        Ok(opened)
    }
}
