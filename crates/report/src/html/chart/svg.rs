//! SVG as text: places to a tenth, colours and fonts by class.

use crate::html::escape;
use std::fmt::{Arguments, Write};

/// A drawing in the making.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// From where a text runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg { body: String::new(), width, height }
    }

    /// How much markup it has become.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn add(&mut self, markup: Arguments<'_>) {
        self.body.write_fmt(markup).expect("a string");
        self.body.push('\n');
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (at(from.0), at(from.1), at(to.0), at(to.1));
        self.add(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " mid",
            Anchor::End => " end",
        };
        self.add(format_args!(
            r#"<text class="{class}{anchor}" x="{}" y="{}">{}</text>"#,
            at(x),
            at(y),
            escape(text)
        ));
    }

    /// A shape with a tooltip.
    pub(super) fn told(&mut self, shape: Arguments<'_>, tooltip: &str) {
        self.add(format_args!("<g>{shape}<title>{}</title></g>", escape(tooltip)));
    }

    /// A picture of the page, named and described by the elements with `id` and its suffixes.
    pub(in crate::html) fn picture(&self, id: &str, title: &str, description: &str) -> String {
        format!(
            "<svg role=\"img\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{id}-t {id}-d\">\n<title \
             id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>\n",
            at(self.width),
            at(self.height),
            escape(title),
            escape(description),
            self.body
        )
    }

    /// A sign within a text. The text next to it names it.
    pub(in crate::html) fn sign(&self) -> String {
        let (width, height) = (at(self.width), at(self.height));
        format!(
            r#"<svg class="key" aria-hidden="true" width="{width}" height="{height}" viewBox="0 0 {width} {height}">{}</svg>"#,
            self.body.replace('\n', "")
        )
    }
}

/// A place, to a tenth, without a needless zero.
pub(super) fn at(place: f64) -> String {
    let tenths = (place * 10.0).round() as i64;
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        format!("{}{}.{}", if tenths < 0 { "-" } else { "" }, tenths.abs() / 10, tenths.abs() % 10)
    }
}

/// How wide a text will be at most, in units of the drawing, at the size of ticks and labels.
pub(super) fn width_of(text: &str) -> f64 {
    6.7 * text.chars().count() as f64
}

/// The text, shortened in the middle to about a width: names of caches differ at both ends.
pub(super) fn fitted(text: &str, width: f64) -> String {
    let chars: Vec<char> = text.chars().collect();
    let room = ((width / width_of("0")) as usize).max(3);
    if chars.len() <= room {
        return text.into();
    }
    let (head, tail) = ((room - 1).div_ceil(2), (room - 1) / 2);
    chars[..head].iter().chain(&['\u{2026}']).chain(&chars[chars.len() - tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short() {
        for (place, expected) in
            [(1.0, "1"), (1.04, "1"), (1.25, "1.3"), (-0.04, "0"), (-0.3, "-0.3"), (100.0, "100")]
        {
            assert_eq!(at(place), expected);
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        for (text, width, expected) in
            [("dentry", 100.0, "dentry"), ("kmalloc-rnd-07-cg-192", 67.0, "kmall\u{2026}-192")]
        {
            assert_eq!(fitted(text, width), expected);
        }
    }
}
