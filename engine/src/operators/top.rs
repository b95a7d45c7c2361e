//! The foremost rows of each key, of all rows so far or of each window.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use crate::element::EventTime;
use crate::operators::aggregate::FastHash;
use crate::operators::window::{Window, WindowAssigner};

/// The foremost rows of each key. `S` is what rows are ordered by, `R` the rows.
pub(crate) struct TopState<K, S, R> {
    rows_max: usize,
    windows: Option<WindowAssigner>,
    watermark: Option<EventTime>,
    running: Tops<K, S, R>,
    /// Keys whose rows have changed, by their position.
    changed: VecDeque<usize>,
    by_window: BTreeMap<EventTime, (Window, Tops<K, S, R>)>,
    completing: Option<Completing<K, S, R>>,
}

/// A complete window and what of it is still to come out.
type Completing<K, S, R> = (Window, std::vec::IntoIter<Ranking<K, S, R>>);

/// The foremost rows of a key, first to last.
pub(crate) struct Top<K, R> {
    pub(crate) key: K,
    pub(crate) window: Option<Window>,
    pub(crate) rows: Vec<R>,
}

/// Rankings in the order in which their keys came.
struct Tops<K, S, R> {
    positions: HashMap<K, usize, FastHash>,
    rankings: Vec<Ranking<K, S, R>>,
}

struct Ranking<K, S, R> {
    key: K,
    rows: Vec<(S, R)>,
    is_changed: bool,
}

impl<K: Eq + Hash + Clone, S, R: Clone> TopState<K, S, R> {
    /// The first `rows_max` rows of each key, of all or of each window.
    pub(crate) fn new(rows_max: usize, windows: Option<WindowAssigner>) -> Self {
        Self {
            rows_max,
            windows,
            watermark: None,
            running: Tops::default(),
            changed: VecDeque::new(),
            by_window: BTreeMap::new(),
            completing: None,
        }
    }

    /// Whether a row of this time is in no window that takes rows in.
    pub(crate) fn is_late(&self, time: Option<EventTime>) -> bool {
        let Some(windows) = self.windows else {
            return false;
        };
        time.is_none_or(|time| Some(windows.last_window(time).last()) <= self.watermark)
    }

    /// Ranks a row that is not late. `stays` says whether a row that was ranked before stays
    /// ahead of it; `make` makes what is kept. Calls `kept` for each window in which the key is
    /// new. Returns whether it is among the first.
    pub(crate) fn offer(
        &mut self,
        key: &K,
        time: Option<EventTime>,
        stays: impl Fn(&S) -> bool,
        mut make: impl FnMut() -> (S, R),
        kept: &mut dyn FnMut(&K),
    ) -> bool {
        let rows_max = self.rows_max;
        let (Some(windows), Some(time)) = (self.windows, time) else {
            let at = self.running.position_of(key, &mut |_| {});
            let ranking = &mut self.running.rankings[at];
            if !ranking.insert(rows_max, stays, make) {
                return false;
            }
            if !std::mem::replace(&mut ranking.is_changed, true) {
                self.changed.push_back(at);
            }
            return true;
        };
        let mut is_in = false;
        for window in windows.windows_of(time) {
            if Some(window.last()) <= self.watermark {
                continue;
            }
            let (_, tops) = self
                .by_window
                .entry(window.last())
                .or_insert_with(|| (window, Tops::default()));
            let at = tops.position_of(key, kept);
            is_in |= tops.rankings[at].insert(rows_max, &stays, &mut make);
        }
        is_in
    }

    /// A watermark has come; the windows that it completes are due.
    pub(crate) fn advance(&mut self, watermark: EventTime) {
        self.watermark = self.watermark.max(Some(watermark));
    }

    /// The rows of the next key that is due: of those that changed, in the order in which they
    /// did, or of a complete window, whose state is gone then.
    pub(crate) fn next_due(&mut self) -> Option<Top<K, R>> {
        if let Some(at) = self.changed.pop_front() {
            let ranking = &mut self.running.rankings[at];
            ranking.is_changed = false;
            return Some(Top {
                key: ranking.key.clone(),
                window: None,
                rows: ranking.rows.iter().map(|(_, row)| row.clone()).collect(),
            });
        }
        loop {
            if let Some((window, rankings)) = &mut self.completing {
                let window = Some(*window);
                if let Some(Ranking { key, rows, .. }) = rankings.next() {
                    let rows = rows.into_iter().map(|(_, row)| row).collect();
                    return Some(Top { key, window, rows });
                }
                self.completing = None;
            }
            let first = self.by_window.first_entry()?;
            if Some(*first.key()) > self.watermark {
                return None;
            }
            let (window, tops) = first.remove();
            self.completing = Some((window, tops.rankings.into_iter()));
        }
    }

    /// All rows that are kept and not due.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut R> {
        let windows = self.by_window.values_mut().map(|(_, tops)| tops);
        let rankings = std::iter::once(&mut self.running)
            .chain(windows)
            .flat_map(|tops| &mut tops.rankings);
        rankings.flat_map(|ranking| ranking.rows.iter_mut().map(|(_, row)| row))
    }
}

impl<K: Eq + Hash + Clone, S, R> Tops<K, S, R> {
    fn position_of(&mut self, key: &K, kept: &mut dyn FnMut(&K)) -> usize {
        if let Some(at) = self.positions.get(key) {
            return *at;
        }
        let at = self.rankings.len();
        self.positions.insert(key.clone(), at);
        self.rankings.push(Ranking {
            key: key.clone(),
            rows: Vec::new(),
            is_changed: false,
        });
        kept(key);
        at
    }
}

impl<K, S, R> Ranking<K, S, R> {
    fn insert(
        &mut self,
        rows_max: usize,
        stays: impl Fn(&S) -> bool,
        mut make: impl FnMut() -> (S, R),
    ) -> bool {
        let at = self.rows.partition_point(|(order, _)| stays(order));
        if at >= rows_max {
            return false;
        }
        self.rows.insert(at, make());
        self.rows.truncate(rows_max);
        true
    }
}

impl<K, S, R> Default for Tops<K, S, R> {
    fn default() -> Self {
        Self {
            positions: HashMap::default(),
            rankings: Vec::new(),
        }
    }
}
