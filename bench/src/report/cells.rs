//! The rows of the tables.

use crate::case::{Case, Report};
use crate::table::short;

use super::markup::escape;
use super::names::family;

pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) is_number: bool,
}

const fn words(title: &'static str) -> Column {
    Column {
        title,
        is_number: false,
    }
}

const fn number(title: &'static str) -> Column {
    Column {
        title,
        is_number: true,
    }
}

pub(crate) const HEAD: [Column; 16] = [
    words("case"),
    words("baseline"),
    number("ours"),
    number("baseline's"),
    words("unit"),
    number("ratio"),
    words("trust"),
    number("ours, least"),
    number("ours, most"),
    number("runs"),
    number("CPU s/GB"),
    number("baseline's"),
    number("copied"),
    words("placement"),
    words("noise"),
    words("again"),
];

/// How many times as good as the baseline ours is, whether more or less is better.
pub(crate) fn advantage(case: &Case) -> f64 {
    match (case.ratio, case.latency_ratio) {
        (Some(ratio), _) => ratio,
        (None, Some(ratio)) => 1.0 / ratio,
        (None, None) => f64::NAN,
    }
}

/// The cases of each family, in the order in which families come first.
pub(crate) fn by_family(report: &Report) -> Vec<(&str, Vec<&Case>)> {
    let mut families: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in &report.cases {
        let name = family(&case.name);
        match families.iter_mut().find(|(found, _)| *found == name) {
            Some((_, cases)) => cases.push(case),
            None => families.push((name, vec![case])),
        }
    }
    families
}

/// A row of the page.
pub(crate) fn html_row(case: &Case) -> String {
    let cells = [
        text(&case.name),
        text(&case.baseline_name),
        figure(Some(case.ours)),
        figure(Some(case.baseline)),
        text(&case.unit),
        ratio(case),
        trust(case),
        figure(Some(case.min)),
        figure(Some(case.max)),
        figure(Some(case.runs as f64)),
        figure(case.cpu_s_per_gb),
        figure(case.baseline_cpu_s_per_gb),
        figure(case.copied_share),
        placement(case),
        format!(
            "<td class=\"words\">{}</td>",
            escape(case.noisy.as_deref().unwrap_or_default())
        ),
        format!("<td><code>{}</code></td>", escape(&case.rerun)),
    ];
    format!(
        "<tr data-name=\"{}\" data-baseline=\"{}\">{}</tr>",
        escape(&case.name),
        escape(&case.baseline_name),
        cells.concat()
    )
}

fn text(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

fn figure(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "<td class=\"number\" data-value=\"\"></td>".to_owned();
    };
    let shown = match value.fract() == 0.0 && value.abs() < 1e4 {
        true => format!("{value}"),
        false => short(value),
    };
    format!("<td class=\"number\" data-value=\"{value}\">{shown}</td>")
}

fn ratio(case: &Case) -> String {
    let Some(ratio) = case.ratio.or(case.latency_ratio) else {
        return figure(None);
    };
    // What is shown as 1.00 is neither.
    let class = match advantage(case) {
        1.005.. => "better",
        0.995.. => "even",
        _ => "worse",
    };
    let less = match case.latency_ratio {
        Some(_) => " <span class=\"quiet\">less is better</span>",
        None => "",
    };
    format!(
        "<td class=\"number\" data-value=\"{ratio}\"><span class=\"{class}\">{}</span>{less}</td>",
        short(ratio)
    )
}

fn placement(case: &Case) -> String {
    let words = match (case.placement, case.line_ns) {
        (Some(placement), Some(line)) => format!("{}, {:.0} ns", placement.name(), line.before),
        (Some(placement), None) => placement.name().to_owned(),
        (None, _) => String::new(),
    };
    text(&words)
}

fn trust(case: &Case) -> String {
    match &case.noisy {
        None => "<td>ok</td>".to_owned(),
        Some(why) => format!(
            "<td><span class=\"noisy\" title=\"{}\">noisy</span></td>",
            escape(why)
        ),
    }
}
