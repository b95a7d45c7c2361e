//! The report as one HTML page that needs nothing beside itself.

use std::fmt::Write;

use crate::case::Report;

use super::cells;
use super::figures::{self, Figure};
use super::markup::{escape, slug};
use super::section::Section;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be loaded from anywhere, whatever a name in the results says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:";

const METHOD: &str = "Every case is a pair: ours and a baseline do the same work on the same two CPUs, and \
     take turns, so that a machine that drifts drifts for both. Each run of either is checked: a \
     row that is lost, doubled or out of order fails the measurement. Figures are medians over \
     the runs, and only runs at one placement of the two CPUs are compared. What is claimed are \
     the ratios; the absolute figures hold for this machine alone. A case is marked noisy, with \
     the reason, where others took CPU time, the hypervisor stole some, the runs lie far apart or \
     the CPUs moved: such a figure is not to be quoted. docs/PERFORMANCE.md of the sources \
     describes the method, every case and every baseline.";

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let figures = figures::of(report);
    let mut html = head(report);
    html.push_str(&navigation(report, &figures));
    html.push_str(&missing(report));
    for section in Section::ALL {
        html.push_str(&plots(section, &figures));
    }
    html.push_str(&tables(report));
    html.push_str(&machine(report));
    html.push_str(&method(report));
    writeln!(html, "</main><script>{SCRIPT}</script></body></html>").expect("text takes text");
    html
}

fn head(report: &Report) -> String {
    let when = match report.date.as_str() {
        "" => "at an unknown time".to_owned(),
        date => format!("on <time datetime=\"{0}\">{0}</time>", escape(date)),
    };
    let version = match report.version.as_str() {
        "" => "an unknown version".to_owned(),
        version => escape(version),
    };
    let host = report.host.as_ref().map_or_else(String::new, |host| {
        format!(
            " Measured on {}, kernel {}, CPUs {}.",
            escape(&host.processor),
            escape(&host.kernel),
            escape(&host.cpus)
        )
    });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <link rel=\"icon\" href=\"data:,\"><title>Ringway beside the alternatives</title>\
         <style>{STYLE}</style></head><body><header><h1>Ringway beside what one would pick instead</h1>\
         <p class=\"quiet\">Version {version}, {when}.{host}</p>{}</header>",
        tiles(report)
    )
}

fn tiles(report: &Report) -> String {
    let cases = report.cases.len();
    let noisy = report
        .cases
        .iter()
        .filter(|case| case.noisy.is_some())
        .count();
    let better = report
        .cases
        .iter()
        .filter(|case| cells::advantage(case) >= 1.0)
        .count();
    let tiles = [
        (cases, "cases", false),
        (better, "at least as good", false),
        (noisy, "noisy", false),
        (report.left_out.len(), "left out", false),
        (report.failed.len(), "failed", !report.failed.is_empty()),
    ];
    let tiles = tiles.map(|(count, what, is_bad)| {
        let class = if is_bad { " class=\"bad\"" } else { "" };
        format!("<li{class}><b>{count}</b>{what}</li>")
    });
    format!("<ul class=\"tiles\">{}</ul>", tiles.concat())
}

fn navigation(report: &Report, figures: &[Figure]) -> String {
    let mut links: Vec<&str> = Vec::new();
    if has_missing(report) {
        links.push(MISSING);
    }
    let sections = Section::ALL.into_iter();
    let drawn = sections.filter(|section| figures.iter().any(|figure| figure.section == *section));
    links.extend(drawn.map(Section::title));
    links.extend([TABLES, MACHINE, METHOD_TITLE]);
    let links = links.iter().map(|title| {
        let (to, title) = (slug(title), escape(title));
        format!("<li><a href=\"#{to}\">{title}</a></li>")
    });
    let links: String = links.collect();
    format!("<nav aria-label=\"Sections\"><ul>{links}</ul></nav><main>")
}

const MISSING: &str = "Left out and failed";
const TABLES: &str = "All cases";
const MACHINE: &str = "The machine";
const METHOD_TITLE: &str = "Method, and how to run it again";

fn heading(title: &str) -> String {
    format!("<h2 id=\"{}\">{}</h2>", slug(title), escape(title))
}

fn has_missing(report: &Report) -> bool {
    !report.left_out.is_empty() || !report.failed.is_empty()
}

fn missing(report: &Report) -> String {
    if !has_missing(report) {
        return String::new();
    }
    let failed = report.failed.iter().map(|failed| {
        format!(
            "<tr class=\"failed\"><td class=\"worse\">failed</td><td class=\"words\">{}</td>\
             <td class=\"words\">{}</td><td><code>{}</code></td></tr>",
            escape(&failed.what()),
            escape(&failed.why),
            escape(&failed.rerun)
        )
    });
    let left_out = report.left_out.iter().map(|left_out| {
        format!(
            "<tr class=\"left-out\"><td>left out</td><td class=\"words\">{} against {}</td>\
             <td class=\"words\">{}</td><td></td></tr>",
            escape(&left_out.name),
            escape(&left_out.baseline_name),
            escape(&left_out.why)
        )
    });
    let rows: String = failed.chain(left_out).collect();
    format!(
        "{}{}<table><thead><tr><th></th><th>what</th><th>why</th><th>again</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>",
        heading(MISSING),
        scrolled(MISSING)
    )
}

/// Opens what can be scrolled sideways, also by keys.
fn scrolled(what: &str) -> String {
    format!(
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">",
        escape(what)
    )
}

fn plots(section: Section, figures: &[Figure]) -> String {
    let of_it = figures.iter().enumerate();
    let of_it = of_it.filter(|(_, figure)| figure.section == section);
    let drawn: String = of_it.map(|(index, figure)| plot(index, figure)).collect();
    if drawn.is_empty() {
        return String::new();
    }
    // Plots of unlike heights are stacked in columns, so that no gaps are between them.
    let class = match section.is_uneven() {
        true => "plots stacked",
        false => "plots",
    };
    format!(
        "{}<p>{}</p><div class=\"{class}\">{drawn}</div>",
        heading(section.title()),
        escape(section.caption())
    )
}

fn plot(index: usize, figure: &Figure) -> String {
    let (width, height) = figure.plot.size();
    let (title, kind) = (escape(&figure.title), figure.plot.kind());
    let legend = match figure.plot.legend() {
        empty if empty.is_empty() => empty,
        items => format!("<ul class=\"legend\">{items}</ul>"),
    };
    format!(
        "<figure data-kind=\"{kind}\"><figcaption>{title}</figcaption>{legend}\
         <svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"t{index} d{index}\"><title id=\"t{index}\">{title}</title>\
         <desc id=\"d{index}\">{}</desc>{}</svg></figure>",
        escape(&figure.plot.description()),
        figure.plot.draw()
    )
}

fn tables(report: &Report) -> String {
    let mut html = heading(TABLES);
    html.push_str(
        "<p>A click on the head of a column sorts by it. The ratio is ours divided by the baseline; where \
         less is better, it says so. The last column measures the row again, and nothing else.</p>",
    );
    for (family, cases) in cells::by_family(report) {
        let head: String = cells::HEAD.iter().map(head_cell).collect();
        let rows: String = cases.into_iter().map(cells::html_row).collect();
        write!(
            html,
            "<h3>{}</h3>{}<table class=\"cases\"><thead><tr>{head}</tr></thead>\
             <tbody>{rows}</tbody></table></div>",
            escape(family),
            scrolled(family)
        )
        .expect("text takes text");
    }
    html
}

fn head_cell(column: &cells::Column) -> String {
    let class = if column.is_number {
        " class=\"number\""
    } else {
        ""
    };
    format!(
        "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>",
        escape(column.title)
    )
}

fn machine(report: &Report) -> String {
    let Some(host) = &report.host else {
        return format!("{}<p>These results don't say.</p>", heading(MACHINE));
    };
    let rows = host.rows().into_iter().map(|(name, value)| {
        let (name, value) = (escape(name), escape(&value));
        format!("<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>")
    });
    let rows: String = rows.collect();
    format!(
        "{}<div class=\"wide\"><table class=\"facts\"><tbody>{rows}</tbody></table></div>",
        heading(MACHINE)
    )
}

fn method(report: &Report) -> String {
    let command = match report.command.as_str() {
        "" => "ringway-bench report --out DIR",
        command => command,
    };
    let lines: Vec<String> = command.split("; ").map(escape).collect();
    format!(
        "{}<p>{METHOD}</p><p>All of it again:</p>\
         <pre>cargo build --release -p ringway -p ringway-bench\n{}</pre>",
        heading(METHOD_TITLE),
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Failed, LeftOut};

    fn report() -> Report {
        let case = |name: &str| {
            let case = Case::against_limit(name, "bytes/s", &[1.0, 2.0], 4.0);
            Case {
                baseline_name: "<raw>".to_owned(),
                noisy: Some("others took 9 % of the CPUs".to_owned()),
                rerun: "ringway-bench edge --against '<raw>'".to_owned(),
                ..case
            }
        };
        Report {
            cases: vec![case("edge/socket/int64/1"), case("edge/socket/int64/256")],
            left_out: vec![LeftOut {
                name: "peers/host/u64".to_owned(),
                baseline_name: "aeron".to_owned(),
                why: "it needs CMake > 3.30".to_owned(),
            }],
            failed: vec![Failed {
                name: "job/q0".to_owned(),
                baseline_name: "single-threaded loop".to_owned(),
                why: "a row & more were lost".to_owned(),
                rerun: "ringway-bench job --only job/q0".to_owned(),
            }],
            ..Report::default()
        }
    }

    #[test]
    fn every_case_has_a_row_with_its_noise_and_how_to_measure_it_again() {
        let html = page(&report());
        for name in ["edge/socket/int64/1", "edge/socket/int64/256"] {
            let row = format!("<tr data-name=\"{name}\" data-baseline=\"&lt;raw&gt;\">");
            assert_eq!(html.matches(&row).count(), 1, "{name}");
        }
        assert_eq!(
            html.matches("<td class=\"words\">others took 9 %").count(),
            2
        );
        assert_eq!(html.matches("--against &#39;&lt;raw&gt;&#39;").count(), 2);
    }

    #[test]
    fn what_is_missing_is_shown_with_its_reason() {
        let html = page(&report());
        assert!(html.contains("it needs CMake &gt; 3.30"));
        assert!(html.contains("a row &amp; more were lost"));
        assert!(html.contains("job/q0 against single-threaded loop"));
        assert!(!page(&Report::default()).contains(MISSING));
    }

    #[test]
    fn nothing_of_the_results_becomes_markup_and_nothing_is_loaded() {
        let html = page(&report());
        assert!(!html.contains("<raw>"));
        for from in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(from), "{from}");
        }
    }

    #[test]
    fn every_plot_has_a_title_and_words_for_who_cannot_see_it() {
        let html = page(&report());
        let plots = html.matches("<svg class=\"plot\"").count();
        assert!(plots >= 2, "an overview and lines");
        assert_eq!(html.matches("<title id=").count(), plots);
        assert_eq!(html.matches("<desc id=").count(), plots);
    }

    #[test]
    fn every_link_leads_to_a_section() {
        let html = page(&report());
        for link in html.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap();
            assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}
