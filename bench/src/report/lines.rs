//! Lines over two axes.

use std::fmt::Write;

use super::markup::escape;
use super::scale::{Kind, Scale, Tick, in_words, short};

/// Units of the drawing; the page scales it to the width that there is.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;

/// What a letter of an axis takes, at most.
pub(super) const LETTER: f64 = 6.4;
const Y_TICKS_MAX: usize = 6;
const X_TICKS_MAX: usize = 8;
/// Up to so many values of x are marked themselves, instead of round values.
const X_MARKED_MAX: usize = 8;

/// Colours and marks that there are; the first is ours.
pub(crate) const COLOURS: usize = 7;

#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it says, with its unit.
    pub(crate) label: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Below [`COLOURS`]; 0 is ours.
    pub(crate) colour: usize,
    pub(crate) stroke: Stroke,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The least and the greatest run.
    pub(crate) runs: Option<(f64, f64)>,
    /// Whether it is not to be trusted.
    pub(crate) is_noisy: bool,
    /// The name of the case.
    pub(crate) of: String,
}

impl Stroke {
    const fn class(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Dashed => "dashed",
            Self::Dotted => "dotted",
        }
    }
}

impl Lines {
    pub(crate) const SIZE: (f64, f64) = (WIDTH, HEIGHT);

    /// The same with another kind of vertical axis.
    pub(crate) fn with_y(mut self, kind: Kind) -> Self {
        self.y.kind = kind;
        self
    }

    /// What the drawing shows, in words, for who can't see it.
    pub(crate) fn description(&self) -> String {
        let mut text = format!("{} over {}.", self.y.label, self.x.label);
        for series in &self.series {
            let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
                continue;
            };
            let said = write!(
                text,
                " {}: {} at {}, {} at {}.",
                series.name,
                short(first.y),
                short(first.x),
                short(last.y),
                short(last.x)
            );
            said.expect("text takes text");
        }
        text
    }

    /// The inside of the drawing.
    pub(crate) fn draw(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Scale::over(self.x.kind, points().map(|point| point.x));
        let ys = points().flat_map(|point| {
            let (least, most) = point.runs.unwrap_or((point.y, point.y));
            [point.y, least, most]
        });
        let y = Scale::over(self.y.kind, ys);
        let place = |point: &Point| (across(&x, point.x), up(&y, point.y));
        let mut svg = self.axes(&x, &y);
        for series in &self.series {
            series.draw(&mut svg, place, &y);
        }
        svg
    }

    /// What the colours mean, as items of a list.
    pub(crate) fn legend(&self) -> String {
        let items = self.series.iter().map(|series| {
            let Series { colour, stroke, .. } = series;
            format!(
                "<li><svg class=\"key\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">\
                 <path class=\"line c{colour} {}\" d=\"M1 6H27\"/>{}</svg>{}</li>",
                stroke.class(),
                mark(*colour, (14.0, 6.0), false, "", ""),
                escape(&series.name)
            )
        });
        items.collect()
    }

    fn axes(&self, x: &Scale, y: &Scale) -> String {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut svg = String::new();
        for tick in y.ticks(Y_TICKS_MAX) {
            let at = up(y, tick.value);
            write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
                 <text class=\"tick y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                at + 3.8,
                escape(&tick.label)
            )
            .expect("text takes text");
        }
        for tick in self.x_ticks(x) {
            let at = across(x, tick.value);
            write!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>\
                 <text class=\"tick x\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 14.0,
                escape(&tick.label)
            )
            .expect("text takes text");
        }
        write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
             <text class=\"label\" x=\"4\" y=\"13\">{}</text>\
             <text class=\"label x\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            escape(&self.y.label),
            f64::midpoint(LEFT, right),
            HEIGHT - 6.0,
            escape(&self.x.label)
        )
        .expect("text takes text");
        svg
    }

    /// The values of x themselves where they are few, round ones otherwise; none whose label
    /// would run into that of another.
    fn x_ticks(&self, x: &Scale) -> Vec<Tick> {
        let mut values: Vec<f64> = Vec::new();
        for point in self.series.iter().flat_map(|series| &series.points) {
            if !values.contains(&point.x) {
                values.push(point.x);
            }
        }
        values.sort_by(f64::total_cmp);
        let ticks = match self.x.kind {
            Kind::Log if values.len() <= X_MARKED_MAX => {
                let marked = values.into_iter().filter(|value| self.x.kind.takes(*value));
                marked
                    .map(|value| Tick {
                        value,
                        label: count(value),
                    })
                    .collect()
            }
            _ => x.ticks(X_TICKS_MAX),
        };
        without_collisions(ticks, |tick| across(x, tick.value))
    }
}

/// The ticks whose labels have room: the first, the last, and of the others those that don't run
/// into one that is there already.
fn without_collisions(ticks: Vec<Tick>, at: impl Fn(&Tick) -> f64) -> Vec<Tick> {
    let last = ticks.len().saturating_sub(1);
    let by_rank = [0, last].into_iter().chain(1..last);
    let mut kept: Vec<usize> = Vec::new();
    for index in by_rank.take(ticks.len()) {
        let collides = |other: &usize| {
            let (a, b) = (&ticks[index], &ticks[*other]);
            let letters = a.label.chars().count() + b.label.chars().count();
            // Half of either label, and the width of a letter between them.
            (at(a) - at(b)).abs() < (letters as f64 / 2.0 + 1.0) * LETTER
        };
        if !kept.iter().any(collides) {
            kept.push(index);
        }
    }
    let indexed = ticks.into_iter().enumerate();
    let kept = indexed.filter(|(index, _)| kept.contains(index));
    kept.map(|(_, tick)| tick).collect()
}

impl Series {
    fn draw(&self, svg: &mut String, place: impl Fn(&Point) -> (f64, f64), y: &Scale) {
        let colour = self.colour;
        let said = write!(svg, "<g data-series=\"{}\">", escape(&self.name));
        said.expect("text takes text");
        let mut path = String::new();
        for (index, point) in self.points.iter().enumerate() {
            let (x, y) = place(point);
            let letter = if index == 0 { 'M' } else { 'L' };
            write!(path, "{letter}{x:.1} {y:.1}").expect("text takes text");
        }
        let stroke = self.stroke.class();
        write!(
            svg,
            "<path class=\"line c{colour} {stroke}\" d=\"{path}\"/>"
        )
        .expect("text takes text");
        for point in &self.points {
            let at = place(point);
            if let Some((least, most)) = point.runs.filter(|(least, most)| least < most) {
                let (from, to) = (up(y, least), up(y, most));
                let x = at.0;
                write!(
                    svg,
                    "<path class=\"whisker c{colour}\" d=\"M{x:.1} {from:.1}V{to:.1}\"/>"
                )
                .expect("text takes text");
            }
            let title = self.title(point);
            svg.push_str(&mark(colour, at, point.is_noisy, &point.of, &title));
        }
        svg.push_str("</g>");
    }

    fn title(&self, point: &Point) -> String {
        let figure = in_words(point.y, point.runs, point.is_noisy);
        format!("{} at {}: {figure}", self.name, count(point.x))
    }
}

/// A number of things: whole, and not rounded where it is short enough to be read.
fn count(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e5 {
        return format!("{value}");
    }
    short(value)
}

fn across(x: &Scale, value: f64) -> f64 {
    LEFT + x.place(value) * (WIDTH - RIGHT - LEFT)
}

fn up(y: &Scale, value: f64) -> f64 {
    let bottom = HEIGHT - BOTTOM;
    // What has no place on a logarithmic axis lies on its edge.
    bottom - y.place(value).clamp(0.0, 1.0) * (bottom - TOP)
}

/// A mark whose form tells the series too, for who can't tell the colours. It is hollow where
/// the figure is noisy.
pub(crate) fn mark(
    colour: usize,
    (x, y): (f64, f64),
    is_noisy: bool,
    of: &str,
    title: &str,
) -> String {
    let hollow = if is_noisy { " hollow" } else { "" };
    let form = match colour {
        0 => "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
        1 => "M-3.2-3.2H3.2V3.2H-3.2z",
        2 => "M0-4.2L4.2 3.2H-4.2z",
        3 => "M0-4.6L4.6 0L0 4.6L-4.6 0z",
        4 => "M0 4.2L4.2-3.2H-4.2z",
        5 => "M-3.4-1.2H-1.2V-3.4H1.2V-1.2H3.4V1.2H1.2V3.4H-1.2V1.2H-3.4z",
        _ => "M-4.4-2.2H4.4V2.2H-4.4z",
    };
    let of = match of {
        "" => String::new(),
        of => format!(" data-of=\"{}\"", escape(of)),
    };
    let title = match title {
        "" => String::new(),
        title => format!("<title>{}</title>", escape(title)),
    };
    format!(
        "<path class=\"mark c{colour}{hollow}\"{of} transform=\"translate({x:.1} {y:.1})\" \
         d=\"{form}\">{title}</path>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str) -> Lines {
        let point = |x, y| Point {
            x,
            y,
            runs: Some((y * 0.9, y * 1.1)),
            is_noisy: x > 2.0,
            of: format!("edge/{x}"),
        };
        Lines {
            x: Axis {
                label: "rows".to_owned(),
                kind: Kind::Log,
            },
            y: Axis {
                label: "bytes/s".to_owned(),
                kind: Kind::Log,
            },
            series: vec![Series {
                name: name.to_owned(),
                colour: 1,
                stroke: Stroke::Solid,
                points: vec![point(1.0, 10.0), point(1_024.0, 1e6)],
            }],
        }
    }

    #[test]
    fn every_point_has_a_mark_with_its_figure_in_words() {
        let svg = lines("raw tcp").draw();
        assert_eq!(svg.matches("class=\"mark").count(), 2);
        assert_eq!(svg.matches("class=\"whisker").count(), 2);
        assert_eq!(svg.matches("hollow").count(), 1, "the second is noisy");
        assert!(svg.contains("data-of=\"edge/1024\""), "{svg}");
        assert!(
            svg.contains("raw tcp at 1024: 1 M, 900 k to 1.1 M (noisy)"),
            "{svg}"
        );
    }

    #[test]
    fn both_axes_say_what_they_are() {
        let lines = lines("raw tcp");
        let svg = lines.draw();
        assert!(svg.contains(">rows<") && svg.contains(">bytes/s<"), "{svg}");
        assert!(svg.contains(">1024<"), "few values are marked themselves");
        assert!(
            lines
                .description()
                .contains("raw tcp: 10 at 1, 1 M at 1024")
        );
    }

    #[test]
    fn a_name_with_markup_is_shown_as_it_is() {
        let lines = lines("<b>&");
        assert!(!lines.draw().contains("<b>") && !lines.legend().contains("<b>"));
    }

    #[test]
    fn labels_of_an_axis_do_not_run_into_each_other() {
        let mut lines = lines("raw tcp");
        let point = lines.series[0].points[1].clone();
        let close = [1_000.0, 1_001.0, 1_024.0].map(|x| Point { x, ..point.clone() });
        lines.series[0].points = close.to_vec();
        let scale = Scale::over(Kind::Log, close.iter().map(|point| point.x));
        assert_eq!(lines.x_ticks(&scale).len(), 1);
        lines.series[0].points = [1_000.0, 200_000.0, 210_000.0]
            .map(|x| Point { x, ..point.clone() })
            .to_vec();
        let xs = lines.series[0].points.iter().map(|point| point.x);
        let ticks = lines.x_ticks(&Scale::over(Kind::Log, xs));
        let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, ["1000", "210 k"], "both ends are marked");
    }
}
