//! Compressed text.

use std::fs;
use std::io::Write;

use super::*;

const LINES: usize = 30_000;

fn text() -> String {
    (0..LINES).map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

#[test]
fn compressed_files_are_read_by_their_names_or_as_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let whole = text();
    let (first, rest) = whole.split_at(1000);
    for (name, option, bytes) in [
        ("a.ndjson.gz", "", gzip(text().as_bytes())),
        ("a.ndjson.zst", "", zstd(text().as_bytes())),
        ("a.gzip", "compression = 'gzip'", gzip(text().as_bytes())),
        ("a.zs", "compression = 'zstd'", zstd(text().as_bytes())),
        ("plain.gz", "compression = 'none'", text().into_bytes()),
        // Files that were written in pieces.
        (
            "b.gz",
            "",
            [gzip(first.as_bytes()), gzip(rest.as_bytes())].concat(),
        ),
        (
            "b.zst",
            "",
            [zstd(first.as_bytes()), zstd(rest.as_bytes())].concat(),
        ),
    ] {
        fs::write(dir.path().join(name), &bytes).unwrap();
        let connector = source("ndjson", &format!("path = '{name}'\n{option}"), dir.path());
        assert_eq!(rows(&run_all(&*connector, 1)), LINES, "{name}");
        assert_eq!(connector.stats().read().bytes, bytes.len() as u64, "{name}");
    }
}

#[test]
fn a_compressed_file_that_is_cut_or_none_is_an_error_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let schema = "schema = [{ name = 'id', type = 'int64' }]";
    for (name, bytes) in [
        ("a.gz", gzip(text().as_bytes())),
        ("a.zst", zstd(text().as_bytes())),
    ] {
        for bytes in [&bytes[..bytes.len() - 20], b"{\"id\":1}\n"] {
            fs::write(dir.path().join(name), bytes).unwrap();
            let connector = source("ndjson", &format!("path = '{name}'\n{schema}"), dir.path());
            let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn what_is_written_compressed_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let written = crate::connect::nexmark_batches(super::super::NexmarkKind::Bid, 20_000, 1000);
    for connector in ["ndjson", "csv"] {
        for (name, magic) in [("out.gz", &[0x1f, 0x8b][..]), ("out.zst", &[0x28, 0xb5])] {
            let to = sink(connector, &format!("path = '{name}'"), dir.path());
            let mut writer = to.build(&subtask(0, 1), &written[0].schema());
            write_all(&mut *writer, written.clone()).unwrap();
            let bytes = fs::read(dir.path().join(name)).unwrap();
            assert!(bytes.starts_with(magic), "{name}");
            assert_eq!(to.stats().read().bytes, bytes.len() as u64);
            let from = source(connector, &format!("path = '{name}'"), dir.path());
            assert_eq!(rows(&run_all(&*from, 1)), 20_000);
        }
    }
}
