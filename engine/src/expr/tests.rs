use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeStringArray, StringArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Int32Type, TimeUnit};

use super::*;

fn batch_of<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|column| column.1).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

fn batch() -> RecordBatch {
    batch_of([
        (
            "a",
            Arc::new(Int64Array::from(vec![Some(6), None, Some(-7)])) as ArrayRef,
        ),
        (
            "b",
            Arc::new(Int64Array::from(vec![Some(0), Some(2), Some(2)])),
        ),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("x"), None, Some("zz")])),
        ),
        ("Mixed case", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ])
}

fn run(text: &str, batch: &RecordBatch) -> Result<ArrayRef, ExprError> {
    Expr::parse(text)?.bind(&batch.schema())?.evaluate(batch)
}

fn guarded<T>(run: impl FnOnce() -> T) -> std::thread::Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
}

fn refusal(text: &str) -> ExprError {
    let batch = batch();
    match Expr::parse(text).and_then(|expr| expr.bind(&batch.schema())) {
        Ok(_) => panic!("{text} was accepted"),
        Err(error) => error,
    }
}

const REFUSALS: &[(&str, ExprErrorKind, &str)] = &[
    (
        "",
        ExprErrorKind::Syntax,
        "line 1, column 1: the expression is empty",
    ),
    (
        "a +",
        ExprErrorKind::Syntax,
        "expected: an expression, found: EOF; correct the text",
    ),
    (
        "a b",
        ExprErrorKind::Syntax,
        "line 1, column 3: unexpected `b` after the end",
    ),
    (
        "a = 'x",
        ExprErrorKind::Syntax,
        "line 1, column 5: unterminated string",
    ),
    (
        "a + A",
        ExprErrorKind::Name,
        "line 1, column 5: no column `A`; the columns are a, b, s",
    ),
    (
        "a\n + nosuch",
        ExprErrorKind::Name,
        "line 2, column 4: no column `nosuch`",
    ),
    (
        "a + s",
        ExprErrorKind::Type,
        "in `a + s`: arithmetic needs numbers and this is Utf8",
    ),
    (
        "1 + (a = s)",
        ExprErrorKind::Type,
        "line 1, column 6: in `a = s`: Int64 and Utf8 don't",
    ),
    (
        "b AND a",
        ExprErrorKind::Type,
        "line 1, column 1: `b` is Int64 where a boolean",
    ),
    (
        "a + median(b)",
        ExprErrorKind::Unsupported,
        "line 1, column 5: the function `median`",
    ),
    (
        "a + abs(b, 1)",
        ExprErrorKind::Type,
        "abs takes 1 argument(s) and got 2",
    ),
    (
        "a & b",
        ExprErrorKind::Unsupported,
        "the operator `&` is not supported",
    ),
    (
        "a LIKE 'x'",
        ExprErrorKind::Type,
        "`a` is Int64; LIKE needs text",
    ),
    (
        "99999999999999999999",
        ExprErrorKind::Syntax,
        "is outside of int64 and uint64",
    ),
    (
        "CASE WHEN a = 1 THEN 1 ELSE 'x' END",
        ExprErrorKind::Type,
        "don't meet in one type",
    ),
];

#[test]
fn an_error_says_where_what_and_what_to_do() {
    for &(text, kind, part) in REFUSALS {
        let error = refusal(text);
        let shown = error.to_string();
        assert!(
            shown.contains(part) || shown.to_lowercase().contains(part),
            "{text}: {shown}"
        );
        assert_eq!(error.kind(), kind, "{text}: {shown}");
    }
}

#[test]
fn what_is_not_supported_points_to_the_page() {
    for text in [
        "(SELECT 1)",
        "EXISTS (SELECT 1)",
        "INTERVAL '1' DAY",
        "DATE '2024-01-01'",
        "a[1]",
        "(a, b)",
        "s SIMILAR TO 'x'",
        "s COLLATE de",
        "position('x' IN s)",
        "ceil(a, 2)",
        "trim('x' FROM s)",
        "count(*)",
        "abs(DISTINCT a)",
        "abs(a) FILTER (WHERE b = 1)",
        "s LIKE 'x' ESCAPE '!'",
        "X'00'",
        "?",
        "a.b",
        "ARRAY[1]",
        "CAST(a AS JSON)",
    ] {
        let error = refusal(text);
        assert_eq!(error.kind(), ExprErrorKind::Unsupported, "{text}: {error}");
        assert!(
            error.message().contains("docs/EXPRESSIONS.md"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_name_that_two_columns_have_is_ambiguous() {
    let field = || Field::new("k", DataType::Int64, true);
    let schema = Schema::new(vec![
        field(),
        Field::new("v", DataType::Int64, true),
        field(),
    ]);
    let error = Expr::parse("v + k").unwrap().bind(&schema).unwrap_err();
    assert!(
        error
            .message()
            .contains("ambiguous: it stands at positions 0 and 2"),
        "{error}"
    );
    assert_eq!(error.position(), Position { line: 1, column: 5 });
    assert!(Expr::parse("v").unwrap().bind(&schema).is_ok());
}

#[test]
fn a_bare_column_is_known_as_one_and_shared() {
    let batch = batch();
    let bound = Expr::parse("(\"Mixed case\")")
        .unwrap()
        .bind(&batch.schema())
        .unwrap();
    assert_eq!(bound.is_column(), Some(3));
    assert!(Arc::ptr_eq(
        &bound.evaluate(&batch).unwrap(),
        batch.column(3)
    ));
    let sum = Expr::parse("b + a + b").unwrap();
    assert_eq!(sum.columns(), ["b", "a"]);
    let sum = sum.bind(&batch.schema()).unwrap();
    assert_eq!((sum.is_column(), sum.columns()), (None, vec![0, 1]));
}

#[test]
fn a_predicate_counts_null_as_false_and_needs_a_boolean() {
    let batch = batch();
    let predicate = |text: &str| {
        Expr::parse(text)
            .unwrap()
            .bind(&batch.schema())
            .unwrap()
            .evaluate_predicate(&batch)
    };
    let chosen = predicate("a < 7").unwrap();
    assert_eq!(chosen, BooleanArray::from(vec![true, false, true]));
    assert_eq!(chosen.null_count(), 0);
    assert_eq!(
        predicate("NULL").unwrap(),
        BooleanArray::from(vec![false; 3])
    );
    assert_eq!(
        predicate("true").unwrap(),
        BooleanArray::from(vec![true; 3])
    );
    assert_eq!(predicate("a + 1").unwrap_err().kind(), ExprErrorKind::Type);
}

#[test]
fn a_guard_keeps_a_failing_part_from_the_rows_it_excludes() {
    let batch = batch();
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), None, Some(-3)]));
    for text in [
        "CASE WHEN b = 0 THEN 0 ELSE a / b END",
        "CASE b WHEN 0 THEN 0 ELSE a / b END",
        "coalesce(CASE WHEN b = 0 THEN 0 END, a / b)",
    ] {
        assert_eq!(&run(text, &batch).unwrap(), &expected, "{text}");
    }
    let all = Arc::new(BooleanArray::from(vec![Some(false), None, Some(true)])) as ArrayRef;
    assert_eq!(&run("b <> 0 AND a / b < 0", &batch).unwrap(), &all);
    let error = run("a / b < 0 AND b <> 0", &batch).unwrap_err();
    assert_eq!(error.kind(), ExprErrorKind::Evaluation);
    assert!(
        error.message().starts_with("division by zero in `a / b`"),
        "{error}"
    );
}

#[test]
fn literals_alone_give_one_value_a_row() {
    let batch = batch();
    for text in [
        "1 + 1",
        "2",
        "coalesce(NULL, 2)",
        "CASE WHEN true THEN 2 END",
        "abs(-2)",
    ] {
        let found = run(text, &batch).unwrap();
        assert_eq!(*found, Int64Array::from(vec![2, 2, 2]), "{text}");
    }
    assert!(run("1 / 0", &batch).is_err());
    assert!(run("false AND 1 / 0 = 1", &batch).is_ok());
}

#[test]
fn an_empty_batch_gives_an_empty_array_and_never_fails() {
    let empty = batch().slice(0, 0);
    for text in [
        "a / b",
        "1 / 0",
        "a",
        "2",
        "upper(s)",
        "CASE WHEN 1 / 0 = 1 THEN 1 END",
        "NULL",
    ] {
        assert_eq!(run(text, &empty).unwrap().len(), 0, "{text}");
    }
}

#[test]
fn a_batch_of_another_schema_is_refused_and_not_misread() {
    let bound = Expr::parse("b + 1")
        .unwrap()
        .bind(&batch().schema())
        .unwrap();
    let other = batch_of([
        ("a", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("b", Arc::new(StringArray::from(vec!["1"]))),
    ]);
    assert_eq!(
        bound.evaluate(&other).unwrap_err().kind(),
        ExprErrorKind::Schema
    );
    let narrow = batch_of([("a", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    assert_eq!(
        bound.evaluate(&narrow).unwrap_err().kind(),
        ExprErrorKind::Schema
    );
}

#[test]
fn a_literal_takes_the_type_of_the_column_it_meets() {
    let batch = batch_of([
        ("tiny", Arc::new(Int8Array::from(vec![1])) as ArrayRef),
        ("small", Arc::new(Int16Array::from(vec![300]))),
        ("mid", Arc::new(Int32Array::from(vec![7]))),
    ]);
    let type_of = |text: &str| {
        let bound = Expr::parse(text).unwrap().bind(&batch.schema()).unwrap();
        bound.data_type().clone()
    };
    assert_eq!(type_of("coalesce(tiny, 5)"), DataType::Int8);
    assert_eq!(type_of("coalesce(tiny, 300)"), DataType::Int64);
    assert_eq!(type_of("coalesce(tiny, small)"), DataType::Int16);
    assert_eq!(type_of("coalesce(tiny, 1.5)"), DataType::Float64);
    assert_eq!(type_of("tiny + mid"), DataType::Int64);
    assert_eq!(type_of("NULL + NULL"), DataType::Int64);
    assert_eq!(type_of("NULL"), DataType::Null);
    assert_eq!(
        *run("tiny > -129", &batch).unwrap(),
        BooleanArray::from(vec![true])
    );
}

#[test]
fn every_layout_of_strings_is_text() {
    let values = vec![Some("ab"), None];
    let dictionary: DictionaryArray<Int32Type> = values.clone().into_iter().collect();
    let batch = batch_of([
        (
            "large",
            Arc::new(LargeStringArray::from(values.clone())) as ArrayRef,
        ),
        ("view", Arc::new(StringViewArray::from(values.clone()))),
        ("dict", Arc::new(dictionary)),
    ]);
    let upper: ArrayRef = Arc::new(StringArray::from(vec![Some("AB"), None]));
    for text in [
        "upper(large)",
        "upper(view)",
        "upper(CAST(dict AS VARCHAR))",
    ] {
        assert_eq!(&run(text, &batch).unwrap(), &upper, "{text}");
    }
    let found: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    for text in [
        "large = 'ab'",
        "view LIKE 'a_'",
        "large = view",
        "large IN ('x', 'ab')",
    ] {
        assert_eq!(&run(text, &batch).unwrap(), &found, "{text}");
    }
}

#[test]
fn a_literal_may_stand_on_either_side_of_every_operation() {
    let batch = batch();
    let found: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    for text in [
        "'x' LIKE s",
        "'X' ILIKE s",
        "starts_with('xy', s)",
        "ends_with('yx', s)",
        "contains('yxy', s)",
        "'x' = s",
        "'x' IN (s)",
        "'x' BETWEEN s AND s",
        "concat('a', 'b') || s = 'abx'",
        "CASE 'x' WHEN s THEN true ELSE s = 'x' END",
    ] {
        assert_eq!(&run(text, &batch).unwrap(), &found, "{text}");
    }
    for text in [
        "'x' LIKE '_'",
        "'x' ILIKE 'X'",
        "starts_with('xy', 'x')",
        "1 IN (2, 1)",
    ] {
        assert_eq!(
            *run(text, &batch).unwrap(),
            BooleanArray::from(vec![true; 3]),
            "{text}"
        );
    }
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), None, Some(17)]));
    assert_eq!(&run("10 - a", &batch).unwrap(), &numbers);
    let rounded = run("round(2.345, b)", &batch).unwrap();
    assert_eq!(*rounded, Float64Array::from(vec![2.0, 2.35, 2.35]));
}

#[test]
fn times_of_any_unit_and_zone_are_utc_milliseconds() {
    let micros = vec![Some(3_600_000_001), None];
    let plain = TimestampMicrosecondArray::from(micros.clone());
    let zoned = TimestampMicrosecondArray::from(micros).with_timezone("+02:00");
    let batch = batch_of([
        ("plain", Arc::new(plain) as ArrayRef),
        ("zoned", Arc::new(zoned)),
    ]);
    let hours: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    assert_eq!(&run("hour(plain)", &batch).unwrap(), &hours);
    assert_eq!(&run("hour(zoned)", &batch).unwrap(), &hours);
    let late: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    assert_eq!(
        &run("plain > '1970-01-01T00:59:59'", &batch).unwrap(),
        &late
    );
    let error = Expr::parse("plain > 'noon'")
        .unwrap()
        .bind(&batch.schema())
        .unwrap_err();
    assert!(
        error.message().contains("`'noon'` is not a Timestamp"),
        "{error}"
    );
    let unit = DataType::Timestamp(TimeUnit::Microsecond, None);
    let kept = Expr::parse("coalesce(plain, NULL)")
        .unwrap()
        .bind(&batch.schema())
        .unwrap();
    assert_eq!(kept.data_type(), &unit);
}

#[test]
fn times_beyond_the_calendar_are_null_and_never_a_panic() {
    let batch = batch_of([(
        "at",
        Arc::new(Int64Array::from(vec![
            i64::MIN,
            i64::MAX,
            -62_135_596_800_001,
        ])) as ArrayRef,
    )]);
    let years = run("year(at)", &batch).unwrap();
    assert_eq!(*years, Int64Array::from(vec![None, None, Some(0)]));
    let quarters = run("date_trunc('quarter', at)", &batch).unwrap();
    assert_eq!(quarters.null_count(), 2);
    let error = run("date_trunc('week', at)", &batch).unwrap_err();
    assert!(
        error
            .message()
            .contains("integer overflow in `date_trunc('week', at)`"),
        "{error}"
    );
}

#[test]
fn both_zeros_are_equal_and_nan_is_greatest() {
    let batch = batch_of([(
        "x",
        Arc::new(Float64Array::from(vec![-0.0, -f64::NAN, f64::INFINITY])) as ArrayRef,
    )]);
    let truths = |text: &str| run(text, &batch).unwrap();
    assert_eq!(
        *truths("x = 0"),
        BooleanArray::from(vec![true, false, false])
    );
    assert_eq!(*truths("x < 0.0"), BooleanArray::from(vec![false; 3]));
    assert_eq!(
        *truths("x > 1e308"),
        BooleanArray::from(vec![false, true, true])
    );
    assert_eq!(
        *truths("x IN (0.0)"),
        BooleanArray::from(vec![true, false, false])
    );
}

#[test]
fn a_long_condition_is_not_a_deep_one() {
    let terms: Vec<String> = (0..900).map(|value| format!("a = {value}")).collect();
    let found = run(&terms.join(" OR "), &batch()).unwrap();
    assert_eq!(
        *found,
        BooleanArray::from(vec![Some(true), None, Some(false)])
    );
    let list: Vec<String> = (0..2000).map(|value| value.to_string()).collect();
    assert!(run(&format!("a IN ({})", list.join(", ")), &batch()).is_ok());
}

#[test]
fn a_text_beyond_the_limits_is_refused_on_the_smallest_stack() {
    let long = |between: &str, count: usize| vec!["a"; count].join(between);
    let nested = |open: &str, close: &str, count: usize| {
        format!("{}a{}", open.repeat(count), close.repeat(count))
    };
    let texts = vec![
        long(" + ", TOKENS_MAX / 2),
        long(" || ", TOKENS_MAX / 2),
        long(" = ", TOKENS_MAX / 2),
        long(" + ", TOKENS_MAX),
        nested("(", ")", 1000),
        nested("abs(", ")", 1000),
        nested("NOT ", "", 2000),
        nested("- ", "", 2000),
        nested("CASE WHEN ", " THEN 1 END", 400),
        nested("CAST(", " AS INT)", 500),
        nested("ARRAY[", "]", 1000),
        nested("", "::INT", 1300),
        nested("", " IS NULL", 1300),
        nested("", "[1]", 1300),
        format!("(SELECT {})", long(" + ", TOKENS_MAX / 2 - 4)),
        format!("{} AND (SELECT 1)", long(" AND ", TOKENS_MAX / 2 - 4)),
        format!("({}) COLLATE x", long(" + ", TOKENS_MAX / 2 - 4)),
    ];
    for text in texts {
        let shown: String = text.chars().take(30).collect();
        let stack = std::thread::Builder::new().stack_size(2 << 20);
        let refused = stack.spawn(move || Expr::parse(&text).err().map(|error| error.kind()));
        let kind = refused
            .unwrap()
            .join()
            .unwrap_or_else(|_| panic!("{shown} panicked"));
        let expected = [
            ExprErrorKind::Limit,
            ExprErrorKind::Unsupported,
            ExprErrorKind::Syntax,
        ];
        assert!(
            kind.is_some_and(|kind| expected.contains(&kind)),
            "{shown}: {kind:?}"
        );
    }
}

#[test]
fn the_deepest_expression_allowed_is_evaluated_on_the_smallest_stack() {
    let depth = NESTING_DEPTH_MAX - 4;
    let texts = [
        format!("{}b", "b + ".repeat(depth)),
        format!("{}b{}", "(".repeat(depth), ")".repeat(depth)),
        format!("{}b{}", "abs(".repeat(depth), ")".repeat(depth)),
        format!(
            "{}b{}",
            "CASE WHEN b = 0 THEN 1 ELSE ".repeat(depth),
            " END".repeat(depth)
        ),
        format!("{}b{}", "coalesce(NULL, ".repeat(depth), ")".repeat(depth)),
    ];
    for text in texts {
        let shown: String = text.chars().take(30).collect();
        let stack = std::thread::Builder::new().stack_size(2 << 20);
        let run = stack.spawn(move || run(&text, &batch()).map(|found| found.len()));
        assert_eq!(run.unwrap().join().unwrap(), Ok(3), "{shown}");
    }
}

const WORDS: &str = "a b s ( ) ( ) , + - * / % || = <> AND OR NOT IS NULL IN BETWEEN LIKE CASE WHEN \
    THEN ELSE END CAST AS INT abs substr date_trunc 'day' 1 0 2.5 'x' :: FROM trim [ \
    ] . -> coalesce round least concat 9223372036854775807 INTERVAL EXTRACT hour \
    true length greatest";

#[test]
fn no_mixture_of_words_panics_or_takes_long() {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let seed = std::env::var("RINGWAY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(7);
    let mut state = seed | 1;
    let batch = batch();
    for _ in 0..20_000 {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or(0)
        };
        let count = 1 + next() % 14;
        let text: Vec<&str> = (0..count).map(|_| words[next() % words.len()]).collect();
        let text = text.join(" ");
        let outcome = guarded(|| run(&text, &batch).map(|found| found.len()));
        let outcome = outcome.unwrap_or_else(|_| panic!("RINGWAY_SEED={seed}: {text} panics"));
        assert!(
            outcome.is_err() || outcome == Ok(3),
            "RINGWAY_SEED={seed}: {text}: {outcome:?}"
        );
        let item = guarded(|| AggregateExpr::parse(&text).is_ok());
        assert!(
            item.is_ok(),
            "RINGWAY_SEED={seed}: {text} panics as an aggregate"
        );
    }
}

#[test]
fn nesting_to_the_limit_is_parsed_without_trying_every_way() {
    // A parser that reads each level twice would need 2^60 steps.
    for (open, close) in [
        ("(", ")"),
        ("coalesce(a, ", ")"),
        ("CAST(", " AS INT)"),
        ("- ", ""),
    ] {
        let text = format!("{}a{}", open.repeat(60), close.repeat(60));
        assert!(Expr::parse(&text).is_ok(), "{open}");
    }
}

#[test]
fn no_cast_of_an_extreme_value_panics() {
    let batch = extreme_values();
    let names = [
        "BOOLEAN",
        "TINYINT",
        "INT",
        "BIGINT",
        "TINYINT UNSIGNED",
        "BIGINT UNSIGNED",
        "REAL",
    ];
    let more = [
        "DOUBLE",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "DECIMAL(38, 0)",
        "DECIMAL(5, 5)",
    ];
    let names: Vec<&str> = names.into_iter().chain(more).collect();
    let mut accepted = 0;
    for column in ["s", "a", "x"] {
        for first in &names {
            for second in &names {
                for word in ["CAST", "TRY_CAST"] {
                    let text = format!("{word}({word}({column} AS {first}) AS {second})");
                    for row in 0..batch.num_rows() {
                        let one = batch.slice(row, 1);
                        let outcome = guarded(|| run(&text, &one).map(|found| found.len()));
                        let outcome = outcome.unwrap_or_else(|_| panic!("{text} row {row} panics"));
                        accepted += usize::from(outcome == Ok(1));
                        let allowed = [
                            Ok(1),
                            Err(ExprErrorKind::Type),
                            Err(ExprErrorKind::Evaluation),
                        ];
                        let outcome = outcome.map_err(|error| error.kind());
                        assert!(allowed.contains(&outcome), "{text} row {row}: {outcome:?}");
                    }
                }
            }
        }
    }
    assert!(accepted > 2000, "only {accepted} casts gave a value");
}

/// Text, integers and floats at and beyond the ends of their ranges.
fn extreme_values() -> RecordBatch {
    let texts = [
        "",
        "-",
        "1e400",
        "9223372036854775808",
        "262143-01-01",
        "NaN",
        "0x1",
        "1_0",
    ];
    let ints = vec![
        i64::MIN,
        i64::MAX,
        -1,
        0,
        1,
        253_402_300_800_000,
        i64::MIN + 1,
        300,
    ];
    let floats = vec![
        f64::NAN,
        f64::INFINITY,
        -0.0,
        f64::MIN,
        f64::MAX,
        1e19,
        -1e-300,
        0.5,
    ];
    batch_of([
        ("s", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef),
        ("a", Arc::new(Int64Array::from(ints))),
        ("x", Arc::new(Float64Array::from(floats))),
    ])
}

#[test]
fn what_it_prints_is_parsed_as_the_same_expression() {
    for text in [
        "a + b * 2 - -1",
        "NOT (a = 1 OR b = 2) AND s IS NOT NULL",
        "CASE a WHEN 1 THEN 'it''s' ELSE \"Mixed case\"::VARCHAR END",
        "s || 'x' || upper(s) LIKE 'a%'",
        "a NOT IN (1, 2) AND b NOT BETWEEN 1 AND 2",
        "substr(s, 1, 2) IS DISTINCT FROM trim(s)",
        "date_trunc('day', a) > 1.5e300",
    ] {
        let batch = batch();
        let parsed = Expr::parse(text).unwrap();
        let printed = parsed.to_string();
        let again = Expr::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
        assert_eq!(again.to_string(), printed);
        let value = |expr: &Expr| expr.bind(&batch.schema()).unwrap().evaluate(&batch).ok();
        assert_eq!(value(&parsed), value(&again), "{printed}");
    }
}
