//! The detail of one cache: its history, the uses of its memory, its purpose, and the nodes of its slabs.

use super::app::App;
use super::theme::{Theme, bytes, duration, signed};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use slablab_doctor::measure::split::Split;
use slablab_doctor::state::{Cache, State};
use slablab_doctor::watch::{Track, percent};
use slablab_doctor::what::Entry;

/// Lines of the chart with its label: the largest number, and the number reserved for it.
const CHART_ROWS: usize = 9;
const CHART_ROWS_MIN: usize = 4;
/// Columns of the words before numbers.
const LABEL: usize = 12;
/// Columns of the split before its bars.
const BEFORE_BARS: usize = 31;
const BAR_MAX: usize = 60;

/// Draws the cache under the cursor: what matters most first, for screens that do not hold it all.
pub(super) fn draw(app: &App, frame: &mut Frame, area: Rect) {
    let list = app.list();
    let Some(track) = list.get(app.cursor(&list)) else {
        frame.render_widget(Paragraph::new(" no cache has this in its name"), area);
        return;
    };
    let (width, height) = (usize::from(area.width).saturating_sub(1), usize::from(area.height));
    // All that is known if there is room for it; parts stand apart if there is room for that.
    let fits = |parts: &[Vec<Line>]| {
        let count: usize = parts.iter().map(Vec::len).sum();
        count + parts.len() + CHART_ROWS_MIN <= height
    };
    let mut parts = said(app, track, width, true);
    if !fits(&parts) {
        parts = said(app, track, width, false);
    }
    if fits(&parts) {
        parts.iter_mut().for_each(|part| part.push(Line::default()));
    }
    let mut lines = parts.concat();
    lines.extend(chart(app, track, width, height.saturating_sub(lines.len()).min(CHART_ROWS)));
    frame.render_widget(Paragraph::new(lines), area);
}

/// What there is to say, the most important first; with `whole`, everything that is known of its purpose.
fn said(app: &App, track: &Track, width: usize, whole: bool) -> Vec<Vec<Line<'static>>> {
    let theme = app.theme;
    let mut parts = vec![vec![title(app, track)]];
    parts[0].extend(growth(app, track, width));
    if let Some(state) = &app.detail
        && let [cache] = &state.caches[..]
    {
        parts.push(split(theme, &Split::of(cache, state), width));
        let entry = app.known.find(&cache.name);
        let entry = entry.or_else(|| cache.aliases.iter().find_map(|alias| app.known.find(alias)));
        match entry {
            Some(entry) if whole => parts.extend([what(theme, entry, width, 6), ways(theme, entry, width)]),
            Some(entry) => parts.push([what(theme, entry, width, 2), way(theme, entry, width)].concat()),
            None => {}
        }
        parts.push(layout(theme, state, cache, width));
        parts.push(places(theme, cache, width));
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The cache's name, its bytes, and its share of the bytes of all caches.
fn title(app: &App, track: &Track) -> Line<'static> {
    let row = &track.row;
    let ordinal = match row.info.ordinal {
        0 => String::new(),
        nth => format!(" (number {} of this name)", nth + 1),
    };
    let whole = app.watch.last().totals().bytes;
    let share =
        percent(row.bytes, whole).map_or(String::new(), |share| format!(", {share:.1}% of the caches"));
    let used = row.use_percent().map_or(String::new(), |used| format!(", {}% active", used as u64));
    Line::from(vec![
        Span::raw(" "),
        Span::styled(format!("{}{ordinal}", row.info.name), app.theme.header()),
        Span::styled(format!("  {}", bytes(row.bytes)), app.theme.title()),
        Span::raw(format!("{share}{used}")),
    ])
}

/// Where its bytes are: parts that add up, and what is known of the parked objects among those in use.
fn split(theme: Theme, split: &Split, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(BEFORE_BARS).min(BAR_MAX);
    let part = |label: &str, value: &str, low: u64, high: u64| {
        let share = percent(high, split.bytes).unwrap_or(0.0);
        let columns = |bytes: u64| {
            let share = percent(bytes, split.bytes).unwrap_or(0.0);
            ((share / 100.0 * room as f64).round() as usize).min(room)
        };
        Line::from(vec![
            Span::raw(format!(" {label:<LABEL$}{value:>8} {share:>6.1}%  ")),
            Span::styled(theme.bar(columns(low), columns(high)), theme.chart()),
        ])
    };
    let exact = |label: &str, value: u64| part(label, &bytes(value), value, value);
    let parked = match (split.parked.low, split.parked.high) {
        (low, high) if low == high => exact("  parked", low),
        (0, high) => part("  parked <=", &bytes(high), 0, high),
        (low, high) => part(&format!("  parked {}", bytes(low)), &format!("to {}", bytes(high)), low, high),
    };
    let mut lines = vec![
        exact("in use", split.in_use),
        parked,
        exact("free", split.free),
        exact("slab tails", split.tail),
        match split.metadata {
            Some(metadata) => exact("metadata", metadata.total()),
            None => Line::from(format!(" {:<LABEL$}{:>8}", "metadata", "unknown")),
        },
    ];
    if split.raced < 0 {
        let twice = bytes(split.raced.unsigned_abs());
        lines.push(Line::from(format!(" {:<LABEL$}{twice:>8}", "seen twice")));
    }
    lines
}

/// What it is for and what makes it grow, the purpose in a limited number of lines.
fn what(theme: Theme, entry: &Entry, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line> = wrapped(&format!("{}: {}", entry.subsystem, entry.what), width, most, theme);
    if let Some(grows) = &entry.grows_with {
        lines.extend(wrapped(&format!("Grows with {grows}"), width, most / 2, theme));
    }
    lines
}

/// The mildest way to shrink it, or why there is none.
fn way(theme: Theme, entry: &Entry, width: usize) -> Vec<Line<'static>> {
    let text = match (entry.shrink.first(), &entry.cannot_shrink) {
        (Some(method), _) => format!("To shrink it: {}", method.run.as_ref().unwrap_or(&method.how)),
        (None, Some(why)) => format!("Cannot be shrunk: {why}"),
        (None, None) => return Vec::new(),
    };
    wrapped(&text, width, 2, theme)
}

/// Every way to shrink it with its price, the mildest first.
fn ways(theme: Theme, entry: &Entry, width: usize) -> Vec<Line<'static>> {
    let Some(first) = entry.shrink.first() else { return way(theme, entry, width) };
    let mut lines = Vec::new();
    for method in &entry.shrink {
        let label = if method.id == first.id { "To shrink it: " } else { "Or: " };
        let cost = method.cost.as_ref().map_or(String::new(), |cost| format!(" Mind: {cost}."));
        lines.extend(wrapped(&format!("{label}{}{cost}", method.how), width, 3, theme));
        let run = method.run.as_ref().map(|run| theme.cut(&format!("   # {run}"), width));
        lines.extend(run.map(|run| Line::styled(run, theme.title())));
    }
    lines
}

/// A text broken at blanks, limited in lines and in columns.
fn wrapped(text: &str, width: usize, most: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always one");
        // The last line takes the rest, and is cut where it does not fit.
        if last.chars().count() + 1 + word.chars().count() > width && lines.len() < most {
            lines.push(String::new());
        }
        let last = lines.last_mut().expect("there is always one");
        last.push(' ');
        last.push_str(word);
    }
    lines.iter().map(|line| Line::from(theme.cut(line, width))).collect()
}

/// Who shares it, how its objects lie in its slabs.
fn layout(theme: Theme, state: &State, cache: &Cache, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !cache.aliases.is_empty() {
        let aliases = format!(" merged with {}", cache.aliases.join(", "));
        lines.push(Line::from(theme.cut(&aliases, width)));
    }
    let asked = cache.object_size.map_or(String::new(), |size| format!(" ({size} without padding)"));
    let text = format!(
        "{} objects of {} bytes{asked} in a slab of {}, order {}",
        cache.objects_per_slab,
        cache.size,
        bytes(cache.slab_bytes(state.page_size)),
        cache.order
    );
    lines.extend(wrapped(&text, width, 2, theme));
    lines
}

/// Where its slabs are: on nodes, with CPUs.
fn places(theme: Theme, cache: &Cache, width: usize) -> Vec<Line<'static>> {
    let Some(attrs) = &cache.attrs else { return Vec::new() };
    let rows = [
        ("slabs", &attrs.slabs),
        ("partial", &attrs.partial),
        ("cpu slabs", &attrs.cpu_slabs),
        ("cpu partial", &attrs.slabs_cpu_partial),
    ];
    let mut lines = Vec::new();
    for (label, counts) in rows {
        let Some(counts) = counts else { continue };
        let nodes = counts.nodes.iter().map(|(id, count)| format!("N{id} {}", count.value));
        let cpus = counts.cpus.iter().map(|(id, count)| format!("C{id} {}", count.value));
        // The kernel's own way to say objects and the slabs that hold them.
        let slabs = counts.total.slabs.map_or(String::new(), |slabs| format!("({slabs})"));
        let whole = format!(" {label:<LABEL$}{:>8}{slabs}", counts.total.value);
        lines.push(Line::from(listed(theme, whole, &nodes.chain(cpus).collect::<Vec<_>>(), width)));
    }
    lines
}

/// As many items as fit, and how many do not.
pub(super) fn listed(theme: Theme, label: String, items: &[String], width: usize) -> String {
    let text = |count: usize| {
        let rest = items.len() - count;
        let more = if rest > 0 { format!("  and {rest} more") } else { String::new() };
        let shown: String = items[..count].iter().map(|item| format!("  {item}")).collect();
        label.clone() + &shown + &more
    };
    // An item has a letter, a number, a blank and a number: six columns with the blanks before it.
    let most = items.len().min(width / 6);
    let fits = (0..=most).rev().map(text).find(|text| text.chars().count() <= width);
    theme.cut(&fits.unwrap_or_else(|| text(0)), width)
}

/// How it moved, in numbers: in one line if there is room for that.
fn growth(app: &App, track: &Track, width: usize) -> Vec<Line<'static>> {
    let (theme, watch) = (app.theme, &app.watch);
    let (now, start) = (watch.growth_per_minute(track), watch.growth_per_minute_since_start(track));
    let window = watch.window_seconds().map_or("no time".into(), duration);
    let whole = signed(Some(track.since_start()));
    let rate = |rate| Span::styled(format!("{}/min", signed(rate)), theme.growth(rate));
    let mut line = Line::from(vec![Span::raw(" growth: "), rate(now), Span::raw(format!(" in {window}"))]);
    let since_start = format!(" since the start ({whole} in {})", duration(watch.seconds()));
    let rest = [rate(start), Span::raw(since_start)];
    if line.width() + 2 + rest.iter().map(Span::width).sum::<usize>() <= width {
        line.push_span(", ");
        line.extend(rest);
        return vec![line];
    }
    let [rate, since_start] = rest;
    vec![line, Line::from(vec![Span::raw("         "), rate, since_start])]
}

/// How it moved, as a picture.
fn chart(app: &App, track: &Track, width: usize, rows: usize) -> Vec<Line<'static>> {
    let theme = app.theme;
    let history = track.history();
    let (low, high) = (history.iter().min().unwrap_or(&0), history.iter().max().unwrap_or(&0));
    let (_, span) = app.watch.history();
    let label = format!(" {}: {} to {}", duration(span), bytes(*low), bytes(*high));
    let drawn = theme.chart_lines(history, width.saturating_sub(1), rows.saturating_sub(1));
    let label = Line::styled(label, theme.dim());
    let charted = drawn.into_iter().map(|line| Line::styled(format!(" {line}"), theme.chart()));
    std::iter::once(label).chain(charted).take(rows).collect()
}
