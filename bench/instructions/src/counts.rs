//! Instructions of the parts beside those that were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// More instructions than this, in percent of those recorded, are a failure.
const GROWN_PERCENT: u64 = 102;

/// Fewer than this are worth a record.
const SHRUNK_PERCENT: u64 = 98;

/// How to accept what is.
const RECORD: &str = "scripts/bench-guard --record";

/// How many instructions each part takes, and what that depends on besides the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// The compiler. Counts of another are not comparable.
    pub(crate) toolchain: String,
    /// What may matter too: how memory is copied and handed out.
    pub(crate) tools: String,
    /// Of each part, by `crate/part/case`.
    pub(crate) instructions: BTreeMap<String, u64>,
}

/// Why counts are not accepted, in words that end with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(String);

/// A part beside what was recorded of it.
struct Row<'a> {
    name: &'a str,
    now: Option<u64>,
    recorded: Option<u64>,
}

impl Counts {
    /// Those that were recorded.
    ///
    /// # Errors
    /// When the file can't be read: record them.
    pub(crate) fn read(file: &Path) -> Result<Self, Refused> {
        let refused = |error: &dyn fmt::Display| {
            Refused(format!("{}: {error} ({RECORD} writes it)", file.display()))
        };
        let text = fs::read_to_string(file).map_err(|error| refused(&error))?;
        serde_json::from_str(&text).map_err(|error| refused(&error))
    }

    /// Records them.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        fs::write(file, serde_json::to_string_pretty(self)? + "\n")
    }

    /// A table of them beside those that were recorded.
    ///
    /// # Errors
    /// [`Refused`], with the same table: a part has grown, or the two can't be compared.
    pub(crate) fn against(&self, recorded: &Self) -> Result<String, Refused> {
        let mut failures = Vec::new();
        if self.toolchain != recorded.toolchain {
            failures.push(format!(
                "recorded with {}, and this is {}: record them with the change of the compiler",
                recorded.toolchain, self.toolchain
            ));
        }
        let mut lines = Vec::new();
        for row in self.rows(recorded) {
            lines.push(row.line());
            failures.extend(row.failure());
        }
        if failures.is_empty() {
            return Ok(lines.join("\n"));
        }
        lines.append(&mut failures);
        if self.tools != recorded.tools {
            lines.push(format!(
                "recorded under {}, and this is {}, which may be all there is to it",
                recorded.tools, self.tools
            ));
        }
        lines.push(format!("{RECORD} accepts the counts as they are"));
        Err(Refused(lines.join("\n")))
    }

    fn rows<'a>(&'a self, recorded: &'a Self) -> impl Iterator<Item = Row<'a>> {
        let names = self.instructions.keys().chain(recorded.instructions.keys());
        let names: BTreeSet<&String> = names.collect();
        names.into_iter().map(|name| Row {
            name,
            now: self.instructions.get(name).copied(),
            recorded: recorded.instructions.get(name).copied(),
        })
    }
}

impl Row<'_> {
    fn growth(&self) -> Option<f64> {
        Some(self.now? as f64 / self.recorded? as f64 - 1.0)
    }

    fn is_less(&self) -> bool {
        let both = self.now.zip(self.recorded);
        both.is_some_and(|(now, recorded)| now * 100 < recorded * SHRUNK_PERCENT)
    }

    fn line(&self) -> String {
        let name = self.name;
        match (self.now, self.growth()) {
            (Some(now), Some(growth)) => {
                let advice = match self.is_less() {
                    true => "   less: record it, so that it stays so",
                    false => "",
                };
                format!("{name:<44} {now:>10} {:>+8.2} %{advice}", growth * 100.0)
            }
            (Some(now), None) => format!("{name:<44} {now:>10}        new"),
            (None, _) => format!("{name:<44} {:>10}       gone", ""),
        }
    }

    fn failure(&self) -> Option<String> {
        let name = self.name;
        match (self.now, self.recorded) {
            (Some(_), None) => Some(format!("{name} is new: record it")),
            (None, _) => Some(format!("{name} was not counted: record that it is gone")),
            (Some(now), Some(recorded)) => {
                let of_100 = self.growth()? * 100.0;
                (now * 100 > recorded * GROWN_PERCENT).then(|| {
                    format!(
                        "{name} takes {now} instructions, {of_100:.2} % more than the {recorded} \
                         recorded"
                    )
                })
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The counts in what gungraun prints, an object for each part.
///
/// # Errors
/// When that is something else, or says nothing.
pub(crate) fn instructions(summaries: &str) -> Result<BTreeMap<String, u64>, Refused> {
    let mut counts = BTreeMap::new();
    for summary in serde_json::Deserializer::from_str(summaries).into_iter::<Value>() {
        let summary = summary.map_err(|error| Refused(format!("this is no summary: {error}")))?;
        let counted = counted(&summary);
        let (name, count) =
            counted.ok_or_else(|| Refused(format!("a summary without a count: {summary}")))?;
        if counts.insert(name.clone(), count).is_some() {
            return Err(Refused(format!("{name} was counted twice")));
        }
    }
    match counts.is_empty() {
        true => Err(Refused("nothing was counted".to_owned())),
        false => Ok(counts),
    }
}

fn counted(summary: &Value) -> Option<(String, u64)> {
    let word = |field: &str| summary.get(field).and_then(Value::as_str);
    let name = [word("group")?, word("function_name")?, word("id")?].join("/");
    let values = summary.pointer("/profiles/0/data/total/metrics/Ir/values")?;
    let count = values.get("new")?.as_u64()?;
    // Whatever runs takes instructions: with none the part was not found in the program.
    (count > 0).then_some((name, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "engine/filter/two_comparisons";

    fn counts(instructions: &[(&str, u64)]) -> Counts {
        let instructions = instructions.iter();
        Counts {
            toolchain: "rustc 1.0".to_owned(),
            tools: "valgrind 1".to_owned(),
            instructions: instructions
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
        }
    }

    fn refused(now: &Counts, recorded: &Counts) -> String {
        now.against(recorded).unwrap_err().to_string()
    }

    #[test]
    fn one_per_cent_more_passes_and_three_per_cent_more_fail_by_name() {
        let recorded = counts(&[(PART, 10_000), ("shm/ring/u64", 500)]);
        for passes in [10_000, 10_100, 10_200] {
            let now = counts(&[(PART, passes), ("shm/ring/u64", 500)]);
            assert!(now.against(&recorded).is_ok(), "{passes}");
        }
        let words = refused(&counts(&[(PART, 10_300), ("shm/ring/u64", 500)]), &recorded);
        let failure = "takes 10300 instructions, 3.00 % more than the 10000 recorded";
        assert!(words.contains(&format!("{PART} {failure}")), "{words}");
        assert!(words.ends_with("--record accepts the counts as they are"));
    }

    #[test]
    fn a_part_that_takes_much_less_is_to_be_recorded() {
        let now = counts(&[(PART, 9_000)]);
        let words = now.against(&counts(&[(PART, 10_000)])).unwrap();
        assert!(words.contains("record it"), "{words}");
    }

    #[test]
    fn a_part_that_nobody_recorded_fails_and_so_does_one_that_was_not_counted() {
        let (one, two) = (counts(&[(PART, 1)]), counts(&[(PART, 1), ("b", 1)]));
        assert!(refused(&two, &one).contains("b is new: record it"));
        assert!(refused(&one, &two).contains("b was not counted"));
    }

    #[test]
    fn counts_of_another_compiler_are_not_compared_in_silence() {
        let recorded = counts(&[(PART, 1)]);
        let mut now = recorded.clone();
        now.toolchain = "rustc 2.0".to_owned();
        let words = refused(&now, &recorded);
        assert!(words.contains("recorded with rustc 1.0, and this is rustc 2.0"));
    }

    #[test]
    fn another_valgrind_is_told_only_where_something_has_grown() {
        let recorded = counts(&[(PART, 100)]);
        let mut now = counts(&[(PART, 110)]);
        now.tools = "valgrind 2".to_owned();
        let words = refused(&now, &recorded);
        assert!(words.contains("under valgrind 1, and this is valgrind 2"));
        now.instructions = recorded.instructions.clone();
        assert!(now.against(&recorded).is_ok());
    }

    #[test]
    fn what_was_recorded_is_read_again() {
        let name = format!("ringway-counts-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let counts = counts(&[(PART, 7)]);
        counts.write(&file).unwrap();
        let read = Counts::read(&file);
        fs::remove_file(&file).unwrap();
        assert_eq!(read, Ok(counts));
        let missing = Counts::read(&file).unwrap_err().to_string();
        assert!(missing.contains("--record writes it"), "{missing}");
    }
}
