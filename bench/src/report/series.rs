//! From cases to what is drawn: ours and the baselines, each with its figures.

use crate::case::{Case, median};

use super::bars::{Bar, Bars, Group};
use super::lines::{Axis, COLOURS, Lines, Point, Series, Stroke};
use super::names::path_and_x;
use super::scale::Kind;

/// The name of ours.
const OURS: &str = "Ringway";

/// Which figure of a case is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// The one that it is about.
    None,
    /// CPU seconds for 10^9 bytes.
    Cpu,
}

/// A figure, and the least and the greatest run where there are runs.
#[derive(Clone, Copy, Debug)]
struct Value {
    value: f64,
    runs: Option<(f64, f64)>,
}

impl Cost {
    fn unit(self, case: &Case) -> String {
        match self {
            Self::None => case.unit.clone(),
            Self::Cpu => "CPU s/GB".to_owned(),
        }
    }

    fn ours(self, case: &Case) -> Option<Value> {
        match self {
            Self::None => Some(Value {
                value: case.ours,
                runs: Some((case.min, case.max)),
            }),
            Self::Cpu => Some(Value {
                value: case.cpu_s_per_gb?,
                runs: None,
            }),
        }
    }

    fn baseline(self, case: &Case) -> Option<Value> {
        match self {
            Self::None => Some(Value {
                value: case.baseline,
                runs: bounds(&case.runs_baseline),
            }),
            Self::Cpu => Some(Value {
                value: case.baseline_cpu_s_per_gb?,
                runs: None,
            }),
        }
    }
}

/// Ours and each baseline over the numbers at the end of the names.
pub(crate) fn over_x(group: &[&Case], x_label: &str, cost: Cost) -> Lines {
    let x = |case: &Case| path_and_x(&case.name).map_or(f64::NAN, |(_, x)| x);
    let mut ours: Vec<Point> = Vec::new();
    for cases in by_name(group) {
        let Some(value) = ours_of_all(&cases, cost) else {
            continue;
        };
        ours.push(Point {
            x: x(cases[0]),
            y: value.value,
            runs: value.runs,
            is_noisy: cases.iter().all(|case| case.noisy.is_some()),
            of: cases[0].name.clone(),
        });
    }
    let mut series = vec![line(OURS, 0, ours)];
    for (index, name) in baselines(group).into_iter().enumerate() {
        let of_it = group.iter().filter(|case| case.baseline_name == name);
        let points = of_it.filter_map(|case| {
            let value = cost.baseline(case)?;
            Some(Point {
                x: x(case),
                y: value.value,
                runs: value.runs,
                is_noisy: case.noisy.is_some(),
                of: case.name.clone(),
            })
        });
        let stroke = match name {
            "limit" => Stroke::Dashed,
            _ => Stroke::Solid,
        };
        series.push(Series {
            stroke,
            ..line(name, colour_of(index), points.collect())
        });
    }
    Lines {
        x: axis(x_label, Kind::Log),
        y: axis(&cost.unit(group[0]), Kind::Log),
        series: drawn(series),
    }
}

/// Percentiles of ours and each baseline over the offered load.
pub(crate) fn over_load(group: &[&Case]) -> Lines {
    const SHOWN: [(f64, &str, Stroke); 3] = [
        (50.0, "half", Stroke::Solid),
        (99.0, "99 %", Stroke::Dashed),
        (99.9, "99.9 %", Stroke::Dotted),
    ];
    let mut series = Vec::new();
    for (percentile, share, stroke) in SHOWN {
        let is_median = percentile == 50.0;
        let firsts = by_name(group).into_iter().map(|cases| cases[0]);
        let ours = firsts.filter_map(|case| {
            let at = at(case, percentile).map(|point| point.ours);
            load_point(case, at.or(is_median.then_some(case.ours))?)
        });
        series.push(Series {
            stroke,
            ..line(&format!("{OURS}, {share}"), 0, ours.collect())
        });
        for (index, name) in baselines(group).into_iter().enumerate() {
            let of_it = group.iter().filter(|case| case.baseline_name == name);
            let points = of_it.filter_map(|case| {
                let at = at(case, percentile).and_then(|point| point.baseline);
                load_point(case, at.or(is_median.then_some(case.baseline))?)
            });
            series.push(Series {
                stroke,
                ..line(
                    &format!("{name}, {share}"),
                    colour_of(index),
                    points.collect(),
                )
            });
        }
    }
    Lines {
        x: axis("offered, messages/s", Kind::Log),
        y: axis(&group[0].unit, Kind::Log),
        series: drawn(series),
    }
}

/// The whole distribution of ours and of each baseline.
pub(crate) fn distribution(group: &[&Case]) -> Lines {
    let first = group[0];
    let points = |case: &Case, of: fn(&crate::case::Percentile) -> Option<f64>| {
        let points = case.percentiles.iter().filter_map(|point| {
            Some(Point {
                x: point.percentile,
                y: of(point)?,
                runs: None,
                is_noisy: case.noisy.is_some(),
                of: case.name.clone(),
            })
        });
        points.collect::<Vec<Point>>()
    };
    let mut series = vec![line(OURS, 0, points(first, |point| Some(point.ours)))];
    for (index, name) in baselines(group).into_iter().enumerate() {
        let case = group.iter().find(|case| case.baseline_name == name);
        let points = case.map(|case| points(case, |point| point.baseline));
        series.push(line(name, colour_of(index), points.unwrap_or_default()));
    }
    Lines {
        x: axis("percentile", Kind::Nines),
        y: axis("us", Kind::Log),
        series: drawn(series),
    }
}

/// A group of bars for each case: ours, and each baseline.
pub(crate) fn bars(group: &[&Case], family: &str, cost: Cost) -> Bars {
    let groups = by_name(group).into_iter().filter_map(|cases| {
        let ours = ours_of_all(&cases, cost)?;
        let mut bars = vec![Bar {
            name: OURS.to_owned(),
            value: ours.value,
            runs: ours.runs,
            is_ours: true,
            is_noisy: cases.iter().all(|case| case.noisy.is_some()),
        }];
        bars.extend(cases.iter().filter_map(|case| {
            let value = cost.baseline(case)?;
            Some(Bar {
                name: case.baseline_name.clone(),
                value: value.value,
                runs: value.runs,
                is_ours: false,
                is_noisy: case.noisy.is_some(),
            })
        }));
        Some(Group {
            label: within(&cases[0].name, family).to_owned(),
            of: cases[0].name.clone(),
            bars,
        })
    });
    Bars {
        unit: cost.unit(group[0]),
        groups: groups.collect(),
    }
}

/// What is left of a name within its family.
pub(crate) fn within<'a>(name: &'a str, family: &str) -> &'a str {
    let rest = name
        .strip_prefix(family)
        .map(|rest| rest.trim_start_matches('/'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Ours was measured beside each baseline: the median of these, and the bounds of all.
fn ours_of_all(cases: &[&Case], cost: Cost) -> Option<Value> {
    let values: Vec<Value> = cases.iter().filter_map(|case| cost.ours(case)).collect();
    let all: Vec<f64> = values.iter().map(|value| value.value).collect();
    let bounds = values.iter().filter_map(|value| value.runs);
    let bounds = bounds.reduce(|(least, most), runs| (least.min(runs.0), most.max(runs.1)));
    (!all.is_empty()).then(|| Value {
        value: median(&all),
        runs: bounds,
    })
}

fn bounds(runs: &[f64]) -> Option<(f64, f64)> {
    let pairs = runs.iter().map(|run| (*run, *run));
    pairs.reduce(|(least, most), (run, _)| (least.min(run), most.max(run)))
}

/// The cases of each name, which differ by what they are compared with.
fn by_name<'a>(group: &[&'a Case]) -> Vec<Vec<&'a Case>> {
    let mut names: Vec<Vec<&'a Case>> = Vec::new();
    for case in group {
        match names.iter_mut().find(|cases| cases[0].name == case.name) {
            Some(cases) => cases.push(case),
            None => names.push(vec![case]),
        }
    }
    names
}

fn baselines<'a>(group: &[&'a Case]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for case in group {
        if !names.contains(&case.baseline_name.as_str()) {
            names.push(&case.baseline_name);
        }
    }
    names
}

fn at(case: &Case, percentile: f64) -> Option<&crate::case::Percentile> {
    let mut points = case.percentiles.iter();
    points.find(|point| point.percentile.to_bits() == percentile.to_bits())
}

fn load_point(case: &Case, y: f64) -> Option<Point> {
    let (_, x) = path_and_x(&case.name)?;
    Some(Point {
        x,
        y,
        runs: None,
        is_noisy: case.noisy.is_some(),
        of: case.name.clone(),
    })
}

fn axis(label: &str, kind: Kind) -> Axis {
    Axis {
        label: label.to_owned(),
        kind,
    }
}

fn line(name: &str, colour: usize, mut points: Vec<Point>) -> Series {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series {
        name: name.to_owned(),
        colour,
        stroke: Stroke::Solid,
        points,
    }
}

/// The colour of a baseline; with more of them than colours, some have the same.
fn colour_of(index: usize) -> usize {
    1 + index % (COLOURS - 1)
}

/// Those that have a point.
fn drawn(series: Vec<Series>) -> Vec<Series> {
    let with = series
        .into_iter()
        .filter(|series| !series.points.is_empty());
    with.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, baseline_name: &str, ours: f64) -> Case {
        let case = Case::against_limit(name, "bytes/s", &[ours - 1.0, ours, ours + 1.0], 4.0);
        Case {
            baseline_name: baseline_name.to_owned(),
            ..case
        }
    }

    #[test]
    fn ours_beside_several_baselines_is_one_figure_with_the_bounds_of_all() {
        let (a, b) = (case("edge/1", "a", 10.0), case("edge/1", "b", 20.0));
        let bars = bars(&[&a, &b], "edge", Cost::None);
        let [group] = &bars.groups[..] else {
            unreachable!("one name is one group: {bars:?}");
        };
        let names: Vec<&str> = group.bars.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, [OURS, "a", "b"]);
        assert_eq!(group.bars[0].value, 15.0);
        assert_eq!(group.bars[0].runs, Some((9.0, 21.0)));
        assert_eq!(group.label, "1");
    }

    #[test]
    fn points_are_in_the_order_of_their_size_whatever_that_of_the_cases() {
        let (large, small) = (case("edge/1024", "a", 9.0), case("edge/1", "a", 3.0));
        let lines = over_x(&[&large, &small], "rows", Cost::None);
        for series in &lines.series {
            let xs: Vec<f64> = series.points.iter().map(|point| point.x).collect();
            assert_eq!(xs, [1.0, 1024.0]);
        }
    }

    #[test]
    fn what_no_case_says_is_no_line() {
        let one = case("edge/1", "a", 3.0);
        let lines = over_x(&[&one], "rows", Cost::Cpu);
        assert!(lines.series.is_empty(), "no case says CPU seconds");
    }
}
