//! The time from the start of the program to the first row of its output.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::case::Case;
use crate::contest::Settings;
use crate::error::BenchError;
use crate::job::flights_file;

use super::Program;

/// The name of the case.
pub(crate) const NAME: &str = "idle/first_row";

/// Milliseconds within which the first row must be there.
const LIMIT_MS: f64 = 100.0;

/// Runs `ringway run` on the flights by hour, written to stdout, as often as asked, and waits
/// for the first byte each time.
///
/// # Errors
/// When the program can't be started, or ends without having printed a row; its own words are
/// on stderr then.
pub(crate) fn measure(settings: Settings, program: Program<'_>) -> Result<Case, BenchError> {
    let job = JobFile::write(program)?;
    let mut times_ms = Vec::new();
    for _ in 0..settings.runs {
        let began = Instant::now();
        let mut child = Command::new(program.path)
            .arg("run")
            .arg(&job.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                BenchError::new(format!("cannot start {}: {error}", program.path.display()))
            })?;
        let mut first = [0];
        let read = child
            .stdout
            .as_mut()
            .map_or(Ok(0), |out| out.read(&mut first));
        times_ms.push(began.elapsed().as_secs_f64() * 1e3);
        // What follows is of no interest.
        child.kill()?;
        child.wait()?;
        if read? == 0 {
            return Err(BenchError::new(format!(
                "{} run {} printed no row",
                program.path.display(),
                job.0.display()
            )));
        }
    }
    let unit = "ms";
    Ok(Case::against_limit(NAME, unit, &times_ms, LIMIT_MS))
}

/// The job, as a file that is gone afterwards.
struct JobFile(PathBuf);

impl JobFile {
    fn write(program: Program<'_>) -> Result<Self, BenchError> {
        let name = format!("ringway-bench-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let data = flights_file(program.data)?;
        std::fs::write(&path, job_text(&data.to_string_lossy()))?;
        Ok(Self(path))
    }
}

impl Drop for JobFile {
    fn drop(&mut self) {
        // Someone may have tidied up before us.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn job_text(flights: &str) -> String {
    format!(
        r#"name = "first-row"

[sources.flights]
connector = "parquet"
uid = "flights"
path = {flights:?}
columns = ["event_time", "carrier", "origin", "dep_delay"]
watermark = {{ strategy = "bounded", out_of_orderness = "24h" }}

[operators.departures]
type = "filter"
uid = "departures"
input = "flights"
where = "dep_delay IS NOT NULL"

[operators.hourly]
type = "window"
uid = "hourly"
input = "departures"
key = ["carrier", "origin"]
size = "1h"
aggregates = ["count(*) AS n", "max(dep_delay) AS max_delay"]

[sinks.rows]
connector = "stdout"
uid = "rows"
input = "hourly"
"#
    )
}
