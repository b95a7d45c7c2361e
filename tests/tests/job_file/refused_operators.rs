//! Operators whose keys do not fit their inputs are refused, with line and key.

use crate::sample::load;

/// A join that is valid, with `operator` for its keys. These begin in line 11.
fn job(operator: &str) -> String {
    format!(
        r#"[sources.bids]
connector = "nexmark"
rows = 100
[sources.numbers]
connector = "generator"
rows = 100
[operators.named]
type = "map"
input = "numbers"
select = ["key", "CAST(key AS TEXT) AS name", "value AS event_time_left"]
{operator}
[sinks.out]
connector = "blackhole"
input = "op"
"#
    )
}

/// The operator is refused at `line` of its own lines, which count from 1, and `key`.
#[track_caller]
fn refused(operator: &str, line: usize, key: &str, says: &[&str]) {
    let text = job(&format!("[operators.op]\n{operator}"));
    let error = load(&text).expect_err("it does not fit");
    let message = error.to_string();
    let path = match key {
        "" => "operators.op".to_owned(),
        key => format!("operators.op.{key}"),
    };
    let found = (error.place().line, error.place().key.clone());
    assert_eq!(found, (Some(11 + line), path), "{message}");
    for part in says {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// An interval join with one line changed.
#[track_caller]
fn join_refused(from: &str, to: &str, line: usize, key: &str, says: &[&str]) {
    let join = "type = \"interval_join\"\nleft = \"bids\"\nright = \"numbers\"\n\
                left_key = [\"auction\"]\nright_key = [\"key\"]\nlower = \"-1s\"\nupper = \"5s\"";
    load(&job(&format!("[operators.op]\n{join}"))).expect("the join is valid as it is");
    assert!(join.contains(from), "{from}");
    refused(&join.replacen(from, to, 1), line, key, says);
}

#[test]
fn a_join_needs_two_inputs_that_are_there() {
    join_refused("\"bids\"", "\"bid\"", 2, "left", &["did you mean `bids`?"]);
    join_refused("left = \"bids\"\n", "", 0, "", &["`left` is missing"]);
    let says = ["did you mean `interval_join`?"];
    join_refused("interval_join", "intervall_join", 1, "type", &says);
    join_refused("right = ", "input = ", 0, "", &["`right` is missing"]);
    let both = "left = [\"bids\", \"numbers\"]";
    let says = ["the columns differ"];
    join_refused("left = \"bids\"", both, 2, "left.1", &says);
    let says = ["cycle", "op"];
    join_refused("\"numbers\"", "\"op\"", 2, "left", &says);
    let says = ["unknown key `left`"];
    refused(
        "type = \"filter\"\ninput = \"bids\"\nleft = \"bids\"\nwhere = \"true\"",
        3,
        "left",
        &says,
    );
    let says = ["unknown key `input`"];
    let to = "right = \"numbers\"\ninput = \"bids\"";
    join_refused("right = \"numbers\"", to, 4, "input", &says);
}

#[test]
fn the_keys_of_a_join_are_as_many_and_of_the_same_types() {
    let says = ["did you mean `auction`?"];
    join_refused("[\"auction\"]", "[\"auctions\"]", 4, "left_key.0", &says);
    let says = ["there is no column `auction`", "`value`"];
    join_refused("[\"key\"]", "[\"auction\"]", 5, "right_key.0", &says);
    let says = ["2 columns, and `left_key` has 1"];
    join_refused("[\"key\"]", "[\"key\", \"id\"]", 5, "right_key", &says);
    let says = [
        "`name` of the right input is Utf8",
        "`auction` of the left Int64",
        "cast one",
    ];
    let named = "right = \"named\"\nleft_key = [\"auction\"]\nright_key = [\"name\"]";
    let from = "right = \"numbers\"\nleft_key = [\"auction\"]\nright_key = [\"key\"]";
    join_refused(from, named, 5, "right_key.0", &says);
    join_refused(
        "right_key = [\"key\"]\n",
        "",
        0,
        "",
        &["`right_key` is missing"],
    );
    let from = "left_key = [\"auction\"]\nright_key = [\"key\"]\n";
    join_refused(from, "", 0, "", &["the key `key` is missing", "`left_key`"]);
    join_refused(
        "left_key = ",
        "key = ",
        4,
        "key",
        &["names the columns of both sides"],
    );
    join_refused(
        "upper",
        "exchange = \"rebalance\"\nupper",
        7,
        "exchange",
        &["by its keys"],
    );
}

#[test]
fn the_options_of_a_join_say_what_may_stand_there() {
    join_refused("-1s", "6s", 6, "lower", &["swap the bounds"]);
    join_refused(
        "-1s",
        "1",
        6,
        "lower",
        &["units are ms, s, m, h, d", "-1h 30m"],
    );
    let kind = "kind = \"inner_\"\nupper";
    join_refused("upper", kind, 7, "kind", &["did you mean `inner`?"]);
    let kind = "kind = \"semi-join\"\nupper";
    join_refused("upper", kind, 7, "kind", &["`left_semi`, `right_semi`"]);
    join_refused("upper", "uper", 7, "uper", &["did you mean `upper`?"]);
    let from = "left = \"bids\"\nright = \"numbers\"\nleft_key = [\"auction\"]";
    let to = "left = \"named\"\nright = \"numbers\"\nleft_key = [\"key\"]";
    join_refused(
        from,
        to,
        0,
        "",
        &["named `event_time_left`", "another `left_suffix`"],
    );
    let to = format!("{to}\nleft_suffix = \"_left\"");
    join_refused(from, &to, 5, "left_suffix", &["named `event_time_left`"]);
    let window = "type = \"window_join\"\nleft = \"bids\"\nright = \"numbers\"\n\
                  left_key = \"auction\"\nright_key = \"key\"\nsize = \"1s\"\nslide = \"2s\"";
    refused(window, 7, "slide", &["leave gaps"]);
}

#[test]
fn what_keeps_state_by_key_says_what_it_needs() {
    let with = |lines: &str| format!("input = \"bids\"\n{lines}");
    let dedup = with("type = \"deduplicate\"");
    refused(&dedup, 0, "", &["the key `key` is missing", "same"]);
    let dedup = with("type = \"deduplicate\"\nkey = \"bidder\"\nttl = \"5\"");
    refused(&dedup, 4, "ttl", &["units are"]);
    let dedup = with("type = \"deduplicate\"\nkey = \"bidder\"\nttl = \"0s\"");
    refused(&dedup, 4, "ttl", &["more than 0"]);
    let session = with("type = \"session\"\ngap = \"0s\"\naggregates = [\"count(*) AS n\"]");
    refused(&session, 3, "gap", &["more than 0"]);
    let session = with("type = \"session\"\ngap = \"1s\"\naggregates = [\"sum(x) AS n\"]");
    refused(&session, 4, "aggregates.0", &["no column `x`"]);
    let count = with("type = \"count_window\"\nrows = 0\naggregates = [\"count(*) AS n\"]");
    refused(&count, 3, "rows", &["more than 0"]);
    let count = with("type = \"count_window\"\nrow = 2\naggregates = [\"count(*) AS n\"]");
    refused(&count, 3, "row", &["did you mean `rows`?"]);
    for (key, value) in [("early_every", "\"0s\""), ("early_rows", "0")] {
        let window = format!("{key} = {value}\nsize = \"1s\"\naggregates = [\"count(*) AS n\"]");
        refused(
            &with(&format!("type = \"window\"\n{window}")),
            3,
            key,
            &["more than 0"],
        );
    }
}

#[test]
fn top_n_orders_by_columns_that_are_there() {
    let with = |lines: &str| format!("input = \"bids\"\ntype = \"top_n\"\n{lines}");
    let top = with("rows = 3\norder = [\"price DESC\", \"bider\"]");
    refused(&top, 4, "order.1", &["did you mean `bidder`?"]);
    refused(
        &with("rows = 3\norder = []"),
        4,
        "order",
        &["\"price DESC\""],
    );
    refused(
        &with("rows = 0\norder = \"price\""),
        3,
        "rows",
        &["more than 0"],
    );
    let top = with("rows = 3\norder = \"price\"\nslide = \"1s\"");
    refused(&top, 5, "slide", &["goes with `size`"]);
    let top = with("rows = 3\norder = \"price\"\nparallelism = 4");
    refused(&top, 5, "parallelism", &["without a `key`"]);
}

#[test]
fn sort_orders_by_columns_that_are_there_in_one_subtask() {
    let with = |lines: &str| format!("input = \"bids\"\ntype = \"sort\"\n{lines}");
    let sort = with("order = [\"price DESC NULLS FIRST\", \"bider nulls last\"]");
    refused(&sort, 3, "order.1", &["did you mean `bidder`?"]);
    let sort = with("order = \"price NULLS SOMEWHERE\"");
    refused(&sort, 3, "order", &["`price NULLS SOMEWHERE`"]);
    refused(&with("order = []"), 3, "order", &["\"price DESC\""]);
    let sort = with("order = \"price\"\nparallelism = 4");
    refused(&sort, 4, "parallelism", &["one subtask"]);
    let limit = "input = \"bids\"\ntype = \"limit\"\nrows = 3\nkey = \"bidder\"";
    refused(limit, 4, "key", &["`top_n`"]);
    let limit = "input = \"bids\"\ntype = \"limit\"\nrows = -3";
    refused(limit, 3, "rows", &["-3"]);
}

#[test]
fn late_rows_of_what_has_none_are_no_stream() {
    let job = job(
        "[operators.op]\ntype = \"top_n\"\ninput = \"bids\"\nrows = 1\norder = \"price\"\n\
         [sinks.late]\nconnector = \"blackhole\"\ninput = \"op.late\"",
    );
    let error = load(&job).expect_err("without windows nothing is late");
    assert_eq!(error.place().key, "sinks.late.input", "{error}");
}
