//! Jobs that run over small files of random rows, and what they leave in files.

use std::path::Path;

use ringway::job::file::{Language, LoadedJob, Overrides};
use ringway::job::{JobOutcome, JobReport, RunOptions, start};
use ringway::operator::RowCounts;
use ringway_tests::seed::Seeded;

/// A row of the files: event time, key and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) key: Option<i64>,
    pub(crate) value: i64,
}

/// A row as a result has it: a cell a column, empty where it is null.
pub(crate) type Cells = Vec<Option<i64>>;

/// Random numbers and rows of them.
pub(crate) struct Random(Seeded);

impl Random {
    pub(crate) fn new() -> Self {
        Self(Seeded::new())
    }

    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        self.0.below(bound.unsigned_abs()).cast_signed()
    }

    /// Rows whose times are below `time_max`, of `keys` keys and of none, in no order; values
    /// count from 0.
    pub(crate) fn rows(&mut self, many: i64, time_max: i64, keys: i64) -> Vec<Row> {
        (0..many)
            .map(|value| Row {
                time: self.below(time_max),
                key: Some(self.below(keys + 1)).filter(|key| *key < keys),
                value,
            })
            .collect()
    }
}

/// Writes rows to the file `name` of `folder`, with columns that are called `event_time`, `key`
/// and `value`.
pub(crate) fn write(folder: &Path, name: &str, rows: &[Row]) {
    let mut text = "event_time,key,value\n".to_owned();
    for row in rows {
        let key = row.key.map_or_else(String::new, |key| key.to_string());
        text.push_str(&format!("{},{key},{}\n", row.time, row.value));
    }
    std::fs::write(folder.join(name), text).expect("the folder can be written");
}

/// A source of the rows in the file `NAME.csv`.
pub(crate) fn source(name: &str) -> String {
    let types = "[{ name = \"event_time\", type = \"int64\" }, { name = \"key\", type = \
                 \"int64\" }, { name = \"value\", type = \"int64\" }]";
    format!(
        "[sources.{name}]\nconnector = \"csv\"\npath = \"{name}.csv\"\nschema = {types}\n\
         watermark = {{ strategy = \"bounded\", out_of_orderness = \"10s\" }}\n"
    )
}

/// A sink of the stream `input` into the file `NAME.csv`.
pub(crate) fn sink(name: &str, input: &str) -> String {
    format!(
        "[sinks.{name}]\nconnector = \"csv\"\ninput = \"{input}\"\nparallelism = 1\n\
         path = \"{name}.csv\"\n"
    )
}

/// Runs the job `text`, whose paths begin at `folder`, to its end.
pub(crate) fn run(text: &str, folder: &Path) -> JobReport {
    let job = LoadedJob::parse(text, Language::Toml, folder, &Overrides::default());
    let mut job = job.unwrap_or_else(|error| panic!("{error} in {text}"));
    let plan = job.plan(vec![None, None]).expect("it can be planned");
    let report = start(&plan, &RunOptions::default())
        .expect("it starts")
        .wait();
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    report
}

/// What the operator `name` counted, in all its subtasks.
pub(crate) fn counts(report: &JobReport, name: &str) -> RowCounts {
    let operators = report.tasks.iter().flat_map(|task| &task.operators);
    let mut sum = RowCounts::default();
    for operator in operators.filter(|operator| operator.name == name) {
        sum.add(&operator.counts);
    }
    sum
}

/// The names of the columns of the file `name` of `folder`, and its rows in their order.
pub(crate) fn read(folder: &Path, name: &str) -> (Vec<String>, Vec<Cells>) {
    let text = std::fs::read_to_string(folder.join(name)).expect("the sink wrote it");
    let mut lines = text.lines();
    let header = lines.next().expect("a header").split(',');
    let header = header.map(str::to_owned).collect();
    let cells = |line: &str| -> Cells { line.split(',').map(|cell| cell.parse().ok()).collect() };
    (header, lines.map(cells).collect())
}

/// The rows of the file `name` of `folder`, sorted.
pub(crate) fn read_sorted(folder: &Path, name: &str) -> Vec<Cells> {
    let (_, mut rows) = read(folder, name);
    rows.sort();
    rows
}
