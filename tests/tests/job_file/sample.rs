//! A valid job, to be changed.

use std::path::{Path, PathBuf};

use ringway::job::file::{JobFileError, Language, LoadedJob, Overrides};

/// A valid job. Lines count from 1.
pub(crate) const JOB: &str = r#"name = "sample"
[job]
parallelism = 2
[sources.numbers]
connector = "generator"
rows = 100
[operators.even]
type = "filter"
input = "numbers"
where = "id % 2 = 0"
[operators.per_key]
type = "window"
input = "even"
key = ["key"]
size = "1s"
aggregates = [
  "count(*) AS n",
  "sum(value / 2) AS total",
]
[sinks.out]
connector = "blackhole"
input = "per_key"
"#;

pub(crate) fn load(text: &str) -> Result<LoadedJob, JobFileError> {
    load_at(text, Language::Toml, &examples())
}

pub(crate) fn load_at(
    text: &str,
    language: Language,
    base: &Path,
) -> Result<LoadedJob, JobFileError> {
    LoadedJob::parse(text, language, base, &Overrides::default())
}

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples")
}

/// The valid job with `from` replaced by `to`.
pub(crate) fn changed(from: &str, to: &str) -> String {
    assert!(JOB.contains(from), "{from}");
    JOB.replacen(from, to, 1)
}

/// What the plan of a job is, for comparing it with another.
pub(crate) fn plan(mut job: LoadedJob) -> String {
    let plan = job.plan(vec![None, None]).expect("it can be planned");
    format!("{}: {:#?} {:#?}", plan.name, plan.chains, plan.links)
}
