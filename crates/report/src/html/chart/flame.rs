//! Flame graphs (Gregg 2011), drawn downwards: a frame is as wide as all that it stands for, and below it are
//! its parts. The order across has no meaning: the widest is first. Colours tell neighbours apart, no more.

use super::svg::{Anchor, at, fitted, width_of};
use super::{Chart, Scale, Svg, Width};
use crate::html::escape;
use std::collections::BTreeMap;

/// Parts of parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Flame {
    /// What the widths are: "live bytes".
    pub what: String,
    /// How they are printed.
    pub scale: Scale,
    root: Frame,
}

/// A frame and its parts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Frame {
    value: f64,
    parts: BTreeMap<String, Frame>,
}

const ROW: f64 = 17.0;
/// Frames below this one are summed in it: the kernel's stacks are less deep.
const DEPTH: usize = 64;
/// Units of width below which a frame and its parts are left out.
const LEAST: f64 = 0.3;

impl Flame {
    /// Adds each value to its path, from the outermost frame to the innermost. Values that are not above 0
    /// are left out.
    pub fn new<'a>(
        what: &str,
        scale: Scale,
        paths: impl IntoIterator<Item = (impl IntoIterator<Item = &'a str>, f64)>,
    ) -> Flame {
        let mut root = Frame::default();
        for (path, value) in paths.into_iter().filter(|(_, value)| value.is_finite() && *value > 0.0) {
            let mut frame = &mut root;
            frame.value += value;
            for name in path.into_iter().take(DEPTH) {
                frame = frame.parts.entry(name.to_string()).or_default();
                frame.value += value;
            }
        }
        Flame { what: what.into(), scale, root }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.root.value <= 0.0
    }

    fn deepest(frame: &Frame, per_unit: f64) -> usize {
        let drawn = frame.parts.values().filter(|part| part.value * per_unit >= LEAST);
        drawn.map(|part| 1 + Flame::deepest(part, per_unit)).max().unwrap_or(0)
    }

    fn draw_frame(&self, svg: &mut Svg, (name, frame): (&str, &Frame), (x, depth): (f64, usize), units: f64) {
        let whole = self.root.value;
        let wide = frame.value / whole * units;
        let y = ROW * depth as f64;
        let told = format!("{name}: {}, {:.1} %", self.scale.print(frame.value), 100.0 * frame.value / whole);
        let room = wide - 6.0;
        let text = if room >= width_of("000") {
            let (x, y) = (at(x + 3.0), at(y + 12.0));
            format!("<text x=\"{x}\" y=\"{y}\">{}</text>", escape(&fitted(name, room)))
        } else {
            String::new()
        };
        let odd = if depth % 2 == 1 { " odd" } else { "" };
        svg.add(format_args!(
            r#"<g class="fl{odd}" data-n="{}" data-a="{:.6}" data-b="{:.6}"><rect x="{}" y="{}" width="{}" height="{}"/>{text}<title>{}</title></g>"#,
            escape(name),
            x / units,
            (x + wide) / units,
            at(x),
            at(y),
            at(wide),
            at(ROW),
            escape(&told)
        ));
        let mut parts: Vec<(&String, &Frame)> = frame.parts.iter().collect();
        parts.sort_by(|left, right| right.1.value.total_cmp(&left.1.value).then_with(|| left.0.cmp(right.0)));
        let mut from = x;
        for (name, part) in parts {
            let wide = part.value / whole * units;
            if wide >= LEAST {
                self.draw_frame(svg, (name, part), (from, depth + 1), units);
            }
            from += wide;
        }
    }
}

impl Chart for Flame {
    fn describe(&self) -> String {
        let widest = self.root.parts.iter().max_by(|left, right| left.1.value.total_cmp(&right.1.value));
        let widest = widest.map_or(String::new(), |(name, frame)| {
            let share = 100.0 * frame.value / self.root.value;
            format!(" The widest part is {name} with {}, {share:.0} %.", self.scale.print(frame.value))
        });
        format!(
            "A flame graph of {} ({}): each frame is as wide as what it stands for, and its parts are below it.\
             {widest}",
            self.what,
            self.scale.print(self.root.value)
        )
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        Vec::new()
    }

    fn draw(&self, width: Width) -> Svg {
        let units = width.units();
        let rows = 1 + Flame::deepest(&self.root, units / self.root.value.max(f64::MIN_POSITIVE));
        let mut svg = Svg::new(units, ROW * rows as f64 + 22.0);
        if !self.is_empty() {
            let name = format!("all: {}", self.scale.print(self.root.value));
            self.draw_frame(&mut svg, (&name, &self.root), (0.0, 0), units);
        }
        svg.text("tick", Anchor::End, (units, ROW * rows as f64 + 14.0), &format!("width: {}", self.what));
        svg
    }

    fn is_flame(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame() -> Flame {
        let paths: [(&[&str], f64); 5] = [
            (&["dentry", "d_alloc"], 30.0),
            (&["dentry", "<d_other>"], 10.0),
            (&["filp", "alloc_file"], 60.0),
            (&["none", "nothing"], 0.0),
            (&["none", "less"], -1.0),
        ];
        Flame::new("live bytes", Scale::Number, paths.map(|(path, value)| (path.iter().copied(), value)))
    }

    /// Name, x, y and width of every frame.
    fn frames(svg: &str) -> Vec<(String, f64, f64, f64)> {
        let number = |tag: &str, name: &str| -> f64 {
            tag.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        svg.split("<g class=\"fl")
            .skip(1)
            .map(|group| {
                let name = group.split("<title>").nth(1).unwrap().split(':').next().unwrap();
                let rect = group.split("<rect").nth(1).unwrap();
                (name.to_string(), number(rect, "x"), number(rect, "y"), number(rect, "width"))
            })
            .collect()
    }

    #[test]
    fn a_frame_is_as_wide_as_its_value_and_its_parts_are_below_it() {
        let svg = flame().draw(Width::Wide).sign();
        let expected = [
            ("all", 0.0, 0.0, 760.0),
            ("filp", 0.0, ROW, 456.0),
            ("alloc_file", 0.0, 2.0 * ROW, 456.0),
            ("dentry", 456.0, ROW, 304.0),
            ("d_alloc", 456.0, 2.0 * ROW, 228.0),
            ("&lt;d_other&gt;", 684.0, 2.0 * ROW, 76.0),
        ];
        let expected = expected.map(|(name, x, y, width)| (name.to_string(), x, y, width));
        assert_eq!(frames(&svg), expected, "{svg}");
        assert!(svg.contains("filp: 60, 60.0 %"), "{svg}");
    }

    #[test]
    fn what_is_too_narrow_is_left_out() {
        let paths = [(["big", "a"], 1e6), (["small", "b"], 1.0)];
        let svg = Flame::new("bytes", Scale::Bytes, paths).draw(Width::Narrow).sign();
        let names: Vec<String> = frames(&svg).into_iter().map(|frame| frame.0).collect();
        assert_eq!(names, ["all", "big", "a"]);
        let empty = Flame::new("bytes", Scale::Bytes, [(["x"], 0.0)]);
        assert!(empty.is_empty() && frames(&empty.draw(Width::Wide).sign()).is_empty());
    }
}
