//! From values to places along an axis, and the values at which an axis has ticks.

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Log,
    /// Of percentiles: each further nine is equally long. 100 stands at the end, where no
    /// number of nines would reach.
    Nines,
}

/// An axis over the values from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: Kind,
    /// As [`Kind::along`] has them.
    from: f64,
    to: f64,
}

/// A value that is marked on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// Of the length of an axis, what stays free at either end, so that no mark stands on an edge.
const MARGIN: f64 = 0.04;
/// Nines up to which percentiles are told apart: 99.9999.
const NINES_MAX: f64 = 6.0;

impl Kind {
    /// Where a value is, before it is fitted to an axis.
    fn along(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::Nines => (-(1.0 - value / 100.0).log10()).clamp(0.0, NINES_MAX),
        }
    }

    /// Whether a value has a place at all.
    pub(crate) fn takes(self, value: f64) -> bool {
        value.is_finite() && (self != Self::Log || value > 0.0)
    }
}

impl Scale {
    /// An axis over these values, as far as they have a place; a linear one begins at 0.
    pub(crate) fn over(kind: Kind, values: impl IntoIterator<Item = f64>) -> Self {
        let places = values.into_iter().filter(|value| kind.takes(*value));
        let (mut from, mut to) = places
            .map(|value| kind.along(value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), place| {
                (from.min(place), to.max(place))
            });
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        match kind {
            Kind::Linear => {
                from = from.min(0.0);
                to = if to > from {
                    to + (to - from) * MARGIN
                } else {
                    from + 1.0
                };
            }
            // At least a factor of 3, so that hardly anything is not drawn as a mountain.
            Kind::Log => {
                let missing = (3f64.log10() - (to - from)).max(0.0) / 2.0;
                let margin = missing.max((to - from) * MARGIN);
                (from, to) = (from - margin, to + margin);
            }
            Kind::Nines => {
                to = to.max(from + 1.0);
                let margin = (to - from) * MARGIN;
                (from, to) = (from - margin, to + margin);
            }
        }
        Self { kind, from, to }
    }

    /// Where a value is, from 0 at the start of the axis to 1 at its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        (self.kind.along(value) - self.from) / (self.to - self.from)
    }

    /// Round values along the axis, at most `count_max` of them, which is at least 2.
    pub(crate) fn ticks(&self, count_max: usize) -> Vec<Tick> {
        let values = match self.kind {
            Kind::Linear => linear(self.from, self.to, count_max),
            Kind::Log => self.log(count_max),
            Kind::Nines => return self.nines(),
        };
        let label = |value| Tick {
            value,
            label: short(value),
        };
        values.into_iter().map(label).collect()
    }

    fn log(&self, count_max: usize) -> Vec<f64> {
        const STEPS: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let inside = |value: &f64| (self.from..=self.to).contains(&value.log10());
        let decades = self.from.floor() as i32..=self.to.ceil() as i32;
        for steps in STEPS {
            let values = decades.clone().flat_map(|decade| {
                let decade = 10f64.powi(decade);
                steps.iter().map(move |step| step * decade)
            });
            let values: Vec<f64> = values.filter(inside).collect();
            if values.len() <= count_max {
                return values;
            }
        }
        // So many decades that not each has a tick.
        let decades: Vec<i32> = decades.collect();
        let each = decades.len().div_ceil(count_max.max(1));
        let some = decades.into_iter().step_by(each);
        some.map(|decade| 10f64.powi(decade))
            .filter(inside)
            .collect()
    }

    /// The median and each further nine: few enough for any axis.
    fn nines(&self) -> Vec<Tick> {
        const PERCENTILES: [f64; 7] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
        let on_it = PERCENTILES.into_iter();
        let on_it = on_it.filter(|value| (0.0..=1.0).contains(&self.place(*value)));
        let ticks = on_it.map(|value| Tick {
            value,
            label: match value {
                100.0.. => "max".to_owned(),
                value => value.to_string(),
            },
        });
        ticks.collect()
    }
}

fn linear(from: f64, to: f64, count_max: usize) -> Vec<f64> {
    let rough = (to - from) / count_max.max(1) as f64;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(decade * 10.0);
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// A number as briefly as it can be said: `64 k`, `0.25`, `1.5 G`.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, letter) = match size {
        _ if size >= 1e12 => (value / 1e12, " T"),
        _ if size >= 1e9 => (value / 1e9, " G"),
        _ if size >= 1e6 => (value / 1e6, " M"),
        _ if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        size if size == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size => (2 - size.log10().floor() as i32).clamp(0, 9) as usize,
    };
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{letter}")
}

/// A figure with its least and its greatest run, and whether it is to be trusted.
pub(crate) fn in_words(value: f64, runs: Option<(f64, f64)>, is_noisy: bool) -> String {
    let noisy = if is_noisy { " (noisy)" } else { "" };
    let runs = runs.filter(|(least, most)| least < most);
    let runs = runs.map(|(least, most)| format!(", {} to {}", short(least), short(most)));
    format!("{}{}{noisy}", short(value), runs.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(kind: Kind, along: f64) -> f64 {
        match kind {
            Kind::Linear => along,
            Kind::Log => 10f64.powf(along),
            Kind::Nines => 100.0 * (1.0 - 10f64.powf(-along)),
        }
    }

    /// The value at a place.
    fn value(scale: &Scale, place: f64) -> f64 {
        back(scale.kind, scale.from + place * (scale.to - scale.from))
    }

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn equal_ratios_are_equally_long_on_a_log_axis() {
        let scale = Scale::over(Kind::Log, [1.0, 100.0]);
        let (first, middle, last) = (scale.place(1.0), scale.place(10.0), scale.place(100.0));
        assert!((middle - first - (last - middle)).abs() < 1e-9);
        assert!(first > 0.0 && last < 1.0);
        assert!((value(&scale, middle) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn each_nine_is_equally_long_and_the_greatest_stands_at_the_end() {
        let scale = Scale::over(Kind::Nines, [0.0, 50.0, 99.9, 100.0]);
        let step = scale.place(99.0) - scale.place(90.0);
        assert!((scale.place(99.9) - scale.place(99.0) - step).abs() < 1e-9);
        assert!(scale.place(100.0) > scale.place(99.999));
        assert_eq!(
            labels(&scale.ticks(9)),
            ["50", "90", "99", "99.9", "99.99", "99.999", "max"]
        );
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let scale = Scale::over(Kind::Linear, [40.0, 80.0]);
        assert_eq!(scale.place(0.0), 0.0);
        assert_eq!(labels(&scale.ticks(5)), ["0", "20", "40", "60", "80"]);
    }

    #[test]
    fn ticks_are_round_values_on_the_axis_and_not_too_many() {
        for (least, most) in [(1.0, 65_536.0), (1.7e9, 2.2e9), (1e-3, 1e12), (5.0, 5.0)] {
            for count_max in [2, 3, 5, 8] {
                let scale = Scale::over(Kind::Log, [least, most]);
                let ticks = scale.ticks(count_max);
                assert!(ticks.len() <= count_max, "{least} {most} {ticks:?}");
                assert!(!ticks.is_empty(), "{least} to {most}, at most {count_max}");
                for tick in ticks {
                    assert!((0.0..=1.0).contains(&scale.place(tick.value)), "{tick:?}");
                }
            }
        }
    }

    #[test]
    fn an_axis_of_nothing_is_one_all_the_same() {
        for kind in [Kind::Linear, Kind::Log, Kind::Nines] {
            let scale = Scale::over(kind, []);
            assert!(scale.place(back(kind, 0.5)).is_finite());
        }
        let scale = Scale::over(Kind::Log, [0.0, f64::NAN, 10.0]);
        assert!((0.0..=1.0).contains(&scale.place(10.0)));
    }

    #[test]
    fn numbers_are_said_briefly() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.012_34, "0.0123"),
            (1.0, "1"),
            (99.5, "99.5"),
            (1_024.0, "1024"),
            (65_536.0, "65.5 k"),
            (1e6, "1 M"),
            (1.5e9, "1.5 G"),
            (-2e6, "-2 M"),
            (100.0, "100"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
