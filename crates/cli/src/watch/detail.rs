//! One cache: what it is, how its memory splits, who holds it, how it moved.

use super::app::App;
use super::theme::{Theme, bytes, duration, signed};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use slablab_lab::state::{Cache, State};
use slablab_lab::watch::{Track, percent};

/// Lines of the chart, if there is room.
const CHART_ROWS: usize = 8;
/// Columns of the words before a list of nodes or CPUs.
const LABEL: usize = 12;

/// Draws the cache under the cursor.
pub(super) fn draw(app: &App, frame: &mut Frame, area: Rect) {
    let list = app.list();
    let Some(track) = list.get(app.cursor(&list)) else {
        frame.render_widget(Paragraph::new(" no cache has this in its name"), area);
        return;
    };
    let width = usize::from(area.width).saturating_sub(1);
    let mut lines = vec![title(app, track)];
    if let Some(state) = &app.detail
        && let [cache] = &state.caches[..]
    {
        lines.extend(layout(app.theme, state, cache, width));
        lines.push(Line::default());
        lines.extend(places(app.theme, cache, width));
        lines.push(Line::default());
    }
    lines.push(growth(app, track));
    let room = usize::from(area.height).saturating_sub(lines.len());
    lines.extend(chart(app, track, width, room.min(CHART_ROWS + 1)));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Its name, its bytes, and how much of all caches that is.
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

/// Who shares it, how its objects lie in its slabs.
fn layout(theme: Theme, state: &State, cache: &Cache, width: usize) -> Vec<Line<'static>> {
    let plain = |text: String| Line::from(theme.cut(&format!(" {text}"), width));
    let mut lines = Vec::new();
    if !cache.aliases.is_empty() {
        lines.push(plain(format!("merged with {}", cache.aliases.join(", "))));
    }
    let asked = cache.object_size.map_or(String::new(), |size| format!(" ({size} without padding)"));
    lines.push(plain(format!(
        "{} objects of {} bytes{asked} in a slab of {}, order {}",
        cache.objects_per_slab,
        cache.size,
        bytes(cache.slab_bytes(state.page_size)),
        cache.order
    )));
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

/// How it moved, in numbers.
fn growth(app: &App, track: &Track) -> Line<'static> {
    let (theme, watch) = (app.theme, &app.watch);
    let (now, start) = (watch.growth_per_minute(track), watch.growth_per_minute_since_start(track));
    let window = watch.window_seconds().map_or("no time".into(), duration);
    let grown = track.since_start();
    Line::from(vec![
        Span::raw(format!(" in {window} ")),
        Span::styled(format!("{}/min", signed(now)), theme.growth(now)),
        Span::raw(format!("; since the start, {}, ", duration(watch.seconds()))),
        Span::styled(signed(Some(grown)), theme.growth(Some(grown))),
        Span::raw(" or "),
        Span::styled(format!("{}/min", signed(start)), theme.growth(start)),
    ])
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
