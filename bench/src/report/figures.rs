//! Which figures a report has: found by the names of its cases alone.
//!
//! All cases with the same path before a number and the same baseline are one line.

use crate::case::{Case, Report};

use super::bars::Bars;
use super::dots::{Dot, Dots};
use super::lines::Lines;
use super::names::{family, path_and_x, without_percentile, x_label};
use super::scale::Kind;
use super::section::Section;
use super::series::{self, Cost};

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) section: Section,
    pub(crate) title: String,
    pub(crate) plot: Plot,
}

#[derive(Clone, Debug)]
pub(crate) enum Plot {
    Lines(Lines),
    Bars(Bars),
    Dots(Dots),
}

impl Plot {
    pub(crate) fn size(&self) -> (f64, f64) {
        match self {
            Self::Lines(_) => Lines::SIZE,
            Self::Bars(bars) => bars.size(),
            Self::Dots(dots) => dots.size(),
        }
    }

    pub(crate) fn description(&self) -> String {
        match self {
            Self::Lines(lines) => lines.description(),
            Self::Bars(bars) => bars.description(),
            Self::Dots(dots) => dots.description(),
        }
    }

    pub(crate) fn draw(&self) -> String {
        match self {
            Self::Lines(lines) => lines.draw(),
            Self::Bars(bars) => bars.draw(),
            Self::Dots(dots) => dots.draw(),
        }
    }

    /// What the colours mean, as items of a list; empty where they need no words.
    pub(crate) fn legend(&self) -> String {
        match self {
            Self::Lines(lines) => lines.legend(),
            Self::Bars(_) | Self::Dots(_) => String::new(),
        }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Lines(_) => "lines",
            Self::Bars(_) => "bars",
            Self::Dots(_) => "dots",
        }
    }
}

/// All figures, in the order of the sections.
pub(crate) fn of(report: &Report) -> Vec<Figure> {
    let cases: Vec<&Case> = report.cases.iter().collect();
    let mut figures = overview(&cases);
    let (lines, single) = in_lines(&cases);
    for group in &lines {
        figures.extend(along_sizes(group));
    }
    figures.extend(distributions(&cases));
    figures.extend(in_bars(&single));
    for section in [&lines[..], &[single]].concat() {
        figures.extend(cpu(&section));
    }
    let place = |figure: &Figure| Section::ALL.iter().position(|all| *all == figure.section);
    figures.sort_by_key(place);
    figures
}

/// Cases that lie along lines, in groups of one path and unit, and the others. One value of x
/// alone makes no line.
fn in_lines<'a>(cases: &[&'a Case]) -> (Vec<Vec<&'a Case>>, Vec<&'a Case>) {
    let key =
        |case: &Case| path_and_x(&case.name).map(|(path, _)| (path.to_owned(), case.unit.clone()));
    let (numbered, mut single): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| key(case).is_some());
    let (lines, short): (Vec<_>, Vec<_>) = grouped(&numbered, key)
        .into_iter()
        .partition(|group| group.iter().any(|case| case.name != group[0].name));
    single.extend(short.into_iter().flatten());
    (lines, single)
}

fn along_sizes(group: &[&Case]) -> Option<Figure> {
    let (path, _) = path_and_x(&group[0].name)?;
    let section = Section::of(path);
    let plot = match section {
        Section::Load => series::over_load(group),
        // How much it is, and not how much more: from 0 on.
        Section::Memory => series::over_x(group, x_label(path), Cost::None).with_y(Kind::Linear),
        _ => series::over_x(group, x_label(path), Cost::None),
    };
    Some(Figure {
        section,
        title: path.to_owned(),
        plot: Plot::Lines(plot),
    })
}

/// One figure for all percentiles of the same: those of the first case of each baseline.
fn distributions(cases: &[&Case]) -> Vec<Figure> {
    let with: Vec<&Case> = cases
        .iter()
        .copied()
        .filter(|case| !case.percentiles.is_empty() && Section::of(&case.name) != Section::Load)
        .collect();
    let groups = grouped(&with, |case| {
        Some(without_percentile(&case.name).to_owned())
    });
    let figures = groups.iter().map(|group| Figure {
        section: Section::Distributions,
        title: without_percentile(&group[0].name).to_owned(),
        plot: Plot::Lines(series::distribution(group)),
    });
    figures.collect()
}

/// What lies along no line and has no distribution, as bars.
fn in_bars(single: &[&Case]) -> Vec<Figure> {
    let without: Vec<&Case> = single
        .iter()
        .copied()
        .filter(|case| case.percentiles.is_empty())
        .collect();
    let groups = grouped(&without, |case| {
        Some((family(&case.name).to_owned(), case.unit.clone()))
    });
    let figures = groups.iter().map(|group| {
        let family = family(&group[0].name);
        let section = match Section::of(family) {
            // Edges without a size beside them are rates like others.
            Section::Sizes => Section::Others,
            section => section,
        };
        let less = group[0].latency_ratio.is_some();
        let direction = if less { ", less is better" } else { "" };
        Figure {
            section,
            title: format!("{family}, {}{direction}", group[0].unit),
            plot: Plot::Bars(series::bars(group, family, Cost::None)),
        }
    });
    figures.collect()
}

fn cpu(group: &[&Case]) -> Vec<Figure> {
    let with: Vec<&Case> = group
        .iter()
        .copied()
        .filter(|case| case.cpu_s_per_gb.is_some())
        .collect();
    let (lines, single) = in_lines(&with);
    let mut figures = Vec::new();
    for line in lines {
        let Some((path, _)) = path_and_x(&line[0].name) else {
            continue;
        };
        figures.push(Figure {
            section: Section::Cpu,
            title: path.to_owned(),
            plot: Plot::Lines(series::over_x(&line, x_label(path), Cost::Cpu)),
        });
    }
    for group in grouped(&single, |case| Some(family(&case.name).to_owned())) {
        let family = family(&group[0].name);
        figures.push(Figure {
            section: Section::Cpu,
            title: family.to_owned(),
            plot: Plot::Bars(series::bars(&group, family, Cost::Cpu)),
        });
    }
    figures
}

fn overview(cases: &[&Case]) -> Vec<Figure> {
    let groups = grouped(cases, |case| Some(family(&case.name).to_owned()));
    let figures = groups.iter().map(|group| {
        let family = family(&group[0].name);
        Figure {
            section: Section::Overview,
            title: family.to_owned(),
            plot: Plot::Dots(Dots {
                rows: group.iter().map(|case| dot(case, family)).collect(),
            }),
        }
    });
    figures.collect()
}

fn dot(case: &Case, family: &str) -> Dot {
    let less = case.latency_ratio.is_some();
    let good = |ratio: f64| if less { 1.0 / ratio } else { ratio };
    let ratio = case.ratio.or(case.latency_ratio).unwrap_or(f64::NAN);
    let ratios = case.ratios().into_iter().map(good);
    let runs = ratios.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), run| {
        (least.min(run), most.max(run))
    });
    Dot {
        of: case.name.clone(),
        baseline_name: case.baseline_name.clone(),
        label: series::within(&case.name, family).to_owned(),
        times: good(ratio),
        runs: (runs.0.is_finite() && runs.1.is_finite()).then_some(runs),
        is_noisy: case.noisy.is_some(),
    }
}

/// The cases in groups of one key, in the order in which the keys come first.
fn grouped<'a, K: PartialEq>(
    cases: &[&'a Case],
    key: impl Fn(&Case) -> Option<K>,
) -> Vec<Vec<&'a Case>> {
    let mut groups: Vec<(K, Vec<&'a Case>)> = Vec::new();
    for case in cases {
        let Some(key) = key(case) else { continue };
        match groups.iter_mut().find(|(found, _)| *found == key) {
            Some((_, group)) => group.push(case),
            None => groups.push((key, vec![case])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Percentile;

    fn case(name: &str, baseline_name: &str) -> Case {
        let case = Case::against_limit(name, "bytes/s", &[1.0, 2.0, 3.0], 4.0);
        Case {
            baseline_name: baseline_name.to_owned(),
            ratio: case.latency_ratio,
            latency_ratio: None,
            ..case
        }
    }

    fn titles(figures: &[Figure]) -> Vec<(Section, &str, &str)> {
        figures
            .iter()
            .map(|figure| (figure.section, figure.title.as_str(), figure.plot.kind()))
            .collect()
    }

    #[test]
    fn cases_that_end_in_numbers_are_a_figure_of_lines() {
        let report = Report {
            cases: vec![
                case("edge/socket/int64/1", "raw tcp"),
                case("edge/socket/int64/1024", "raw tcp"),
                case("edge/socket/int64/1024", "arrow-flight"),
                case("edge/socket-v1/int64/1024", "raw tcp"),
            ],
            ..Report::default()
        };
        let figures = of(&report);
        let expected = [
            (Section::Overview, "edge/socket", "dots"),
            (Section::Overview, "edge/socket-v1", "dots"),
            (Section::Sizes, "edge/socket/int64", "lines"),
            (Section::Others, "edge/socket-v1, bytes/s", "bars"),
        ];
        assert_eq!(titles(&figures), expected);
        let Plot::Lines(lines) = &figures[2].plot else {
            unreachable!("it says lines");
        };
        let names: Vec<&str> = lines.series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["Ringway", "raw tcp", "arrow-flight"]);
        assert_eq!(lines.series[0].points.len(), 2, "ours is one line");
    }

    #[test]
    fn percentiles_of_the_same_are_one_figure() {
        let mut cases = vec![
            case("latency/socket/row/spin/p50", "raw tcp"),
            case("latency/socket/row/spin/p99", "raw tcp"),
        ];
        for case in &mut cases {
            case.percentiles = vec![Percentile {
                percentile: 50.0,
                ours: 3.0,
                baseline: Some(2.0),
            }];
        }
        let figures = of(&Report {
            cases,
            ..Report::default()
        });
        let expected = [
            (Section::Overview, "latency/socket", "dots"),
            (Section::Distributions, "latency/socket/row/spin", "lines"),
        ];
        assert_eq!(titles(&figures), expected);
    }

    #[test]
    fn every_case_is_in_some_figure_and_in_the_overview() {
        let names = [
            "ring/u64/single",
            "scale/socket/edges/1",
            "scale/socket/edges/10",
            "scale/socket/shuffle/2x2",
            "memory/local/edges/100",
            "load/shared/spin/1000",
            "load/shared/spin/100000",
            "peers/process/u64",
            "idle/edges",
            "a name that nobody has thought of",
        ];
        let cases: Vec<Case> = names.iter().map(|name| case(name, "other")).collect();
        let figures = of(&Report {
            cases,
            ..Report::default()
        });
        for name in names {
            let of = format!("data-of=\"{name}\"");
            let drawn = |overview: bool| {
                let wanted = figures
                    .iter()
                    .filter(|figure| (figure.section == Section::Overview) == overview);
                wanted
                    .map(|figure| figure.plot.draw())
                    .any(|svg| svg.contains(&of))
            };
            assert!(drawn(true) && drawn(false), "{name}");
        }
    }
}
