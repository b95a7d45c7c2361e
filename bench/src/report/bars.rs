//! Bars, in groups that are to scale each within itself: different cases measure different
//! things, and one scale for all would leave most of them without any length.

use std::fmt::Write;

use super::markup::{escape, shortened};
use super::scale::{in_words, short};

const WIDTH: f64 = 420.0;
/// Where bars begin: names of contenders stand to the left of it.
const LEFT: f64 = 148.0;
/// Where the longest ends: figures stand to the right of it.
const RIGHT: f64 = 352.0;
const GROUP_HEAD: f64 = 18.0;
const BAR_STEP: f64 = 16.0;
const BAR: f64 = 11.0;
const GROUP_GAP: f64 = 8.0;
/// Letters of a contender's name that there is room for.
const NAME_ROOM: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct Bars {
    /// Of every figure.
    pub(crate) unit: String,
    pub(crate) groups: Vec<Group>,
}

/// The contenders of one case.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) label: String,
    /// The name of the case.
    pub(crate) of: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// The least and the greatest run.
    pub(crate) runs: Option<(f64, f64)>,
    pub(crate) is_ours: bool,
    pub(crate) is_noisy: bool,
}

impl Bars {
    pub(crate) fn size(&self) -> (f64, f64) {
        let heights = self.groups.iter().map(Group::height);
        (WIDTH, heights.sum::<f64>().max(1.0))
    }

    /// What the drawing shows, in words, for who can't see it.
    pub(crate) fn description(&self) -> String {
        let mut text = format!("In {}.", self.unit);
        for group in &self.groups {
            let bars = group.bars.iter();
            let bars = bars.map(|bar| format!("{} {}", bar.name, short(bar.value)));
            let bars: Vec<String> = bars.collect();
            write!(text, " {}: {}.", group.label, bars.join(", ")).expect("text takes text");
        }
        text
    }

    /// The inside of the drawing.
    pub(crate) fn draw(&self) -> String {
        let mut svg = String::new();
        let mut top = 0.0;
        for group in &self.groups {
            group.draw(&mut svg, top);
            top += group.height();
        }
        svg
    }
}

impl Group {
    fn height(&self) -> f64 {
        GROUP_HEAD + self.bars.len() as f64 * BAR_STEP + GROUP_GAP
    }

    fn draw(&self, svg: &mut String, top: f64) {
        let most = self.bars.iter().flat_map(|bar| {
            let (_, most) = bar.runs.unwrap_or((bar.value, bar.value));
            [bar.value, most]
        });
        let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
        write!(
            svg,
            "<text class=\"group\" x=\"4\" y=\"{:.1}\">{}</text>\
             <path class=\"axis\" d=\"M{LEFT} {:.1}V{:.1}\"/>",
            top + 12.0,
            escape(&self.label),
            top + GROUP_HEAD - 1.0,
            top + self.height() - GROUP_GAP,
        )
        .expect("text takes text");
        for (index, bar) in self.bars.iter().enumerate() {
            let top = top + GROUP_HEAD + index as f64 * BAR_STEP;
            bar.draw(svg, top, most, &self.of);
        }
    }
}

impl Bar {
    fn draw(&self, svg: &mut String, top: f64, most: f64, of: &str) {
        let length = |value: f64| match most > 0.0 && value.is_finite() {
            true => value.max(0.0) / most * (RIGHT - LEFT),
            false => 0.0,
        };
        let class = match (self.is_ours, self.is_noisy) {
            (true, false) => "bar ours",
            (true, true) => "bar ours hollow",
            (false, false) => "bar",
            (false, true) => "bar hollow",
        };
        let text = top + 9.4;
        write!(
            svg,
            "<text class=\"tick y\" x=\"{:.1}\" y=\"{text:.1}\">{}</text>\
             <rect class=\"{class}\" data-of=\"{}\" data-series=\"{}\" x=\"{LEFT}\" y=\"{top:.1}\" \
             width=\"{:.1}\" height=\"{BAR}\"><title>{}</title></rect>",
            LEFT - 6.0,
            escape(&shortened(&self.name, NAME_ROOM)),
            escape(of),
            escape(&self.name),
            // A bar of no length would not be seen at all.
            length(self.value).max(0.8),
            escape(&self.title()),
        )
        .expect("text takes text");
        let mut end = length(self.value);
        if let Some((least, most)) = self.runs.filter(|(least, most)| least < most) {
            let (from, to) = (LEFT + length(least), LEFT + length(most));
            let middle = top + BAR / 2.0;
            write!(
                svg,
                "<path class=\"whisker over\" d=\"M{from:.1} {middle:.1}H{to:.1}\"/>"
            )
            .expect("text takes text");
            end = end.max(length(most));
        }
        write!(
            svg,
            "<text class=\"value\" x=\"{:.1}\" y=\"{text:.1}\">{}</text>",
            LEFT + end + 5.0,
            escape(&short(self.value))
        )
        .expect("text takes text");
    }

    fn title(&self) -> String {
        let figure = in_words(self.value, self.runs, self.is_noisy);
        format!("{}: {figure}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars() -> Bars {
        let bar = |name: &str, value| Bar {
            name: name.to_owned(),
            value,
            runs: Some((value * 0.5, value * 1.25)),
            is_ours: name == "Ringway",
            is_noisy: false,
        };
        Bars {
            unit: "elements/s".to_owned(),
            groups: vec![Group {
                label: "u64/single".to_owned(),
                of: "ring/u64/single".to_owned(),
                bars: vec![bar("Ringway", 80.0), bar("a & b", 40.0)],
            }],
        }
    }

    #[test]
    fn the_longest_run_of_a_group_takes_all_the_room() {
        let svg = bars().draw();
        let longest = RIGHT - LEFT;
        let expected = format!("width=\"{:.1}\"", longest * 80.0 / 100.0);
        assert!(svg.contains(&expected), "{svg}");
        assert!(svg.contains(&format!("H{:.1}", RIGHT)), "{svg}");
    }

    #[test]
    fn every_bar_says_its_figure_and_which_case_it_is_of() {
        let svg = bars().draw();
        assert_eq!(svg.matches("data-of=\"ring/u64/single\"").count(), 2);
        assert!(svg.contains("a &amp; b: 40, 20 to 50"), "{svg}");
        assert!(svg.contains(">80</text>"), "{svg}");
    }

    #[test]
    fn figures_that_are_no_numbers_have_no_length() {
        let mut bars = bars();
        bars.groups[0].bars[0].value = f64::NAN;
        bars.groups[0].bars[1].value = f64::INFINITY;
        let svg = bars.draw();
        assert!(
            !svg.contains("width=\"NaN") && !svg.contains("width=\"inf"),
            "{svg}"
        );
    }
}
