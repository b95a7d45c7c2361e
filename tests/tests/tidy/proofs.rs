//! What docs/TESTING.md names as the proof of a scenario is there, and each test of a scenario is named.

use crate::tree::File;

/// The page with the table.
const PAGE: &str = "docs/TESTING.md";

/// Where a place may begin, from the root of the repository.
const ROOTS: &[&str] = &["", "tests/tests/", "tests/src/"];

/// The head of the table of scenarios.
const SCENARIOS: &str = "| scenario |";

/// The head of the table of suites.
const SUITES: &str = "| suite |";

/// Rows of the table of scenarios: each place is there, with the test or the cases behind it; and each test
/// whose name begins with the number of a scenario is in a place that its row names.
pub(crate) fn scenarios(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    let mut named: Vec<(String, &str)> = Vec::new();
    for (at, cells) in rows(files, SCENARIOS) {
        let scenario = cells[0].to_lowercase();
        for span in spans(cells[cells.len() - 1]) {
            let places = places(files, span.split(' ').next().unwrap_or(""));
            if places.is_empty() {
                found.push(format!("{at}: there is no `{span}`"));
            }
            for case in span.split(' ').skip(1) {
                if !places.iter().any(|file| file.text.contains(case)) {
                    found.push(format!("{at}: `{span}`: there is no {case}"));
                }
            }
            named.extend(places.iter().map(|file| (scenario.clone(), &*file.path)));
        }
    }
    for file in files.iter().filter(|file| file.is_test_code(0)) {
        for function in file.functions() {
            let Some(scenario) = scenario_of(&function.name) else {
                continue;
            };
            let is_it = |(of, path): &(String, &str)| of == scenario && *path == file.path;
            if !named.iter().any(is_it) {
                found.push(format!(
                    "{}: {} is in no row of {PAGE} for {}",
                    file.path,
                    function.name,
                    scenario.to_uppercase()
                ));
            }
        }
    }
    found
}

/// The places in the table of suites.
pub(crate) fn suites(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, cells) in rows(files, SUITES) {
        for span in spans(cells[1]).filter(|span| span.contains('/')) {
            if places(files, span).is_empty() {
                found.push(format!("{at}: there is no `{span}`"));
            }
        }
    }
    found
}

/// The rows of the table with this head, each with where it stands.
fn rows<'a>(files: &'a [File], head: &str) -> Vec<(String, Vec<&'a str>)> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![];
    };
    let lines = page.text.lines().enumerate();
    let table = lines
        .skip_while(|(_, line)| !line.starts_with(head))
        .skip(2);
    table
        .take_while(|(_, line)| line.starts_with('|'))
        .map(|(index, line)| {
            let cells = line.trim_matches('|').split('|').map(str::trim);
            (format!("{PAGE}:{}", index + 1), cells.collect())
        })
        .collect()
}

/// What stands between backticks.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The files of a place: a file, with or without its ending, or all below a folder; with `::test`, those that
/// have that test, and with `*` at the end, all whose paths begin so.
fn places<'a>(files: &'a [File], place: &str) -> Vec<&'a File> {
    let (place, test) = match place.split_once("::") {
        Some((place, test)) => (place, Some(test)),
        None => (place, None),
    };
    let is_at = |file: &&File| {
        ROOTS.iter().any(|root| {
            let rest = file.path.strip_prefix(root);
            let rest = rest.and_then(|path| path.strip_prefix(place.trim_end_matches(['*', '/'])));
            rest.is_some_and(|rest| {
                place.ends_with('*') || matches!(rest, "" | ".rs") || rest.starts_with('/')
            })
        })
    };
    let has_test = |file: &&File| {
        test.is_none_or(|test| {
            file.functions()
                .iter()
                .any(|function| function.name == test)
        })
    };
    files.iter().filter(is_at).filter(has_test).collect()
}

/// `b07` of `b07_a_promise`.
fn scenario_of(name: &str) -> Option<&str> {
    let (number, _) = name.split_once('_')?;
    let digits = number.strip_prefix('b')?;
    let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    fn found(proof: &str) -> Vec<String> {
        let page = format!(
            "# T\n\n| scenario | what | proof |\n|---|---|---|\n| B01 | x | {proof} |\n\n| other | y |\n"
        );
        super::scenarios(&[
            File::new("docs/TESTING.md", &page),
            File::new("tests/tests/wire/flow.rs", "#[test]\nfn b01_a_batch() {}\n"),
            File::new("netio/tests/wire.rs", "#[test]\nfn a_promise() {}\n"),
            File::new("scripts/netns", "CASES=(idle)\n"),
        ])
    }

    #[test]
    fn what_is_named_and_there_is_fine() {
        for good in [
            "`wire/flow`",
            "`wire`, more words",
            "`wire/flow::b01_a_batch`; `netio/tests/wire::a_promise`",
            "`tests/tests/wire/flow.rs`, `scripts/netns idle`",
        ] {
            assert_eq!(found(good), Vec::<String>::new(), "{good}");
        }
    }

    #[test]
    fn a_place_a_test_or_a_case_that_is_not_there_is_found() {
        for bad in [
            "`wire/flow`, `wire/flows`",
            "`wire/flow`, `wire/flo`",
            "`wire/flow`, `netio/tests/wire::another_promise`",
            "`wire/flow`, `scripts/netns idle flowing`",
        ] {
            assert_eq!(found(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_test_of_a_scenario_that_its_row_does_not_name_is_found() {
        assert_eq!(found("`netio/tests/wire`").len(), 1);
    }

    #[test]
    fn a_suite_that_is_nowhere_is_found() {
        let files = |place: &str| {
            let row = format!("| suite | where |\n|---|---|\n| a | {place} |\n");
            [
                File::new("docs/TESTING.md", &row),
                File::new("tests/tests/wire_a/main.rs", ""),
            ]
        };
        for good in [
            "`tests/`",
            "`tests/tests/wire_*`",
            "`proptest`",
            "`wire_a/main`",
        ] {
            assert!(super::suites(&files(good)).is_empty(), "{good}");
        }
        assert_eq!(super::suites(&files("`tests/tests/mire_*`")).len(), 1);
    }
}
