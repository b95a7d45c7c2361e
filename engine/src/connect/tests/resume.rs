//! A source that is restored goes on right after the last row that it emitted. Goal: nothing
//! twice, nothing lost, the same elements. Method: a snapshot after every batch of a run, and the
//! run that goes on from it compared with one that was never interrupted.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::*;
use crate::element::Barrier;
use crate::operator::{EachKeyed, EachValue, StateReader, StateWriter};

/// What the subtasks of a source save.
#[derive(Clone, Debug, Default)]
pub(super) struct State(Vec<Vec<u8>>);

impl StateWriter for State {
    fn put_keyed(&mut self, _: &str, _: u32, _: &[u8], _: &[u8]) -> Result<(), OperatorError> {
        Err(OperatorError::new("a source has no keys"))
    }

    fn put_operator(&mut self, _table: &str, value: &[u8]) -> Result<(), OperatorError> {
        self.0.push(value.to_vec());
        Ok(())
    }
}

impl StateReader for State {
    fn for_each_keyed(&mut self, _: &str, _: &mut EachKeyed<'_>) -> Result<(), OperatorError> {
        Ok(())
    }

    fn for_each_operator(
        &mut self,
        _table: &str,
        each: &mut EachValue<'_>,
    ) -> Result<(), OperatorError> {
        self.0.iter().try_for_each(|value| each(value))
    }
}

impl Stepped {
    pub(super) fn save(&mut self, state: &mut State) {
        self.source.snapshot(Barrier::aligned(1), state).unwrap();
    }

    pub(super) fn restored(
        connector: &dyn SourceConnector,
        (index, parallelism): (u32, u32),
        state: &State,
    ) -> Result<Self, OperatorError> {
        let subtask = subtask(index, parallelism);
        let mut stepped = Self::unstarted(connector.build(&subtask), &subtask);
        stepped.source.restore(&mut state.clone())?;
        Ok(stepped)
    }
}

/// Rows of a file: out of order by 5 ms at most, with text that has to be quoted.
pub(super) fn some_rows(rows: i64) -> RecordBatch {
    let ids = 0..rows;
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(
        ids.clone().map(|id| 10 * (id / 10) + (id * 7) % 5),
    ));
    let text = |id: i64| match id % 97 {
        0 => None,
        1 => Some(format!("two\nlines {id}")),
        2 => Some(format!("a \"quote\", {id}")),
        _ => Some(format!("text {id}")),
    };
    let texts: ArrayRef = Arc::new(ids.clone().map(text).collect::<StringArray>());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let fields = vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("id", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![times, ids, texts]).unwrap()
}

/// Writes `rows` in batches of `batch_rows`.
pub(super) fn write_file(
    connector: &str,
    options: &str,
    base: &Path,
    rows: i64,
    batch_rows: usize,
) {
    let all = some_rows(rows);
    let starts = (0..all.num_rows()).step_by(batch_rows);
    let parts = starts.map(|at| all.slice(at, batch_rows.min(all.num_rows() - at)));
    let connector = sink(connector, options, base);
    let mut sink = connector.build(&subtask(0, 1), &all.schema());
    write_all(&mut *sink, parts).unwrap();
}

const SCHEMA: &str = "schema = [{ name = 'event_time', type = 'int64' }, \
    { name = 'id', type = 'int64' }, { name = 'text', type = 'utf8' }]";

/// A source, and how it is made again when its job is.
pub(super) struct Case {
    pub(super) connector: &'static str,
    pub(super) options: String,
}

impl Case {
    fn new(connector: &'static str, options: &str) -> Self {
        let options = options.to_owned();
        Self { connector, options }
    }

    fn connect(&self, base: &Path) -> Arc<dyn SourceConnector> {
        let table: toml::Table = toml::from_str(&self.options).unwrap();
        let mut options = SourceOptions::read(self.connector, table).unwrap();
        if let Some(watermark) = options.watermark_mut() {
            *watermark = Some(crate::connect::WatermarkOptions {
                out_of_orderness_ms: 5,
                ..Default::default()
            });
        }
        options.connect(base).unwrap()
    }
}

/// Sources of every format whose files have more than one batch in most splits, and of rows that
/// are made.
pub(super) fn cases(dir: &Path) -> Vec<Case> {
    const ROWS: i64 = 20_000;
    write_file("csv", "path = 'a.csv'", dir, ROWS, 8192);
    write_file("csv", "path = 'a.csv.gz'", dir, ROWS, 8192);
    write_file("csv", "path = 'a.csv.zst'", dir, ROWS, 8192);
    write_file("ndjson", "path = 'a.ndjson'", dir, ROWS, 8192);
    write_file("ndjson", "path = 'b.ndjson'", dir, 10, 8192);
    write_file("ndjson", "path = 'c.ndjson.zst'", dir, ROWS, 8192);
    write_file("arrow", "path = 'a.arrow'", dir, ROWS, 10_000);
    write_file(
        "arrow",
        "path = 'b.arrows'\nform = 'stream'",
        dir,
        ROWS,
        10_000,
    );
    let groups = "path = 'a.parquet'\nrow_group_rows = 12000";
    write_file("parquet", groups, dir, ROWS, 8192);
    let text = fs::read_to_string(dir.join("a.csv")).unwrap();
    let mut lines = text.replace("two\n", "two ");
    lines.push_str("\n\n");
    fs::write(dir.join("lines.csv"), lines).unwrap();
    let split = |path: &str| format!("path = '{path}'\nsplit_bytes = 450000\n{SCHEMA}");
    vec![
        Case::new("csv", "path = 'a.csv'"),
        Case::new("csv", "path = ['a.csv.gz', 'a.csv.zst']"),
        Case::new(
            "csv",
            &format!("{}\nquoted_line_ends = false", split("lines.csv")),
        ),
        Case::new("ndjson", &split("*.ndjson")),
        Case::new("ndjson", &split("c.ndjson.zst")),
        Case::new("arrow", "path = 'a.arrow'\nsplit_bytes = 300000"),
        Case::new("arrow", "path = '*.arrow*'\nsplit_bytes = 1000000"),
        Case::new("parquet", "path = 'a.parquet'"),
        Case::new(
            "generator",
            "rows = 20000\njitter_ms = 20\nbatch_rows = 3000",
        ),
        Case::new("nexmark", "events = 'all'\nrows = 5000\nbatch_rows = 700"),
    ]
}

/// Runs every subtask up to the element of its number, and saves it.
fn interrupt(connector: &dyn SourceConnector, elements: &[usize]) -> (State, Vec<Vec<Element>>) {
    let mut state = State::default();
    let mut before = Vec::new();
    let parallelism = u32::try_from(elements.len()).unwrap();
    for (index, elements) in (0..).zip(elements) {
        let mut stepped = Stepped::open(connector, index, parallelism);
        stepped.run_up_to(*elements).unwrap();
        stepped.save(&mut state);
        before.push(stepped.taken.elements);
    }
    (state, before)
}

/// What a restored subtask emits after it said again how far it had come.
fn emitted_again(mut elements: Vec<Element>, before: &[Element]) -> Vec<Element> {
    let watermark = |element: &Element| match element {
        StreamElement::Watermark(watermark) => Some(*watermark),
        _ => None,
    };
    let reached = before.iter().rev().find_map(watermark);
    let first = elements
        .iter()
        .position(|element| watermark(element).is_some());
    if let (Some(reached), Some(first)) = (reached, first)
        && watermark(&elements[first]) == Some(reached)
    {
        elements.remove(first);
    }
    elements
}

#[test]
fn a_restored_source_emits_what_it_would_have_emitted_wherever_it_was_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    for case in cases(dir.path()) {
        for parallelism in [1, 2, 4] {
            let connector = case.connect(dir.path());
            let runs = (0..parallelism).map(|index| {
                Stepped::open(&*connector, index, parallelism)
                    .run()
                    .unwrap()
            });
            let whole: Vec<Vec<Element>> = runs.collect();
            let longest = whole.iter().map(Vec::len).max().unwrap();
            let mut last = Vec::new();
            for cut in 0..=longest {
                let cuts = vec![cut; parallelism as usize];
                let (state, before) = interrupt(&*connector, &cuts);
                // An element more is no batch more where a watermark came with it.
                let reached = before.iter().map(Vec::len).collect::<Vec<_>>();
                if std::mem::replace(&mut last, reached.clone()) == reached {
                    continue;
                }
                let again = case.connect(dir.path());
                for (index, before) in (0..).zip(&before) {
                    let restored = Stepped::restored(&*again, (index, parallelism), &state);
                    let after = restored.unwrap().run().unwrap();
                    let mut all = before.clone();
                    all.extend(emitted_again(after, before));
                    let name = format!(
                        "{} {} {index}/{parallelism} at {cut}",
                        case.connector, case.options
                    );
                    assert!(
                        all == whole[index as usize],
                        "{name}: {:?} {:?}",
                        lengths(&all),
                        lengths(&whole[index as usize])
                    );
                }
            }
        }
    }
}

fn lengths(elements: &[Element]) -> Vec<i64> {
    let length = |element: &Element| match element {
        StreamElement::Data(batch) => i64::try_from(batch.num_rows()).unwrap(),
        StreamElement::Watermark(watermark) => -watermark.timestamp,
        _ => 0,
    };
    elements.iter().map(length).collect()
}

#[test]
fn a_source_may_go_on_with_more_or_fewer_subtasks() {
    let seed = seed();
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    for case in cases(dir.path()) {
        let connector = case.connect(dir.path());
        let expected = run_all(&*connector, 1);
        for _ in 0..2 {
            let mut before: Vec<Element> = Vec::new();
            let mut state: Option<State> = None;
            // Two interruptions, for what is saved by a restored source differs.
            for _ in 0..2 {
                let parallelism = 1 + random.below(4);
                let mut next = State::default();
                for index in 0..parallelism {
                    let mut stepped = match &state {
                        None => Stepped::open(&*connector, index, parallelism),
                        Some(state) => {
                            Stepped::restored(&*connector, (index, parallelism), state).unwrap()
                        }
                    };
                    stepped.run_up_to(random.below(4) as usize).unwrap();
                    stepped.save(&mut next);
                    before.extend(stepped.taken.elements);
                }
                state = Some(next);
            }
            let parallelism = 1 + random.below(4);
            for index in 0..parallelism {
                let state = state.as_ref().unwrap();
                let restored = Stepped::restored(&*connector, (index, parallelism), state);
                before.extend(restored.unwrap().run().unwrap());
            }
            let (rows, sum) = (rows(&before), sum(&before));
            let name = format!("{} {}, RINGWAY_SEED={seed}", case.connector, case.options);
            assert_eq!(
                (rows, sum),
                (super::rows(&expected), super::sum(&expected)),
                "{name}"
            );
        }
    }
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(self.0 >> 33).unwrap() % bound
    }
}

pub(super) fn seed() -> u64 {
    let given = std::env::var("RINGWAY_SEED").ok();
    given.and_then(|seed| seed.parse().ok()).unwrap_or(20)
}

#[test]
fn a_source_that_had_read_all_reads_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    for case in cases(dir.path()) {
        let connector = case.connect(dir.path());
        let mut stepped = Stepped::open(&*connector, 0, 1);
        stepped.run_up_to(usize::MAX).unwrap();
        let mut state = State::default();
        stepped.save(&mut state);
        let restored = Stepped::restored(&*connector, (0, 1), &state).unwrap();
        assert_eq!(restored.run().unwrap().len(), 0, "{}", case.connector);
    }
}

#[test]
fn a_file_that_is_not_what_it_was_at_the_checkpoint_is_an_error_that_names_it() {
    type Change = fn(&Path);
    let changes: [(Change, &str, &str); 4] = [
        (
            |dir| fs::write(dir.join("b.ndjson"), "{\"id\":3}\n{\"id\":4}\n").unwrap(),
            "b.ndjson",
            "changed",
        ),
        (
            |dir| fs::write(dir.join("a.ndjson"), "{\"id\":7}\n{\"id\":8}\n").unwrap(),
            "a.ndjson",
            "changed",
        ),
        (
            |dir| fs::remove_file(dir.join("b.ndjson")).unwrap(),
            "b.ndjson",
            "put it back",
        ),
        (
            |dir| fs::write(dir.join("c.ndjson"), "{\"id\":9}\n").unwrap(),
            "c.ndjson",
            "has come",
        ),
    ];
    for (change, name, expected) in changes {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.ndjson"), "{\"id\":1}\n").unwrap();
        fs::write(dir.path().join("b.ndjson"), "{\"id\":2}\n").unwrap();
        let options = "path = '*.ndjson'";
        let first = source("ndjson", options, dir.path());
        let (state, _) = interrupt(&*first, &[1]);
        change(dir.path());
        let second = source("ndjson", options, dir.path());
        let error = Stepped::restored(&*second, (0, 1), &state).err().unwrap();
        let error = error.to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    // One that was read to its end may go.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.ndjson"), "{\"id\":1}\n").unwrap();
    fs::write(dir.path().join("b.ndjson"), "{\"id\":2}\n").unwrap();
    let first = source("ndjson", "path = '*.ndjson'", dir.path());
    let mut stepped = Stepped::open(&*first, 0, 1);
    stepped.run_up_to(2).unwrap();
    let mut state = State::default();
    stepped.save(&mut state);
    fs::remove_file(dir.path().join("a.ndjson")).unwrap();
    let second = source("ndjson", "path = '*.ndjson'", dir.path());
    let restored = Stepped::restored(&*second, (0, 1), &state).unwrap();
    assert_eq!(restored.run().unwrap().len(), 0);
}

#[test]
fn a_file_that_is_cut_otherwise_than_it_was_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write_file("ndjson", "path = 'a.ndjson'", dir.path(), 100, 100);
    let options = |bytes: u32| format!("path = 'a.ndjson'\nsplit_bytes = {bytes}");
    let first = source("ndjson", &options(500), dir.path());
    let (state, _) = interrupt(&*first, &[1]);
    let second = source("ndjson", &options(700), dir.path());
    let error = Stepped::restored(&*second, (0, 1), &state).err().unwrap();
    assert!(
        error.to_string().contains("the options that the job had"),
        "{error}"
    );
}

#[test]
fn state_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.ndjson"), "{\"id\":1}\n").unwrap();
    let file = source("ndjson", "path = 'a.ndjson'", dir.path());
    let made = source("generator", "rows = 100", dir.path());
    let (of_file, _) = interrupt(&*file, &[0]);
    let (of_made, _) = interrupt(&*made, &[0]);
    for (connector, state) in [
        (&file, of_made),
        (&made, of_file),
        (&file, State(vec![b"\xff".to_vec()])),
        (&made, State(vec![b"{}".to_vec()])),
    ] {
        let error = Stepped::restored(&**connector, (0, 1), &state)
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("is not that of this source"),
            "{error}"
        );
    }
}

#[test]
fn rows_that_were_left_out_stay_in_their_file_when_the_job_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let line = |number: i64| match number {
        5 | 9_000 => format!("bad {number}\n"),
        _ => format!("{{\"id\":{number}}}\n"),
    };
    let text: String = (1..=20_000).map(line).collect();
    fs::write(dir.path().join("a.ndjson"), text).unwrap();
    fs::write(dir.path().join("bad"), "of an earlier job\n").unwrap();
    let options = "path = 'a.ndjson'\non_error = 'skip'\nbad_rows = 'bad'";
    let (state, before) = interrupt(&*source("ndjson", options, dir.path()), &[1]);
    let again = source("ndjson", options, dir.path());
    let after = Stepped::restored(&*again, (0, 1), &state)
        .unwrap()
        .run()
        .unwrap();
    assert_eq!(rows(&before[0]) + rows(&after), 19_998);
    let bad = fs::read_to_string(dir.path().join("bad")).unwrap();
    let lines = bad.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["line"].as_i64().unwrap()
    });
    let mut lines: Vec<_> = lines.collect();
    // What the reader had read ahead of the checkpoint is there twice.
    lines.dedup();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, [5, 9_000]);
}

#[test]
fn a_source_goes_on_behind_a_line_that_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat((16 << 20) + (9 << 20));
    let text = format!("{{\"id\":1}}\n{long}\n{{\"id\":3}}\nbad\n{{\"id\":5}}");
    for name in ["a.ndjson", "a.ndjson.gz"] {
        if name.ends_with(".gz") {
            let file = fs::File::create(dir.path().join(name)).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
            encoder.finish().unwrap();
        } else {
            fs::write(dir.path().join(name), &text).unwrap();
        }
        let options = format!(
            "path = '{name}'\non_error = 'skip'\nschema = [{{ name = 'id', type = 'int64' }}]"
        );
        let connector = source("ndjson", &options, dir.path());
        let (state, before) = interrupt(&*connector, &[1]);
        assert_eq!(rows(&before[0]), 1);
        let failing = source("ndjson", &options.replace("skip", "fail"), dir.path());
        let restored = Stepped::restored(&*failing, (0, 1), &state).unwrap();
        let error = restored.run().unwrap_err().to_string();
        assert!(error.contains(&format!("{name}:4: ")), "{error}");
        let restored = Stepped::restored(&*connector, (0, 1), &state).unwrap();
        let after = restored.run().unwrap();
        let ids: Vec<_> = batches(&after)
            .iter()
            .flat_map(|batch| ints(batch, 1))
            .collect();
        assert_eq!(ids, [Some(3), Some(5)]);
    }
}

#[test]
fn a_watched_folder_is_gone_on_with_where_it_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let options = "path = '*.ndjson'\nwatch_ms = 1\nschema = [{ name = 'id', type = 'int64' }]";
    let text = |from: i64, to: i64| -> String {
        (from..to).map(|id| format!("{{\"id\":{id}}}\n")).collect()
    };
    for (name, from, to) in [("a", 0, 10), ("b", 10, 20_000), ("c", 20_000, 20_010)] {
        fs::write(dir.path().join(format!("{name}.ndjson")), text(from, to)).unwrap();
    }
    for (parallelism, then) in [(1, 1), (2, 3), (4, 2)] {
        let first = source("ndjson", options, dir.path());
        for cut in [0, 1, 2, 3] {
            let mut seen: Vec<Element> = Vec::new();
            let mut state = State::default();
            for index in 0..parallelism {
                let mut stepped = Stepped::open(&*first, index, parallelism);
                for _ in 0..200 {
                    stepped.taken.room = Some(cut);
                    if stepped.poll().unwrap() != SourceProgress::Ready {
                        stepped.bell.arm();
                        stepped.bell.park(Some(Duration::from_micros(200)));
                    }
                }
                stepped.save(&mut state);
                seen.extend(stepped.taken.elements);
            }
            let again = source("ndjson", options, dir.path());
            let mut restored: Vec<_> = (0..then)
                .map(|index| Stepped::restored(&*again, (index, then), &state).unwrap())
                .collect();
            let is_all = |restored: &[Stepped]| {
                let after = restored.iter().map(|stepped| rows(&stepped.taken.elements));
                rows(&seen) + after.sum::<usize>() >= 20_010
            };
            for _ in 0..100_000 {
                if is_all(&restored) {
                    break;
                }
                for stepped in &mut restored {
                    let _ = stepped.poll().unwrap();
                }
                std::thread::yield_now();
            }
            for stepped in restored {
                seen.extend(stepped.taken.elements);
            }
            let ids = batches(&seen).into_iter().flat_map(|batch| ints(batch, 1));
            let mut ids: Vec<_> = ids.map(Option::unwrap).collect();
            ids.sort_unstable();
            assert!(
                ids.iter().copied().eq(0..20_010),
                "{parallelism} {then} {cut} {}",
                ids.len()
            );
        }
    }
}

#[test]
fn live_input_says_that_it_cannot_go_on() {
    let schema = "schema = [{ name = 'id', type = 'int64' }]";
    let connector = source("socket", &format!("port = 0\n{schema}"), Path::new("."));
    assert!(!connector.can_resume());
    let (state, _) = interrupt(&*connector, &[0]);
    let again = source("socket", &format!("port = 0\n{schema}"), Path::new("."));
    let error = Stepped::restored(&*again, (0, 1), &state).err().unwrap();
    let error = error.to_string();
    assert!(error.contains("cannot go on where it stopped"), "{error}");
    assert!(error.contains("start the job anew"), "{error}");
    // One that had ended has nothing to go on with.
    let restored = Stepped::restored(&*again, (0, 1), &State::default()).unwrap();
    assert_eq!(restored.run().unwrap().len(), 0);
    assert!(source("generator", "", Path::new(".")).can_resume());
}
