//! More that can be done with a stream by key: sessions, windows by count, first and foremost
//! rows.

use crate::operators::rows::{Deduplicate, Ranked, TopN};
use crate::operators::window::{
    Aggregator, CountResult, CountWindow, KeyedSession, WindowAssigner,
};
use crate::operators::{Ordered, SpecError};
use crate::partition::Key;

use super::keyed_stream::{KeyedStream, WindowStream};
use super::stream::DataStream;

/// The foremost rows of each key.
pub type RankedStream<K, T> = DataStream<Ranked<K, T>>;

/// What windows by count give.
pub type CountStream<K, R> = DataStream<CountResult<K, R>>;

/// The results of sessions, and the rows that came too late for theirs.
pub type SessionStreams<T, K, R> = (WindowStream<K, R>, DataStream<T>);

impl<T: Clone + Send + 'static, F> KeyedStream<T, F> {
    /// Aggregates the values of each key and session: rows less than `gap_ms` apart are in one.
    /// Returns the results and the rows that come more than `allowed_lateness_ms` of event time
    /// after the end of what would be their session.
    ///
    /// # Errors
    /// When the gap is less than 1.
    pub fn session<K, A>(
        self,
        gap_ms: i64,
        allowed_lateness_ms: u64,
        aggregator: A,
    ) -> Result<SessionStreams<T, K, A::Result>, SpecError>
    where
        K: Key,
        A: Aggregator<T> + Clone + Send + Sync + 'static,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        if gap_ms < 1 {
            return Err(SpecError::SessionGap { gap_ms });
        }
        Ok(self.process_with_side("session", move |_, key, late| {
            let aggregator = aggregator.clone();
            Ok(KeyedSession::<T, K, A, F>::new(
                key,
                gap_ms,
                aggregator,
                allowed_lateness_ms,
                Some(late),
            )?)
        }))
    }

    /// Aggregates every `rows_max` values of each key.
    ///
    /// # Panics
    /// When `rows_max` is 0, as the job starts.
    pub fn count_window<K, A>(self, rows_max: u64, aggregator: A) -> CountStream<K, A::Result>
    where
        K: Key,
        A: Aggregator<T> + Clone + Send + Sync + 'static,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        assert!(rows_max > 0, "a window has a row");
        self.process("count_window", move |_, key| {
            Ok(CountWindow::<T, K, A, F>::new(
                key,
                rows_max,
                aggregator.clone(),
            ))
        })
    }

    /// Keeps the first row of each key within `ttl_ms` of event time, or for ever. Returns them
    /// and the rows of which it cannot be known, because they are behind the watermark or have
    /// no event time.
    pub fn deduplicate<K>(self, ttl_ms: Option<u64>) -> (DataStream<T>, DataStream<T>)
    where
        K: Key,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        self.process_with_side("deduplicate", move |_, key, late| {
            Ok(Deduplicate::<K, T, F>::new(key, ttl_ms, Some(late)))
        })
    }

    /// The `n` rows of each key with the greatest `by`: those so far after each batch that
    /// changes them, or those of each window when it is complete.
    pub fn greatest<K, S, By>(
        self,
        n: usize,
        windows: Option<WindowAssigner>,
        by: By,
    ) -> RankedStream<K, T>
    where
        K: Key,
        S: Ordered + Send + 'static,
        By: FnMut(&T) -> S + Clone + Send + Sync + 'static,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        let stream = self.process_with_side("greatest", move |_, key, late| {
            let top = TopN::<K, T, S, F, By>::greatest(n, key, by.clone());
            Ok(match windows {
                Some(windows) => top.by_window(windows, Some(late)),
                None => top,
            })
        });
        stream.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Row, Rows};
    use crate::connect::{Collected, MemorySource};
    use crate::job::{Job, JobOutcome};
    use crate::operators::window::{Count, EveryRows};
    use crate::partition::Parallelism;

    fn times(job: &Job) -> DataStream<i64> {
        let source = job.source("times", |_| {
            let rows = Rows::from_iter((0..40).map(|n| Row::at(n * n, n * n)));
            Ok(MemorySource::of_batches([rows]))
        });
        source.parallelism(Parallelism::ONE)
    }

    fn run<T: Clone + Send + 'static>(job: Job, stream: DataStream<T>) -> Vec<T> {
        let collected = Collected::new();
        stream.sink("collect", collected.sink());
        let outcome = job.run().expect("a plan that works").outcome;
        assert!(matches!(outcome, JobOutcome::Ended), "{outcome:?}");
        collected.values::<T>()
    }

    #[test]
    fn a_stream_by_key_can_be_put_into_sessions() {
        let job = Job::new("sessions");
        let sessions = times(&job).key_by(|_| 0_i64).session(20, 0, Count);
        let counts: Vec<u64> = run(job, sessions.expect("a gap").0)
            .into_iter()
            .map(|result| result.value)
            .collect();
        assert_eq!(counts[0], 11, "0 to 100, before the first gap of 21");
        assert_eq!(counts.iter().sum::<u64>(), 40);
    }

    #[test]
    fn a_stream_by_key_can_be_counted_deduplicated_and_ranked() {
        let job = Job::new("counts");
        let counted = times(&job).key_by(|n| n % 2).count_window(15, Count);
        let mut rows: Vec<u64> = run(job, counted).into_iter().map(|of| of.rows).collect();
        rows.sort_unstable();
        assert_eq!(rows, [5, 5, 15, 15]);

        let job = Job::new("first");
        let first = times(&job).key_by(|n| n % 3).deduplicate(None).0;
        assert_eq!(run(job, first), [0, 1]);

        let job = Job::new("early");
        let windows = WindowAssigner::tumbling(400, 0).expect("windows");
        let early = times(&job).key_by(|_| 0_i64).window(windows);
        let early = early.aggregate_when(Count, EveryRows(15)).0;
        let early: Vec<u64> = run(job, early).into_iter().map(|of| of.value).collect();
        assert_eq!(
            early[..2],
            [15, 20],
            "after 15 rows, and at the end of the window"
        );

        let job = Job::new("top");
        let top = times(&job).key_by(|n| n % 2).greatest(1, None, |n| *n);
        let mut top: Vec<i64> = run(job, top).into_iter().map(|of| of.value).collect();
        top.sort_unstable();
        assert_eq!(top, [38 * 38, 39 * 39]);
    }
}
