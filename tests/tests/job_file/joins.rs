//! Joins of a job file, against a comparison of each row with each.

use std::path::Path;

use crate::running::{Cells, Random, Row, counts, read, read_sorted, run, sink, source, write};

const KINDS: [&str; 8] = [
    "inner",
    "left",
    "right",
    "full",
    "left_semi",
    "right_semi",
    "left_anti",
    "right_anti",
];

/// Left and right rows, each once at each of the times at which it joins, and what they join at:
/// the last time of a window, or their own.
struct Sides {
    left: Vec<(i64, Row)>,
    right: Vec<(i64, Row)>,
}

fn cells(row: &Row) -> Cells {
    vec![Some(row.time), row.key, Some(row.value)]
}

impl Sides {
    /// The results of `kind`: the time, for pairs all columns of both sides, and for rows alone
    /// those of their side.
    fn joined(&self, kind: &str, matches: impl Fn(i64, i64) -> bool) -> Vec<(i64, Cells)> {
        let pair = |left: &(i64, Row), right: &(i64, Row)| {
            left.1.key.is_some() && left.1.key == right.1.key && matches(left.0, right.0)
        };
        let nothing = vec![None; 3];
        let mut results = Vec::new();
        let pairs = ["inner", "left", "right", "full"].contains(&kind);
        for left in &self.left {
            let found: Vec<_> = self
                .right
                .iter()
                .filter(|right| pair(left, right))
                .collect();
            if pairs {
                for right in &found {
                    let row = [cells(&left.1), cells(&right.1)].concat();
                    results.push((left.0.max(right.0), row));
                }
            }
            match (kind, found.is_empty()) {
                ("left" | "full", true) => {
                    results.push((left.0, [cells(&left.1), nothing.clone()].concat()));
                }
                ("left_semi", false) | ("left_anti", true) => {
                    results.push((left.0, cells(&left.1)));
                }
                _ => {}
            }
        }
        for right in &self.right {
            match (kind, self.left.iter().any(|left| pair(left, right))) {
                ("right" | "full", false) => {
                    results.push((right.0, [nothing.clone(), cells(&right.1)].concat()));
                }
                ("right_semi", true) | ("right_anti", false) => {
                    results.push((right.0, cells(&right.1)));
                }
                _ => {}
            }
        }
        results
    }
}

fn job(operator: &str, kind: &str) -> String {
    [
        "job = { parallelism = 2 }\n".to_owned(),
        source("orders"),
        source("payments"),
        format!(
            "[operators.join]\nleft = \"orders\"\nright = \"payments\"\nkind = \"{kind}\"\n{operator}"
        ),
        sink("out", "join"),
    ]
    .concat()
}

/// Two files of rows that are nowhere late.
fn inputs(folder: &Path, random: &mut Random) -> [Vec<Row>; 2] {
    let (left, right) = (random.rows(60, 9_000, 4), random.rows(50, 9_000, 4));
    write(folder, "orders.csv", &left);
    write(folder, "payments.csv", &right);
    [left, right]
}

#[test]
fn an_interval_join_of_every_kind_gives_the_rows_that_belong_together() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let [left, right] = inputs(folder.path(), &mut random);
    let at_own_time = |rows: &[Row]| rows.iter().map(|row| (row.time, *row)).collect();
    let sides = Sides {
        left: at_own_time(&left),
        right: at_own_time(&right),
    };
    for kind in KINDS {
        let operator = "type = \"interval_join\"\nkey = \"key\"\nlower = \"-500ms\"\n\
                        upper = \"1s 200ms\"\n";
        run(&job(operator, kind), folder.path());
        let matches = |left: i64, right: i64| (-500..=1200).contains(&(right - left));
        let pairs = !kind.contains('_');
        let mut expected: Vec<Cells> = sides
            .joined(kind, matches)
            .into_iter()
            .map(|(time, row)| match pairs {
                true => [vec![Some(time)], row].concat(),
                false => row,
            })
            .collect();
        expected.sort();
        assert_eq!(read_sorted(folder.path(), "out.csv"), expected, "{kind}");
    }
}

#[test]
fn a_window_join_of_every_kind_gives_the_rows_that_share_a_window() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let [left, right] = inputs(folder.path(), &mut random);
    let (size, slide) = (2_000_i64, 500_i64);
    for slides in [false, true] {
        let slide = if slides { slide } else { size };
        let in_windows = |rows: &[Row]| {
            let mut all = Vec::new();
            for row in rows {
                let last = row.time.div_euclid(slide) * slide;
                let starts = (0..size / slide).map(|back| last - back * slide);
                all.extend(starts.map(|start| (start + size - 1, *row)));
            }
            all
        };
        let sides = Sides {
            left: in_windows(&left),
            right: in_windows(&right),
        };
        let option = if slides { "slide = \"500ms\"\n" } else { "" };
        for kind in KINDS {
            let operator = format!(
                "type = \"window_join\"\nleft_key = \"key\"\nright_key = [\"key\"]\n\
                 size = \"2s\"\n{option}"
            );
            run(&job(&operator, kind), folder.path());
            let mut expected: Vec<Cells> = sides
                .joined(kind, |left, right| left == right)
                .into_iter()
                .map(|(last, row)| {
                    let window = [last, last + 1 - size, last + 1].map(Some).to_vec();
                    [window, row].concat()
                })
                .collect();
            expected.sort();
            assert_eq!(read_sorted(folder.path(), "out.csv"), expected, "{kind}");
        }
    }
}

#[test]
fn columns_that_have_the_name_of_another_get_a_suffix() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path(), &mut random);
    let header = |operator: &str, kind: &str| {
        run(&job(operator, kind), folder.path());
        read(folder.path(), "out.csv").0.join(",")
    };
    let interval = "type = \"interval_join\"\nkey = \"key\"\nlower = \"0s\"\nupper = \"1s\"\n";
    assert_eq!(
        header(interval, "inner"),
        "event_time,event_time_left,key,value,event_time_right,key_right,value_right"
    );
    assert_eq!(header(interval, "left_semi"), "event_time,key,value");
    let named = format!("{interval}left_suffix = \".order\"\nright_suffix = \".payment\"\n");
    assert_eq!(
        header(&named, "full"),
        "event_time,event_time.order,key,value,event_time.payment,key.payment,value.payment"
    );
    let window = "type = \"window_join\"\nkey = \"key\"\nsize = \"1s\"\n";
    assert_eq!(
        header(window, "right_anti"),
        "event_time,window_start,window_end,event_time_right,key,value"
    );
}

#[test]
fn rows_that_come_too_late_to_join_go_to_the_side_output_of_their_side_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let right = [Row {
        time: 0,
        key: Some(1),
        value: 0,
    }];
    write(folder.path(), "right.csv", &right);
    // The left rows come slowly, and after the map all are far behind their watermarks. By then
    // the right input is over.
    let left = "[sources.numbers]\nconnector = \"generator\"\nrows = 100\nrate = 100\n\
                batch_rows = 10\nstart_ms = 1000000\n\
                [operators.left]\ntype = \"map\"\ninput = \"numbers\"\n\
                select = \"event_time - 900000 AS event_time, key, id AS value\"\n";
    let join = "[operators.join]\ntype = \"interval_join\"\nleft = \"left\"\n\
                right = \"right\"\nkey = \"key\"\nlower = \"0s\"\nupper = \"0s\"\n\
                kind = \"left\"\n";
    let sinks = ["left_late", "right_late"].map(|side| sink(side, &format!("join.{side}")));
    let job = [
        left,
        &source("right"),
        join,
        &sinks.concat(),
        &sink("out", "join"),
    ]
    .concat();
    let report = run(&job, folder.path());
    let late = read_sorted(folder.path(), "left_late.csv");
    assert!(!late.is_empty());
    assert_eq!(read_sorted(folder.path(), "right_late.csv").len(), 0);
    assert_eq!(counts(&report, "join").late_rows, late.len() as u64);
    let joined = read(folder.path(), "out.csv").1;
    assert_eq!(
        joined.len() + late.len(),
        100,
        "each left row is one or the other"
    );
}
