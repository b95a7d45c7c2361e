//! The pages about operators: their jobs run and give what the pages say, and the keys that they
//! explain are those that there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringway::job::file::{Language, LoadedJob, Overrides};

use crate::running::run;
use crate::sample::{examples, load};

/// The keys that every operator may have, and the streams that it takes.
const COMMON: [&str; 13] = [
    "input",
    "left",
    "right",
    "type",
    "uid",
    "parallelism",
    "process",
    "exchange",
    "key",
    "edge_capacity",
    "edge_bytes_max",
    "transport",
    "starts_chain",
];

/// What every page says of its operator.
const FACTS: [&str; 6] = [
    "In a job file",
    "In Rust",
    "utput",
    "State",
    "Event time, late rows",
    "Order",
];

/// A page: its name without the ending, and its text.
struct Page {
    name: String,
    text: String,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn pages() -> Vec<Page> {
    let folder = std::fs::read_dir(docs().join("operators")).expect("the folder of the pages");
    let mut pages: Vec<Page> = folder
        .map(|entry| entry.expect("an entry").path())
        .map(|path| Page {
            name: path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            text: std::fs::read_to_string(&path).expect("a page is text"),
        })
        .collect();
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    pages
}

impl Page {
    /// The jobs, with what is between each and the next.
    fn jobs(&self) -> impl Iterator<Item = (&str, &str)> {
        let blocks = self.text.split("```toml\n").skip(1);
        blocks.map(|block| block.split_once("```").expect("a block ends"))
    }

    /// The rows of the table of keys, by their cells: keys, type and unit, default, meaning.
    fn key_rows(&self) -> Vec<[&str; 4]> {
        let Some((_, table)) = self.text.split_once("\n## Keys in a job file\n") else {
            return Vec::new();
        };
        let table = table.split("\n## ").next().unwrap_or_default();
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
        cells
            .map(|cells| [cells[1], cells[2], cells[3], cells[4]])
            .collect()
    }

    /// The keys that the table of keys explains.
    fn keys(&self) -> BTreeSet<&str> {
        let cells = self.key_rows().into_iter().map(|[keys, ..]| keys);
        let keys = cells.flat_map(|cell| cell.split(',').map(|key| key.trim().trim_matches('`')));
        keys.filter(|key| !COMMON.contains(key)).collect()
    }
}

/// The header, and the rows in no order.
fn sorted(text: &str) -> (String, Vec<String>) {
    let mut lines = text.lines().map(str::to_owned);
    let header = lines.next().unwrap_or_default();
    let mut rows: Vec<String> = lines.collect();
    rows.sort();
    (header, rows)
}

#[test]
fn the_job_of_a_page_gives_what_the_page_says() {
    let mut jobs = 0;
    for page in pages() {
        for (job, behind) in page.jobs() {
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(examples().join("data"), folder.path().join("data"))
                .and_then(|()| std::fs::create_dir(folder.path().join("out")))
                .unwrap();
            let loaded =
                LoadedJob::parse(job, Language::Toml, folder.path(), &Overrides::default());
            let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", page.name));
            assert_eq!(loaded.warnings, [""; 0], "{}", page.name);
            run(job, folder.path());
            let written = job
                .lines()
                .filter_map(|line| line.strip_prefix("path = \"out/"));
            let written = written.map(|rest| rest.trim_end_matches('"'));
            let mut given = behind.split("```csv\n").skip(1);
            for name in written {
                let expected = given.next().and_then(|block| block.split_once("```"));
                let (expected, _) = expected
                    .unwrap_or_else(|| panic!("{}: it does not say what is in {name}", page.name));
                let found = std::fs::read_to_string(folder.path().join("out").join(name));
                let found = found.expect("the sink wrote it");
                assert_eq!(sorted(&found), sorted(expected), "{}: {name}", page.name);
            }
            jobs += 1;
        }
    }
    assert!(jobs >= 17, "{jobs} jobs: a page has lost its own");
}

#[test]
fn every_page_has_the_facts_and_an_example_that_is_tested() {
    let doc_tested = include_str!("../../../engine/src/lib.rs");
    for Page { name, text } in pages() {
        for fact in FACTS {
            let row = text
                .lines()
                .find(|line| line.starts_with('|') && line.contains(fact));
            assert!(row.is_some(), "{name}: no row says `{fact}`");
        }
        assert!(text.starts_with(&format!("# {name}\n")), "{name}");
        let has_rust = text.contains("```rust\n");
        assert!(
            has_rust || text.contains("```toml\n"),
            "{name} has no example"
        );
        let is_listed = doc_tested.split_whitespace().any(|word| word == name);
        assert_eq!(
            has_rust, is_listed,
            "{name}: its Rust is run by engine/src/lib.rs"
        );
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = std::fs::read_to_string(docs().join("OPERATORS.md")).expect("the index");
    let of_job_files = std::fs::read_to_string(docs().join("JOB_FILES.md")).expect("the page");
    for page in pages() {
        let link = format!("(operators/{}.md)", page.name);
        assert!(index.contains(&link), "{}", page.name);
        let is_type = page.text.contains(&format!("type = \"{}\"", page.name));
        assert_eq!(of_job_files.contains(&link), is_type, "{}", page.name);
    }
}

/// The keys that an operator of this type has, as the message about one that it has not says.
fn known_keys(name: &str) -> BTreeSet<String> {
    let inputs = match name.ends_with("_join") {
        true => "left = \"numbers\"\nright = \"numbers\"",
        false => "input = \"numbers\"",
    };
    let job = format!(
        "[sources.numbers]\nconnector = \"generator\"\nrows = 1\n[operators.op]\n\
         type = \"{name}\"\n{inputs}\nkey = \"key\"\nzzzzzzzzzzzzzzzz = 1\n"
    );
    let message = load(&job).expect_err("there is no such key").to_string();
    let (_, known) = message
        .split_once("; there are ")
        .unwrap_or_else(|| panic!("{name}: {message}"));
    let known = known.split(", ").map(|key| key.trim_matches('`'));
    known
        .filter(|key| !COMMON.contains(key))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_keys_that_the_pages_explain_are_those_that_there_are() {
    let of_job_files = std::fs::read_to_string(docs().join("JOB_FILES.md")).expect("the page");
    let mut types = 0;
    for page in pages() {
        let link = format!("| [`{0}`](operators/{0}.md) |", page.name);
        if !of_job_files.lines().any(|line| line.starts_with(&link)) {
            continue;
        }
        let known = known_keys(&page.name);
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        assert_eq!(page.keys(), known, "docs/operators/{}.md", page.name);
        for [keys, unit, default, _] in page.key_rows() {
            let row = format!("| `{}` | {keys} | {unit} | {default} |", page.name);
            assert!(
                of_job_files.lines().any(|line| line == row),
                "docs/JOB_FILES.md: no {row}"
            );
        }
        types += 1;
    }
    assert!(types >= 16, "{types} types: a page has lost its row");
}
