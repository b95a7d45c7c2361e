//! Files with results.

use std::path::{Path, PathBuf};

use crate::case::Report;
use crate::error::BenchError;

/// What `--json` printed into a file, of this version or an earlier one.
///
/// # Errors
/// When the file can't be read, or is no such file; the error names it.
pub(crate) fn read(file: &Path) -> Result<Report, BenchError> {
    let name = file.display().to_string();
    let of_file = |error: &dyn std::error::Error| BenchError::new(error.to_string()).within(&name);
    let text = std::fs::read_to_string(file).map_err(|error| of_file(&error))?;
    serde_json::from_str(&text).map_err(|error| of_file(&error))
}

/// All of these files, in their order.
///
/// # Errors
/// As in [`read`].
pub(crate) fn read_all(files: &[PathBuf]) -> Result<Report, BenchError> {
    let mut all = Report::default();
    for file in files {
        append(&mut all, read(file)?);
    }
    Ok(all)
}

/// Adds the cases of a further part. The machine is that of the first part that names one, and
/// the date that of the last.
pub(crate) fn append(all: &mut Report, part: Report) {
    if !part.date.is_empty() {
        all.date = part.date;
    }
    if all.version.is_empty() {
        all.version = part.version;
    }
    if !part.command.is_empty() && !all.command.is_empty() {
        all.command.push_str("; ");
    }
    all.command.push_str(&part.command);
    all.host = all.host.take().or(part.host);
    all.cases.extend(part.cases);
    all.left_out.extend(part.left_out);
    all.failed.extend(part.failed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;

    fn part(name: &str, command: &str) -> Report {
        Report {
            command: command.to_owned(),
            date: format!("the day of {name}"),
            cases: vec![Case::against_limit(name, "%", &[1.0], 2.0)],
            ..Report::default()
        }
    }

    #[test]
    fn parts_become_one_report_in_their_order() {
        let mut all = Report::default();
        append(&mut all, part("a", "measure a"));
        append(&mut all, part("b", ""));
        append(&mut all, part("c", "measure c"));
        let names: Vec<&str> = all.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(all.command, "measure a; measure c");
        assert_eq!(all.date, "the day of c");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = read(Path::new("there/is/none.json")).unwrap_err();
        assert!(error.to_string().contains("there/is/none.json"), "{error}");
    }
}
