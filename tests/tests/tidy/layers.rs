//! The order of the engine's modules: a module uses those of its own layer and of the layers below. That is
//! what keeps transports out of the gate and alignment out of the edge.

use crate::items::{identifier, words};
use crate::tree::File;

/// From the lowest to the highest. A new module of engine/src is given its layer here.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["clock", "config", "limits", "metrics", "placement"],
    &["element", "partition"],
    &["batch"],
    &["batcher"],
    &["column"],
    &["wire"],
    &["align", "watermark"],
    &["edge"],
    &["data_plane"],
    &["network"],
    &["control"],
    &["gate", "output"],
    &["operator", "state"],
    &["connect", "expr", "operators"],
    &["stage", "task"],
    &["host", "worker"],
    &["job", "stream"],
];

const ENGINE: &str = "engine/src/";

pub(crate) fn check(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let Some(path) = module_path(&file.path) else {
            continue;
        };
        let code = file.library_code();
        let Some(own) = layer(path[0]) else {
            let finding = format!(
                "{ENGINE}{}: a module without a layer: give it one in LAYERS",
                path[0]
            );
            if found.last() != Some(&finding) {
                found.push(finding);
            }
            continue;
        };
        for (offset, name) in uses(&code, &path) {
            match layer(name) {
                Some(other) if other > own => found.push(format!(
                    "{}: {} (layer {own}) uses {name} (layer {other}): pass it in, or move the code up",
                    file.at(offset),
                    path[0]
                )),
                None if name.starts_with(|first: char| first.is_ascii_uppercase()) => found.push(format!(
                    "{}: crate::{name}: name it by its module, so that the order can be seen",
                    file.at(offset)
                )),
                _ => {}
            }
        }
    }
    found
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module of a file, from the root of the engine; nothing for the root itself and for the binary.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let inside = path.strip_prefix(ENGINE)?.strip_suffix(".rs")?;
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let path: Vec<&str> = inside.split('/').collect();
    (!matches!(path[0], "lib" | "bin")).then_some(path)
}

/// The names right below the root that the code reaches by `crate::` or by enough `super::`.
fn uses<'a>(code: &'a str, path: &[&str]) -> Vec<(usize, &'a str)> {
    let to_root = "super::".repeat(path.len());
    let mut found = Vec::new();
    for prefix in ["crate::", &to_root] {
        for (offset, _) in code.match_indices(prefix) {
            let longer = code[..offset].ends_with("::")
                || code[offset + prefix.len()..].starts_with("super");
            if !longer && words(&code[offset..], prefix).next() == Some(0) {
                found.extend(names(code, offset + prefix.len()));
            }
        }
    }
    found
}

/// The first names of the paths at `at`: one, or those of a group in braces.
fn names(code: &str, at: usize) -> Vec<(usize, &str)> {
    if !code[at..].starts_with('{') {
        return identifier(code, at)
            .map(|(name, _)| (at, name))
            .into_iter()
            .collect();
    }
    let mut found = Vec::new();
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(byte, b'{' | b',') {
            found.extend(identifier(code, offset + 1).map(|(name, _)| (offset + 1, name)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tree::File;

    fn found(path: &str, text: &str) -> usize {
        super::check(&[File::new(path, text)]).len()
    }

    #[test]
    fn a_use_of_a_higher_layer_is_found_however_it_is_written() {
        for text in [
            "use crate::gate::Gate;",
            "use crate::{error::Error, gate::{Gate, Input}};",
            "fn a() { crate::gate::b() }",
            "use super::gate::Gate;",
        ] {
            assert_eq!(found("engine/src/edge.rs", text), 1, "{text}");
        }
        assert_eq!(
            found("engine/src/edge/local.rs", "use super::super::gate::Gate;"),
            1
        );
        assert_eq!(
            found("engine/src/edge/local.rs", "use super::gate::Gate;"),
            0
        );
        assert_eq!(
            found(
                "engine/src/edge/mod.rs",
                "use crate::task;\nuse crate::worker;"
            ),
            2
        );
    }

    #[test]
    fn a_use_of_the_same_or_a_lower_layer_passes() {
        assert_eq!(
            found(
                "engine/src/gate.rs",
                "use crate::{edge::A, output::{B, task}};"
            ),
            0
        );
        assert_eq!(found("engine/src/lib.rs", "pub use crate::gate::Gate;"), 0);
        assert_eq!(
            found("engine/src/bin/ringway/main.rs", "use crate::job::Run;"),
            0
        );
        let text = "// crate::worker\n#[cfg(test)]\nmod tests { use crate::worker::Worker; }";
        assert_eq!(found("engine/src/edge.rs", text), 0);
    }

    #[test]
    fn a_module_without_a_layer_and_a_path_by_the_root_are_found() {
        assert_eq!(found("engine/src/novel.rs", ""), 1);
        let files = ["a", "b"].map(|file| File::new(&format!("engine/src/novel/{file}.rs"), ""));
        assert_eq!(super::check(&files).len(), 1);
        assert_eq!(found("engine/src/gate.rs", "use crate::StreamElement;"), 1);
    }
}
