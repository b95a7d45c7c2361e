//! Nothing that can be set is missing from the page about connectors.

use super::*;
use crate::connect::{SINK_CONNECTORS, SOURCE_CONNECTORS};

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

#[test]
fn every_connector_and_every_option_is_on_the_page() {
    let page = include_str!("../../../../docs/CONNECTORS.md");
    let read_source =
        |name: &str, table: toml::Table| SourceOptions::read(name, table).unwrap_err().to_string();
    let read_sink =
        |name: &str, table: toml::Table| SinkOptions::read(name, table).unwrap_err().to_string();
    for (names, read) in [
        (
            SOURCE_CONNECTORS,
            read_source as fn(&str, toml::Table) -> String,
        ),
        (SINK_CONNECTORS, read_sink),
    ] {
        for name in names {
            assert!(page.contains(&format!("connector = \"{name}\"")), "{name}");
            let options = options_of(name, read);
            assert!(!options.is_empty(), "{name}");
            for option in &options {
                let own_row = format!("| `{option}` |");
                let is_shared = [["event_time", "watermark"], ["time_format", "time_zone"]]
                    .iter()
                    .any(|[first, second]| {
                        let row = format!("`{first}`, `{second}` |");
                        [*first, *second].contains(&option.as_str()) && page.contains(&row)
                    });
                assert!(page.contains(&own_row) || is_shared, "{name}.{option}");
            }
        }
    }
}
