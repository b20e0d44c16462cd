//! Styles, numbers and little charts. Colour only repeats what a sign, a word or a place already says.

use crate::colour;
use ratatui::style::{Color, Modifier, Style};
use std::collections::VecDeque;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    /// Whether colours are wanted.
    pub(super) colour: bool,
    /// Whether there are only ASCII characters.
    pub(super) ascii: bool,
}

impl Theme {
    /// From `--color`, `NO_COLOR`, `TERM`, and the character set of the locale.
    pub(super) fn of_environment() -> Theme {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
        let locale = locale.to_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        // The Linux console says `linux`, and its font has no eighths of blocks.
        let console = set("TERM").is_some_and(|term| term == "linux");
        Theme { colour: colour::wanted(), ascii: !utf8 || console }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn header(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn dim(self) -> Style {
        // Dark grey is the background's own colour in some palettes.
        if self.colour { Style::new().add_modifier(Modifier::DIM) } else { Style::new() }
    }

    pub(super) fn key(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn notice(self) -> Style {
        self.colour(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(super) fn chart(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Of a signed number.
    pub(super) fn growth(self, growth: Option<i64>) -> Style {
        match growth {
            Some(growth) if growth > 0 => self.colour(Color::Red),
            Some(growth) if growth < 0 => self.colour(Color::Green),
            _ => self.dim(),
        }
    }

    /// A bar of `low` columns that are sure, and as many to `high` that may be.
    pub(super) fn bar(self, low: usize, high: usize) -> String {
        let (sure, perhaps) = if self.ascii { ("#", "-") } else { ("█", "░") };
        sure.repeat(low) + &perhaps.repeat(high.saturating_sub(low))
    }

    /// Cuts what does not fit, and says so with its last character.
    pub(super) fn cut(self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_string();
        }
        let mark = if self.ascii { '~' } else { '…' };
        text.chars().take(width.saturating_sub(1)).chain((width > 0).then_some(mark)).collect()
    }

    /// A chart of `height` lines, oldest value left; each column has the largest of its values. The scale
    /// begins at the smallest and spans five percent of the largest at least, or one in a taller chart, which
    /// says its range: a change of a thousandth shall not look like one of half.
    pub(super) fn chart_lines(self, values: &VecDeque<u64>, width: usize, height: usize) -> Vec<String> {
        let columns = resample(values, width);
        let (low, high) = columns.iter().fold((u64::MAX, 0), |(low, high), &v| (low.min(v), high.max(v)));
        let steps: &[char] = if self.ascii {
            &['.', ':', '-', '=', '+', '*', '%', '#']
        } else {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        };
        let least = if height == 1 { 0.05 } else { 0.01 };
        let range = (high.saturating_sub(low) as f64).max(high as f64 * least);
        let top = (height * steps.len()).saturating_sub(1) as f64;
        let level = |value: u64| match high {
            0 => 0,
            _ => 1 + ((value - low) as f64 / range * top).round().clamp(0.0, top) as usize,
        };
        let levels: Vec<usize> = columns.iter().map(|&value| level(value)).collect();
        let line = |row: usize| {
            let below = (height - 1 - row) * steps.len();
            let cell = |&level: &usize| match level.saturating_sub(below) {
                0 => ' ',
                over => steps[over.min(steps.len()) - 1],
            };
            levels.iter().map(cell).collect()
        };
        (0..height).map(line).collect()
    }
}

/// At most `width` values, each the largest of those it stands for.
fn resample(values: &VecDeque<u64>, width: usize) -> Vec<u64> {
    if values.len() <= width {
        return values.iter().copied().collect();
    }
    let edge = |column: usize| column * values.len() / width;
    let largest = |column: usize| values.range(edge(column)..edge(column + 1)).copied().max().unwrap_or(0);
    (0..width).map(largest).collect()
}

/// Bytes in at most seven characters; K, M and G are KiB, MiB and GiB.
pub(crate) fn bytes(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    match bytes {
        0 => "0".into(),
        1..1_024 => format!("{bytes}B"),
        1_024..10_240 if !bytes.is_multiple_of(1_024) => format!("{kib:.1}K"),
        1_024..1_048_576 => format!("{kib:.0}K"),
        1_048_576..1_073_741_824 => format!("{:.1}M", kib / 1024.0),
        _ => format!("{:.2}G", kib / 1_048_576.0),
    }
}

/// Bytes with a sign; `-` alone if they are not known.
pub(super) fn signed(change: Option<i64>) -> String {
    match change {
        None => "-".into(),
        Some(0) => "0".into(),
        Some(change) => {
            format!("{}{}", if change < 0 { '-' } else { '+' }, bytes(change.unsigned_abs()))
        }
    }
}

/// Seconds in a few characters.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        ..3600.0 => format!("{} min {:02} s", seconds as u64 / 60, seconds as u64 % 60),
        _ => format!("{} h {:02} min", seconds as u64 / 3600, seconds as u64 / 60 % 60),
    }
}
