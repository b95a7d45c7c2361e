//! How many times as good as each baseline ours is: a dot for each case, with a line at 1.

use std::fmt::Write;

use super::lines::{LETTER, mark};
use super::markup::{escape, shortened};
use super::scale::{Kind, Scale, short};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 372.0;
const ROW: f64 = 28.0;
const AXIS: f64 = 22.0;
const TICKS_MAX: usize = 8;
/// Letters of a label that there is room for.
const LABEL_ROOM: usize = 66;

#[derive(Clone, Debug)]
pub(crate) struct Dots {
    pub(crate) rows: Vec<Dot>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dot {
    /// The name of the case.
    pub(crate) of: String,
    pub(crate) baseline_name: String,
    /// What is left of the name where all cases of the drawing begin in the same way.
    pub(crate) label: String,
    /// Ours divided by the baseline of a rate, and the other way round of a latency: above 1
    /// ours is better.
    pub(crate) times: f64,
    /// The least and the greatest of the pairs of runs.
    pub(crate) runs: Option<(f64, f64)>,
    pub(crate) is_noisy: bool,
}

impl Dots {
    pub(crate) fn size(&self) -> (f64, f64) {
        (WIDTH, self.rows.len() as f64 * ROW + AXIS)
    }

    /// What the drawing shows, in words, for who can't see it.
    pub(crate) fn description(&self) -> String {
        let better = self.rows.iter().filter(|dot| dot.times >= 1.0).count();
        format!(
            "Of {} cases, ours is at least as good as the baseline in {better}.",
            self.rows.len()
        )
    }

    /// The inside of the drawing.
    pub(crate) fn draw(&self) -> String {
        let values = self.rows.iter().flat_map(|dot| {
            let (least, most) = dot.runs.unwrap_or((dot.times, dot.times));
            [dot.times, least, most]
        });
        let scale = Scale::over(Kind::Log, values.chain([1.0]));
        let bottom = self.rows.len() as f64 * ROW;
        let mut svg = String::new();
        for tick in scale.ticks(TICKS_MAX) {
            let at = across(&scale, tick.value);
            let label = format!("{}×", tick.label);
            write!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} 0V{bottom}\"/>\
                 <text class=\"tick x\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                beside(at, &label),
                bottom + 14.0,
                escape(&label)
            )
            .expect("text takes text");
        }
        let goal = across(&scale, 1.0);
        write!(svg, "<path class=\"goal\" d=\"M{goal:.1} 0V{bottom}\"/>").expect("text takes text");
        for (index, dot) in self.rows.iter().enumerate() {
            dot.draw(&mut svg, &scale, index as f64 * ROW);
        }
        svg
    }
}

impl Dot {
    fn draw(&self, svg: &mut String, scale: &Scale, top: f64) {
        let line = top + 20.0;
        let at = match Kind::Log.takes(self.times) {
            true => across(scale, self.times),
            false => LEFT,
        };
        let name = format!("{} · {}", self.label, self.baseline_name);
        write!(
            svg,
            "<g data-series=\"{}\"><text class=\"row\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>\
             <path class=\"track\" d=\"M{LEFT} {line:.1}H{RIGHT}\"/>",
            escape(&self.baseline_name),
            top + 11.0,
            escape(&shortened(&name, LABEL_ROOM))
        )
        .expect("text takes text");
        if let Some((least, most)) = self
            .runs
            .filter(|(least, most)| 0.0 < *least && least < most)
        {
            let (from, to) = (across(scale, least), across(scale, most));
            write!(
                svg,
                "<path class=\"whisker c0\" d=\"M{from:.1} {line:.1}H{to:.1}\"/>"
            )
            .expect("text takes text");
        }
        let times = times(self.times);
        let noisy = if self.is_noisy { " (noisy)" } else { "" };
        let title = format!("{} against {}: {times}{noisy}", self.of, self.baseline_name);
        svg.push_str(&mark(0, (at, line), self.is_noisy, &self.of, &title));
        write!(
            svg,
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{times}</text></g>",
            RIGHT + 4.0,
            line + 3.8
        )
        .expect("text takes text");
    }
}

/// A ratio with the digits that mean something.
pub(crate) fn times(ratio: f64) -> String {
    match ratio.abs() {
        size if size >= 1e4 => short(ratio),
        size if size >= 100.0 => format!("{ratio:.0}"),
        size if size >= 10.0 => format!("{ratio:.1}"),
        // There is room for no more digits.
        size if size < 0.001 => "≈0".to_owned(),
        size if size < 0.095 => short(ratio),
        _ => format!("{ratio:.2}"),
    }
}

fn across(scale: &Scale, value: f64) -> f64 {
    LEFT + scale.place(value).clamp(0.0, 1.0) * (RIGHT - LEFT)
}

/// Where the middle of a label is, so that all of it is inside of the drawing.
fn beside(at: f64, label: &str) -> f64 {
    let half = label.chars().count() as f64 / 2.0 * LETTER;
    at.clamp(half, WIDTH - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(times: f64, is_noisy: bool) -> Dot {
        Dot {
            of: "ring/u64/single".to_owned(),
            baseline_name: "rtrb".to_owned(),
            label: "u64/single".to_owned(),
            times,
            runs: Some((times * 0.9, times * 1.1)),
            is_noisy,
        }
    }

    #[test]
    fn there_is_a_dot_for_each_case_and_a_line_at_one() {
        let dots = Dots {
            rows: vec![dot(0.8, false), dot(2.0, true)],
        };
        let svg = dots.draw();
        assert_eq!(svg.matches("class=\"mark").count(), 2);
        assert_eq!(svg.matches("class=\"goal").count(), 1);
        assert_eq!(svg.matches("hollow").count(), 1);
        assert!(svg.contains(">0.80</text>"), "{svg}");
        assert!(dots.description().contains("2 cases") && dots.description().contains("in 1."));
    }

    #[test]
    fn ratios_have_the_digits_that_mean_something() {
        let texts = [312.4, 31.24, 3.124, 0.5, 0.003_124].map(times);
        assert_eq!(times(0.000_081_8), "≈0");
        assert_eq!(texts, ["312", "31.2", "3.12", "0.50", "0.00312"]);
    }

    #[test]
    fn the_labels_of_an_axis_over_many_decades_are_inside_of_the_drawing() {
        let svg = Dots {
            rows: vec![dot(0.000_45, false), dot(1.0, false)],
        };
        let svg = svg.draw();
        let ticks: Vec<(f64, &str)> = svg
            .split("<text class=\"tick x\" x=\"")
            .skip(1)
            .map(|rest| {
                let (x, rest) = rest.split_once('"').unwrap();
                let label = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
                (x.parse().unwrap(), label)
            })
            .collect();
        assert_eq!(ticks[0].1, "0.0003×");
        for (x, label) in ticks {
            let half = label.chars().count() as f64 / 2.0 * LETTER;
            assert!(
                (half - 0.1..=WIDTH - half + 0.1).contains(&x),
                "{label} at {x}"
            );
        }
    }

    #[test]
    fn a_ratio_that_is_none_is_drawn_at_the_edge() {
        let svg = Dots {
            rows: vec![dot(0.0, false), dot(f64::NAN, false)],
        };
        assert!(!svg.draw().contains("translate(NaN"));
    }
}
