//! Input that nobody would write on purpose. Goal: an error that names the file, or the rows that
//! can be understood; never a crash, a wait without end, or an end that comes too early. Method:
//! files that are known to be hard, and files of every format with bytes changed at random.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::resume::{Random, seed, write_file};
use super::*;

const SCHEMA: &str = "schema = [{ name = 'id', type = 'int64' }, { name = 'text', type = 'utf8' }]";

fn ids_of(elements: &[Element]) -> Vec<Option<i64>> {
    let batches = batches(elements).into_iter();
    batches.flat_map(|batch| ints(batch, 1)).collect()
}

fn run(connector: &str, options: &str, dir: &Path) -> Result<Vec<Element>, String> {
    let connector = try_source(connector, options, dir).map_err(|error| error.to_string())?;
    let stepped = Stepped::open(&*connector, 0, 1);
    stepped.run().map_err(|error| error.to_string())
}

/// A file, what is in it, the numbers of the rows that can be understood, and how many cannot.
type Hard<'a> = (&'a str, &'a [u8], &'a [i64], usize);

const HARD: &[Hard<'_>] = &[
    ("empty.ndjson", b"", &[], 0),
    ("only a mark.ndjson", b"\xef\xbb\xbf", &[], 0),
    ("only blank.ndjson", b"\n\r\n \t\n", &[], 0),
    (
        "mark and ends.ndjson",
        b"\xef\xbb\xbf{\"id\":1}\r\n\r\n{\"id\":2}\r\n",
        &[1, 2],
        0,
    ),
    (
        "bad utf-8.ndjson",
        b"{\"id\":1,\"text\":\"\xff\"}\n{\"id\":2}\n",
        &[2],
        1,
    ),
    (
        "utf-16.ndjson",
        b"\xff\xfe{\0\"\0i\0d\0\"\0:\x001\0}\0\n\0",
        &[],
        2,
    ),
    ("nul.ndjson", b"\0\n{\"id\":2}\n\0{\"id\":3}\n", &[2], 2),
    ("two keys.ndjson", b"{\"id\":1,\"id\":2}\n", &[2], 0),
    (
        "numbers.ndjson",
        b"{\"id\":1e400}\n{\"id\":-0}\n{\"id\":9223372036854775808}\n",
        &[0],
        2,
    ),
    ("cut.ndjson", b"{\"id\":1}\n{\"id\":2", &[1], 1),
    ("old mac.ndjson", b"{\"id\":1}\r{\"id\":2}\r", &[], 1),
    ("empty.csv", b"", &[], 0),
    ("header.csv", b"id,text", &[], 0),
    ("mark.csv", b"\xef\xbb\xbfid,text\r\n1,a\r\n", &[1], 0),
    ("bad utf-8.csv", b"id,text\n1,\xff\n2,b\n", &[2], 1),
    ("nul.csv", b"id,text\n1,a\0b\n\0,b\n", &[1], 1),
    ("open quote.csv", b"id,text\n1,a\n2,\"b\n3,c\n", &[1], 1),
    (
        "quote within.csv",
        b"id,text\n1,a\"b\"\n2,\"b\"c\n",
        &[1, 2],
        0,
    ),
    ("few and many.csv", b"id,text\n1\n2,b,c\n3,c\n", &[3], 2),
    ("old mac.csv", b"id,text\n1,a\r2,b\r", &[], 1),
    ("more columns.csv", b"x,text,y,id\n,a,,1\n", &[1], 0),
];

#[test]
fn text_that_is_hard_to_read_is_rows_or_bad_rows_and_never_more() {
    let dir = tempfile::tempdir().unwrap();
    let nested = format!(
        "{{\"id\":1,\"x\":{}1{}}}\n",
        "[".repeat(1_000_000),
        "]".repeat(1_000_000)
    );
    // Where the library describes a value, it recurses into it.
    let nested = format!("{}{}", nested.replace("\"x\"", "\"text\""), nested);
    let deep: Hard<'_> = ("deep.ndjson", nested.as_bytes(), &[], 2);
    for (name, text, ids, bad) in HARD.iter().chain([&deep]) {
        fs::write(dir.path().join(name), text).unwrap();
        let connector = name.rsplit('.').next().unwrap();
        // As many pieces as there are bytes, where these are few.
        for split_bytes in [1 + text.len() / 500, 3 + text.len() / 100, 1 << 20] {
            let split = match connector {
                "csv" if name.contains("quote") => String::new(),
                "csv" => format!("quoted_line_ends = false\nsplit_bytes = {split_bytes}"),
                _ => format!("split_bytes = {split_bytes}"),
            };
            let options = format!("path = '{name}'\n{SCHEMA}\n{split}\non_error = 'skip'");
            let skipping = source(connector, &options, dir.path());
            let seen = ids_of(&run_all(&*skipping, 2));
            let mut seen: Vec<_> = seen.into_iter().flatten().collect();
            seen.sort_unstable();
            assert_eq!(seen, *ids, "{name}");
            assert_eq!(skipping.stats().read().skipped_rows, *bad as u64, "{name}");
            let failed = run(connector, &options.replace("skip", "fail"), dir.path());
            match failed {
                Ok(_) => assert_eq!(*bad, 0, "{name}"),
                Err(error) => assert!(*bad > 0 && error.contains(name), "{name}: {error}"),
            }
        }
    }
}

#[test]
fn a_column_of_a_type_that_cannot_be_read_is_refused_before_any_row_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.csv"), "id,w\n1,x\n").unwrap();
    fs::write(dir.path().join("a.ndjson"), "{\"id\":1,\"w\":\"x\"}\n").unwrap();
    let both = &["csv", "ndjson"][..];
    let types: &[(&str, &[&str])] = &[
        ("Utf8View", &[]),
        ("Dictionary(Int32, Utf8)", &["ndjson"]),
        ("List(Int64)", &["csv"]),
        ("Struct(\"a\": Int64)", &["csv"]),
        ("Duration(ms)", &["csv"]),
        ("Interval(MonthDayNano)", both),
        ("Union(Sparse, 0: (\"a\": Int64))", both),
        // The library panics at these, or asks for more memory than there is.
        ("Dictionary(Int8, Utf8)", both),
        ("Dictionary(Utf8, Utf8)", both),
        ("List(Dictionary(Float64, Utf8))", both),
        ("FixedSizeBinary(2000000000)", both),
        ("FixedSizeList(2000000000 x Int64)", both),
    ];
    let refused = |data_type: &str, connector: &str| {
        let options = format!(
            "path = 'a.{connector}'\non_error = 'skip'\nschema = \
             [{{ name = 'w', type = '{data_type}' }}]"
        );
        let error = try_source(connector, &options, dir.path()).err();
        error.is_some_and(|error| {
            let error = error.to_string();
            assert!(error.contains("option `schema`: the column `w`"), "{error}");
            true
        })
    };
    let found = types.iter().map(|(data_type, _)| {
        let connectors = both.iter().copied();
        let refusing = connectors.filter(|connector| refused(data_type, connector));
        (*data_type, refusing.collect::<Vec<_>>())
    });
    let expected = types
        .iter()
        .map(|(name, refusing)| (*name, refusing.to_vec()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn as_many_different_values_as_rows_are_a_dictionary() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..20_000).map(|id| format!("{id},word {id}\n")).collect();
    fs::write(dir.path().join("a.csv"), text).unwrap();
    for key in ["Int16", "UInt16", "Int64"] {
        let options = format!(
            "path = 'a.csv'\nheader = false\nschema = [{{ name = 'id', type = 'int64' }}, \
             {{ name = 'w', type = 'Dictionary({key}, Utf8)' }}]"
        );
        assert_eq!(rows(&run("csv", &options, dir.path()).unwrap()), 20_000);
    }
}

#[test]
fn a_header_that_cannot_be_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        (
            "a.csv",
            &b"id,text,id\n1,a,2\n"[..],
            "names the column `id` twice",
        ),
        ("b.csv", b"id,\xff\n1,a\n", "header cannot be read"),
        ("c.csv", b"number,text\n1,a\n", "has no column `id`"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
        let options = format!("path = '{name}'\n{SCHEMA}");
        let error = run("csv", &options, dir.path()).unwrap_err();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[test]
fn compressed_text_that_is_cut_anywhere_is_an_error_and_not_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..300).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("a.gz", gzip.finish().unwrap()), ("a.zst", zstd)] {
        for length in 0..bytes.len() {
            fs::write(dir.path().join(name), &bytes[..length]).unwrap();
            let options = format!("path = '{name}'\n{SCHEMA}\non_error = 'skip'");
            let error = run("ndjson", &options, dir.path()).err();
            let error = error.unwrap_or_else(|| panic!("{name}: an end at {length}"));
            assert!(error.contains(name), "{error}");
        }
        // Nothing follows what is complete.
        fs::write(dir.path().join(name), [&bytes[..], b"more"].concat()).unwrap();
        let options = format!("path = '{name}'\n{SCHEMA}");
        let error = run("ndjson", &options, dir.path()).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn links_lead_to_a_file_once_and_those_that_lead_nowhere_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("in/deeper");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.ndjson"), "{\"id\":1}\n").unwrap();
    // A folder that leads back into itself, and a second name.
    symlink("..", folder.join("back")).unwrap();
    symlink("a.ndjson", folder.join("b.ndjson")).unwrap();
    let options = format!("path = 'in/**/*.ndjson'\n{SCHEMA}");
    let elements = run("ndjson", &options, dir.path()).unwrap();
    assert_eq!(ids_of(&elements), [Some(1)]);
    symlink("nowhere", folder.join("c.ndjson")).unwrap();
    symlink("d.ndjson", folder.join("d.ndjson")).unwrap();
    for name in ["c.ndjson", "d.ndjson"] {
        let options = format!("path = 'in/deeper/{name}*'\n{SCHEMA}");
        let error = run("ndjson", &options, dir.path()).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
    for path in ["in", "in/deeper/back", "in/*/nothing"] {
        let options = format!("path = '{path}'\n{SCHEMA}");
        let error = run("ndjson", &options, dir.path()).unwrap_err();
        assert!(
            error.contains(&format!("no file matches {}", dir.path().display())),
            "{error}"
        );
    }
}

/// Changes some bytes of `bytes`, leaves some out, and puts some in.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    const HARD: &[u8] = b"\0\n\r\"\\,{}[]\xff\xef0-:e\x1f\x28";
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(u32::try_from(bytes.len()).unwrap()) as usize;
        let hard = HARD[random.below(u32::try_from(HARD.len()).unwrap()) as usize];
        match random.below(5) {
            0 => bytes[at] = hard,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.insert(at, hard),
            3 => drop(bytes.remove(at)),
            _ => {
                let end = (at + random.below(30) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
}

#[test]
fn a_damaged_file_is_an_error_with_its_name_or_rows_and_never_a_crash() {
    let seed = seed();
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    for (connector, name, more) in [
        ("csv", "a.csv", ""),
        ("csv", "a.csv.gz", ""),
        ("csv", "a.csv.zst", ""),
        ("ndjson", "a.ndjson", ""),
        ("ndjson", "a.ndjson.zst", ""),
        ("arrow", "a.arrow", ""),
        ("arrow", "a.arrow", "compression = 'zstd'"),
        ("arrow", "a.arrows", "form = 'stream'\ncompression = 'lz4'"),
        ("parquet", "a.parquet", "row_group_rows = 100"),
    ] {
        write_file(
            connector,
            &format!("path = '{name}'\n{more}"),
            dir.path(),
            300,
            100,
        );
        let whole = fs::read(dir.path().join(name)).unwrap();
        for round in 0..20 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut random);
            fs::write(dir.path().join(name), &bytes).unwrap();
            let named = format!("{name} round {round}, RINGWAY_SEED={seed}");
            for on_error in ["fail", "skip"] {
                let is_text = ["csv", "ndjson"].contains(&connector);
                let on_error = match is_text {
                    true => format!("on_error = '{on_error}'"),
                    false => String::new(),
                };
                let result = run(
                    connector,
                    &format!("path = '{name}'\n{on_error}"),
                    dir.path(),
                );
                let Err(error) = result else { continue };
                let is_named = error.contains(name) || error.contains("option `");
                assert!(is_named && !error.contains("panicked"), "{named}: {error}");
            }
        }
    }
}

#[test]
fn a_damaged_text_is_the_same_rows_in_however_many_pieces() {
    let seed = seed();
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    for connector in ["csv", "ndjson"] {
        let name = format!("a.{connector}");
        write_file(connector, &format!("path = '{name}'"), dir.path(), 200, 100);
        let whole = fs::read(dir.path().join(&name)).unwrap();
        for round in 0..12 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut random);
            fs::write(dir.path().join(&name), &bytes).unwrap();
            let schema = "schema = [{ name = 'event_time', type = 'int64' }, \
                { name = 'id', type = 'int64' }, { name = 'text', type = 'utf8' }]";
            let read = |split_bytes: u64, parallelism: u32| {
                let csv = match connector {
                    "csv" => "quoted_line_ends = false\nheader = false",
                    _ => "",
                };
                let options = format!(
                    "path = '{name}'\non_error = 'skip'\nsplit_bytes = {split_bytes}\n{csv}\n{schema}"
                );
                let connector: Arc<dyn SourceConnector> = source(connector, &options, dir.path());
                let elements = run_all(&*connector, parallelism);
                let skipped = connector.stats().read().skipped_rows;
                (rows(&elements), sum(&elements), skipped)
            };
            let expected = read(1 << 30, 1);
            let split_bytes = 1 + u64::from(random.below(3000));
            for parallelism in [1, 3] {
                let named = format!("{name} {round} {split_bytes}, RINGWAY_SEED={seed}");
                assert_eq!(read(split_bytes, parallelism), expected, "{named}");
            }
        }
    }
}
