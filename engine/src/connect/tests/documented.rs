//! Nothing that can be set is missing from the pages about connectors, and nothing else stands
//! there.

use super::super::{SINK_CONNECTORS, SOURCE_CONNECTORS};
use super::*;

/// The options that a connector's reader says it knows, when it is given one that it doesn't.
fn options_of(connector: &str, read: fn(&str, toml::Table) -> String) -> Vec<String> {
    let table: toml::Table = toml::from_str("no_such_option = 1").unwrap();
    let message = read(connector, table);
    let known = message
        .split_once("expected")
        .map_or("", |(_, known)| known);
    let mut names: Vec<_> = known.split('`').skip(1).step_by(2).collect();
    names.sort_unstable();
    names.into_iter().map(str::to_owned).collect()
}

fn read_docs(path: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(docs.join(path)).unwrap_or_else(|error| panic!("docs/{path}: {error}"))
}

/// The options that the table of options in the section `title` has, with their other columns.
fn documented(page: &str, title: &str) -> Vec<(String, Vec<String>)> {
    let section = page.split(&format!("\n## {title}\n")).nth(1).unwrap_or("");
    let section = section.split("\n## ").next().unwrap();
    let table = section
        .split("| option | type | unit | default | meaning |\n")
        .nth(1);
    let rows = table
        .unwrap_or("")
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let mut options: Vec<_> = rows
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            let mut cells = cells.map(|cell| cell.trim().to_owned());
            let name = cells.next().unwrap().trim_matches('`').to_owned();
            (name, cells.collect())
        })
        .collect();
    options.sort();
    options
}

#[test]
fn every_connector_has_a_page_with_every_option_its_type_and_its_default() {
    let index = read_docs("CONNECTORS.md");
    let read_source =
        |name: &str, table: toml::Table| SourceOptions::read(name, table).unwrap_err().to_string();
    let read_sink =
        |name: &str, table: toml::Table| SinkOptions::read(name, table).unwrap_err().to_string();
    for (names, title, read) in [
        (
            SOURCE_CONNECTORS,
            "Source",
            read_source as fn(&str, toml::Table) -> String,
        ),
        (SINK_CONNECTORS, "Sink", read_sink),
    ] {
        for name in names {
            let link = format!("[`{name}`](connectors/{name}.md)");
            assert!(index.contains(&link), "{name} is in the index");
            let page = read_docs(&format!("connectors/{name}.md"));
            assert!(
                page.contains(&format!("connector = \"{name}\"")),
                "{name} has an example"
            );
            let rows = documented(&page, title);
            let options: Vec<_> = rows.iter().map(|(option, _)| option.clone()).collect();
            assert_eq!(options, options_of(name, read), "{name}: {title}");
            for (option, cells) in rows {
                let [kind, _unit, default, meaning] = &cells[..] else {
                    panic!("{name}.{option} has not all columns: {cells:?}");
                };
                let is_told = [kind, default, meaning].iter().all(|cell| !cell.is_empty());
                assert!(is_told, "{name}.{option}: {cells:?}");
            }
        }
    }
}
