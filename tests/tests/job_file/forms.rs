//! What a job file may say, and the same in JSON.

use std::path::Path;

use ringway::job::file::{Language, LoadedJob, Overrides};

use crate::sample::{JOB, changed, examples, load, load_at, plan};

#[test]
fn the_job_is_valid_as_it_is() {
    let job = load(JOB).unwrap();
    assert_eq!(job.graph.name, "sample");
    assert_eq!((job.sources.len(), job.sinks.len()), (1, 1));
    assert!(job.warnings.is_empty());
    plan(job);
}

#[test]
fn late_rows_have_the_columns_of_the_input() {
    let to = "[sinks.late]\nconnector = \"blackhole\"\ninput = [\"numbers\", \"per_key.late\"]\n\
              [sinks.out]";
    load(&changed("[sinks.out]", to)).unwrap();
}

#[test]
fn side_outputs_unions_and_keys_are_streams_like_others() {
    let job = r#"
        [sources.a]
        connector = "generator"
        rows = 10
        [sources.b]
        connector = "nexmark"
        rows = 10
        [operators.c]
        type = "map"
        input = "b"
        select = "auction AS id, bidder AS key, price AS value"
        [operators.both]
        type = "union"
        input = ["a", "c"]
        [operators.keyed]
        type = "key_by"
        input = "both"
        key = "key"
        [operators.window]
        type = "window"
        input = "keyed"
        size = "10s"
        slide = "5s"
        parallelism = 4
        aggregates = ["max(value) FILTER (WHERE id > 3) AS m"]
        [operators.parts]
        type = "split"
        input = "window.late"
        where = "id > 7"
        [sinks.big]
        connector = "blackhole"
        input = "parts"
        [sinks.small]
        connector = "blackhole"
        input = "parts.others"
        exchange = "broadcast"
        edge_capacity = 7
        edge_bytes_max = "2MiB"
        [sinks.results]
        connector = "blackhole"
        input = "window"
    "#;
    let plan = plan(load(job).unwrap());
    for part in [
        "window.arguments",
        "Key",
        "Broadcast",
        "capacity_elements: 7",
        "Side(",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(plan.contains(&format!("bytes_max: {}", 2 << 20)), "{plan}");
}

#[test]
fn a_join_takes_several_streams_on_a_side_and_each_part_of_it_has_a_uid_of_its_own() {
    let job = r#"
        [sources.a]
        connector = "generator"
        rows = 10
        parallelism = 2
        [sources.b]
        connector = "generator"
        rows = 10
        [operators.both]
        type = "interval_join"
        uid = "joined"
        left = ["a", "b"]
        right = "b"
        key = ["key"]
        kind = "full"
        lower = "-1s"
        upper = "1s"
        parallelism = 2
        edge_capacity = 7
        [sinks.late]
        connector = "blackhole"
        input = ["both.left_late", "both.right_late"]
        [sinks.out]
        connector = "blackhole"
        input = "both"
    "#;
    let plan = plan(load(job).unwrap());
    for part in [
        "\"joined.left\"",
        "\"joined.left-2\"",
        "\"joined.right\"",
        "\"joined\"",
        "capacity_elements: 7",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
}

#[test]
fn a_stream_that_nothing_takes_is_a_warning() {
    let job = load(&changed("input = \"per_key\"", "input = \"even\"")).unwrap();
    assert_eq!(
        job.warnings,
        ["nothing takes `per_key`: its rows are discarded"]
    );
}

#[test]
fn what_the_command_line_says_goes_before_the_file() {
    let overrides = Overrides {
        parallelism: Some(ringway::partition::Parallelism::new(5).unwrap()),
        ..Overrides::default()
    };
    let job = LoadedJob::parse(JOB, Language::Toml, Path::new(""), &overrides).unwrap();
    assert_eq!(job.options.parallelism().subtasks(), 5);
}

/// [`JOB`], in JSON.
const JSON: &str = r#"{
  "name": "sample",
  "job": { "parallelism": 2 },
  "sources": {
    "numbers": { "connector": "generator", "rows": 100 }
  },
  "operators": {
    "even": {
      "type": "filter",
      "input": "numbers",
      "where": "id % 2 = 0"
    },
    "per_key": {
      "type": "window",
      "input": "even",
      "key": ["key"],
      "size": "1s",
      "aggregates": [
        "count(*) AS n",
        "sum(value / 2) AS total"
      ]
    }
  },
  "sinks": { "out": { "connector": "blackhole", "input": "per_key" } }
}
"#;

#[test]
fn json_says_the_same_as_toml() {
    let toml = plan(load(JOB).unwrap());
    let json = load_at(JSON, Language::Json, Path::new("")).unwrap();
    assert_eq!(plan(json), toml);
}

#[test]
fn errors_in_json_have_their_line_and_key_too() {
    for (from, to, line, key) in [
        (
            "\"rows\": 100",
            "\"rows\": \"x\"",
            5,
            "sources.numbers.rows",
        ),
        ("\"where\"", "\"were\"", 11, "operators.even.were"),
        ("id % 2", "ids % 2", 11, "operators.even.where"),
        (
            "sum(value / 2)",
            "sum(valu)",
            20,
            "operators.per_key.aggregates.1",
        ),
        ("\"size\": \"1s\",", "", 13, "operators.per_key"),
        (
            "\"type\": \"filter\"",
            "\"type\": \"filter\", \"type\": 1",
            9,
            "",
        ),
        ("\"name\": \"sample\",", "\"name\": sample,", 2, ""),
    ] {
        assert!(JSON.contains(from), "{from}");
        let text = JSON.replacen(from, to, 1);
        let error = load_at(&text, Language::Json, Path::new("")).unwrap_err();
        let place = error.place();
        assert_eq!(
            (place.line, place.key.as_str()),
            (Some(line), key),
            "{error}"
        );
    }
    let list = load_at("[]", Language::Json, Path::new("")).unwrap_err();
    assert!(list.to_string().contains("is a table"), "{list}");
}

#[test]
fn no_text_makes_the_reader_panic() {
    let texts = [JOB, JSON];
    for (text, language) in texts
        .iter()
        .flat_map(|text| [(text, Language::Toml), (text, Language::Json)])
    {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            drop(load_at(&text[..end], language, Path::new("")));
            let mut cut = text.to_string();
            cut.remove(end);
            drop(load_at(&cut, language, Path::new("")));
        }
    }
}

#[test]
fn lists_inside_each_other_without_end_are_refused() {
    for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
        let text = [open.repeat(20_000), "1".to_owned(), close.repeat(20_000)].concat();
        let error = load_at(&text, Language::Json, Path::new("")).unwrap_err();
        assert!(error.to_string().contains("deep"), "{error}");
    }
    let text = format!("a = {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    drop(load_at(&text, Language::Toml, Path::new("")).unwrap_err());
}

#[test]
fn the_flights_example_is_valid() {
    let path = examples().join("flights.toml");
    let job = LoadedJob::load(&path, &Overrides::default()).unwrap();
    assert_eq!((job.sources.len(), job.sinks.len()), (2, 3));
    assert!(job.warnings.is_empty());
}

#[test]
fn every_job_of_the_page_about_job_files_can_be_planned() {
    let page = include_str!("../../../docs/JOB_FILES.md");
    let mut jobs = 0;
    for (fence, language) in [("```toml\n", Language::Toml), ("```json\n", Language::Json)] {
        for block in page.split(fence).skip(1) {
            let text = block.split("```").next().unwrap();
            let job = load_at(text, language, Path::new(""));
            plan(job.unwrap_or_else(|error| panic!("{error} in {text}")));
            jobs += 1;
        }
    }
    assert_eq!(jobs, 3);
}
