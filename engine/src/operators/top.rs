//! The foremost rows of each key, of all rows so far or of each window.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;

use indexmap::IndexMap;
use indexmap::map::IntoIter;

use crate::element::EventTime;
use crate::operators::aggregate::FastHash;
use crate::operators::window::{Window, WindowAssigner};

/// The foremost rows of each key. `S` is what rows are ordered by, `R` the rows.
pub(crate) struct TopState<K, S, R> {
    rows_max: usize,
    /// Tells rows that share a place; without it none do.
    ties: Option<IsTie<S>>,
    windows: Option<WindowAssigner>,
    watermark: Option<EventTime>,
    running: Tops<K, S, R>,
    /// Keys whose rows have changed, by their position.
    changed: VecDeque<usize>,
    by_window: BTreeMap<EventTime, (Window, Tops<K, S, R>)>,
    completing: Option<Completing<K, S, R>>,
}

/// Whether rows of these orders share a place.
type IsTie<S> = fn(&S, &S) -> bool;

/// A complete window and what of it is still to come out.
type Completing<K, S, R> = (Window, IntoIter<K, Ranking<S, R>>);

/// The foremost rows of a key, first to last.
pub(crate) struct Top<K, R> {
    pub(crate) key: K,
    pub(crate) window: Option<Window>,
    /// Each with its place, from 1.
    pub(crate) rows: Vec<(u64, R)>,
}

/// Rankings in the order in which their keys came.
type Tops<K, S, R> = IndexMap<K, Ranking<S, R>, FastHash>;

struct Ranking<S, R> {
    rows: Vec<(S, R)>,
    is_changed: bool,
}

/// Which rows have a place.
struct Places<S> {
    rows_max: usize,
    ties: Option<IsTie<S>>,
}

impl<K: Eq + Hash + Clone, S, R: Clone> TopState<K, S, R> {
    /// The first `rows_max` rows of each key, of all or of each window.
    pub(crate) fn new(rows_max: usize, windows: Option<WindowAssigner>) -> Self {
        Self {
            rows_max,
            ties: None,
            windows,
            watermark: None,
            running: Tops::default(),
            changed: VecDeque::new(),
            by_window: BTreeMap::new(),
            completing: None,
        }
    }

    /// The same of each window.
    pub(crate) fn by_window(mut self, windows: WindowAssigner) -> Self {
        self.windows = Some(windows);
        self
    }

    /// The same with every row that shares the last place.
    pub(crate) fn with_ties(mut self, is_tie: IsTie<S>) -> Self {
        self.ties = Some(is_tie);
        self
    }

    /// Whether a row of this time is in no window that takes rows in.
    pub(crate) fn is_late(&self, time: Option<EventTime>) -> bool {
        let Some(windows) = self.windows else {
            return false;
        };
        time.is_none_or(|time| Some(windows.last_window(time).last()) <= self.watermark)
    }

    /// Ranks a row that is not late. `stands` says where a row that was ranked before stands to
    /// it: less is ahead, and stays there where it is equal; `make` makes what is kept. Calls
    /// `kept` for each window in which the key is new. Returns whether it is among the first.
    pub(crate) fn offer(
        &mut self,
        key: &K,
        time: Option<EventTime>,
        stands: impl Fn(&S) -> Ordering,
        mut make: impl FnMut() -> (S, R),
        kept: &mut dyn FnMut(&K),
    ) -> bool {
        let places = Places {
            rows_max: self.rows_max,
            ties: self.ties,
        };
        let (Some(windows), Some(time)) = (self.windows, time) else {
            let (at, ranking) = ranking_of(&mut self.running, key, &mut |_| {});
            if !places.insert(&mut ranking.rows, stands, make) {
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
            let (_, ranking) = ranking_of(tops, key, kept);
            is_in |= places.insert(&mut ranking.rows, &stands, &mut make);
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
        let ties = self.ties;
        if let Some(at) = self.changed.pop_front() {
            let (key, ranking) = self.running.get_index_mut(at)?;
            ranking.is_changed = false;
            return Some(Top {
                key: key.clone(),
                window: None,
                rows: places_of(&ranking.rows, ties)
                    .zip(&ranking.rows)
                    .map(|(place, (_, row))| (place, row.clone()))
                    .collect(),
            });
        }
        loop {
            if let Some((window, rankings)) = &mut self.completing {
                let window = Some(*window);
                if let Some((key, Ranking { rows, .. })) = rankings.next() {
                    let places: Vec<u64> = places_of(&rows, ties).collect();
                    let rows = rows.into_iter().map(|(_, row)| row);
                    let rows = places.into_iter().zip(rows).collect();
                    return Some(Top { key, window, rows });
                }
                self.completing = None;
            }
            let first = self.by_window.first_entry()?;
            if Some(*first.key()) > self.watermark {
                return None;
            }
            let (window, tops) = first.remove();
            self.completing = Some((window, tops.into_iter()));
        }
    }

    /// All rows that are kept and not due.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut R> {
        let windows = self.by_window.values_mut().map(|(_, tops)| tops);
        let rankings = std::iter::once(&mut self.running)
            .chain(windows)
            .flat_map(Tops::values_mut);
        rankings.flat_map(|ranking| ranking.rows.iter_mut().map(|(_, row)| row))
    }
}

/// The ranking of `key` and its position; calls `kept` if it is new.
fn ranking_of<'a, K: Eq + Hash + Clone, S, R>(
    tops: &'a mut Tops<K, S, R>,
    key: &K,
    kept: &mut dyn FnMut(&K),
) -> (usize, &'a mut Ranking<S, R>) {
    let at = match tops.get_index_of(key) {
        Some(at) => at,
        None => {
            kept(key);
            let ranking = Ranking {
                rows: Vec::new(),
                is_changed: false,
            };
            tops.insert_full(key.clone(), ranking).0
        }
    };
    (at, &mut tops[at])
}

impl<S> Clone for Places<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Places<S> {}

impl<S> Places<S> {
    /// Puts a row in its place, if it has one; returns whether it has.
    fn insert<R>(
        self,
        rows: &mut Vec<(S, R)>,
        stands: impl Fn(&S) -> Ordering,
        mut make: impl FnMut() -> (S, R),
    ) -> bool {
        let at = rows.partition_point(|(order, _)| stands(order).is_le());
        if at >= self.rows_max {
            let last = self.rows_max.checked_sub(1).map(|last| &rows[last].0);
            let is_tied = last.is_some_and(|last| stands(last).is_eq());
            if self.ties.is_none() || !is_tied {
                return false;
            }
        }
        rows.insert(at, make());
        if rows.len() > self.rows_max {
            let last = &rows[self.rows_max - 1].0;
            let tied = rows[self.rows_max..].iter();
            let tied =
                tied.take_while(|(order, _)| self.ties.is_some_and(|is_tie| is_tie(last, order)));
            rows.truncate(self.rows_max + tied.count());
        }
        true
    }
}

/// The place of each of these rows, which are first to last: that of the row before where they
/// are equal.
fn places_of<S, R>(rows: &[(S, R)], ties: Option<IsTie<S>>) -> impl Iterator<Item = u64> {
    let mut place = 0;
    (0..rows.len()).map(move |at| {
        let is_tied = at > 0 && ties.is_some_and(|is_tie| is_tie(&rows[at - 1].0, &rows[at].0));
        if !is_tied {
            place = at as u64 + 1;
        }
        place
    })
}
