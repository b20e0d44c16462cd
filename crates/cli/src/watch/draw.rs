//! The screen: header, list or one cache or both, notices, keys.

use super::app::App;
use super::{cgroups, detail, header, help, list};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use slablab_doctor::state::Missing;

/// Rows from which slabtop's whole header is shown.
const FULL_HEADER_ROWS: u16 = 18;
/// The width of the screen from which the header has a chart at its right, and the chart's first column.
const CHART_COLUMNS: u16 = 110;
const CHART_FROM: u16 = 78;
/// The width of the screen from which the detail of a cache is at the right of the list.
const BESIDE_COLUMNS: u16 = 140;
const BESIDE_LIST: u16 = 84;
/// Rows of the chart where there are no caches to list.
const BLIND_CHART_ROWS: u16 = 9;

/// Draws everything.
pub(super) fn draw(app: &mut App, frame: &mut Frame) {
    let area = frame.area();
    let width = usize::from(area.width);
    let alone = app.open && area.width < BESIDE_COLUMNS;
    let whole = area.height >= FULL_HEADER_ROWS && !alone && !app.blind();
    let mut head = vec![header::title(app, true)];
    if whole {
        head.extend(header::slabtop(app));
    }
    head.push(header::memory(app, width));
    let (top, rest) = split(area, head.len() as u16);
    let (rest, keys) = split(rest, rest.height.saturating_sub(1));
    frame.render_widget(Paragraph::new(head), top);
    if whole && area.width >= CHART_COLUMNS {
        let beside = Rect { x: CHART_FROM, width: area.width - CHART_FROM - 1, y: top.y + 1, height: 5 };
        let chart = header::chart(app, usize::from(beside.width), usize::from(beside.height));
        frame.render_widget(Paragraph::new(chart), beside);
    }
    frame.render_widget(Paragraph::new(footer(app, width)), keys);
    if app.blind() {
        blind(app, frame, rest);
    } else {
        body(app, frame, rest, alone);
    }
    if app.help {
        help::draw(app, frame, area);
    }
}

/// The list, one cache, or both, and below what could not be read.
fn body(app: &mut App, frame: &mut Frame, area: Rect, alone: bool) {
    let notices = notices(app, usize::from(area.width), usize::from(area.height / 8));
    let (body, below) = split(area, area.height.saturating_sub(notices.len() as u16));
    frame.render_widget(Paragraph::new(notices), below);
    if let Some((now, first)) = &app.cgroups {
        cgroups::draw(app.theme, (now, first), frame, body);
    } else if alone {
        detail::draw(app, frame, body);
    } else if app.open {
        let at = BESIDE_LIST.min(body.width);
        list::draw(app, frame, Rect { width: at, ..body });
        detail::draw(app, frame, Rect { x: body.x + at + 1, width: body.width - at - 1, ..body });
    } else {
        list::draw(app, frame, body);
    }
}

/// The first `rows` of an area, and what is below.
fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let below = Rect { y: area.y + rows, height: area.height - rows, ..area };
    (Rect { height: rows, ..area }, below)
}

/// What could not be read and the command that helps, a line for each file.
fn notices(app: &App, width: usize, most: usize) -> Vec<Line<'static>> {
    // A recording says all that it lacks, most of which no cache needs.
    let of_cache = app.detail.iter().flat_map(|state| &state.missing);
    let of_cache = of_cache.filter(|missing| missing.file.starts_with("/sys/kernel/slab"));
    let missing = app.missing().chain(of_cache).take(most);
    let line = |missing: &Missing| {
        let help = missing.command.as_ref().map_or(String::new(), |command| format!("; try {command}"));
        let text = format!(" {}: {}{help}", missing.file, missing.why);
        Line::styled(app.theme.cut(&text, width), app.theme.notice())
    };
    missing.map(line).collect()
}

/// All there is to see without the caches: slab memory as a whole, and what would help.
fn blind(app: &App, frame: &mut Frame, area: Rect) {
    let (top, below) = split(area, BLIND_CHART_ROWS.min(area.height / 2));
    let inside = Rect { x: top.x + 1.min(top.width), width: top.width.saturating_sub(2), ..top };
    let chart = header::chart(app, usize::from(inside.width), usize::from(inside.height));
    frame.render_widget(Paragraph::new(chart), inside);
    let mut lines = vec![Line::default()];
    for missing in app.missing() {
        let text = format!(" {}: {}. Unknown: {}.", missing.file, missing.why, missing.costs);
        lines.push(Line::styled(text, app.theme.notice()));
        lines.extend(missing.command.as_ref().map(|command| Line::from(format!(" Try: {command}"))));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), below);
}

/// The keys, most needed first, or the filter while it is typed.
fn footer(app: &App, width: usize) -> Line<'static> {
    let theme = app.theme;
    if app.typing.is_some() {
        return Line::from(vec![
            Span::styled(" /", theme.key()),
            Span::raw(app.filter.clone()),
            Span::styled("_", theme.selected()),
            Span::styled("  Enter keeps, Esc drops", theme.dim()),
        ]);
    }
    let mut spans = Vec::new();
    let mut left = width;
    if !app.filter.is_empty() {
        let text = format!(" /{} {} of {} ", app.filter, app.list().len(), app.watch.last().rows.len());
        left = left.saturating_sub(text.chars().count());
        spans.push(Span::styled(text, theme.notice()));
    }
    let keys = [
        ("?", "help"),
        ("q", "quit"),
        ("Enter", if app.open { "list" } else { "detail" }),
        ("/", "find"),
        ("abclnopsuv", "sort"),
        ("r t", "growth"),
        ("Space", if app.paused { "go on" } else { "pause" }),
        ("+ -", "delay"),
        ("w", "window"),
        ("m", if app.cgroups.is_some() { "caches" } else { "cgroups" }),
    ];
    // Without caches there is nothing to choose from.
    let keys =
        keys.into_iter().filter(|(key, _)| !app.blind() || ["?", "q", "Space", "+ -", "w"].contains(key));
    for (key, what) in keys {
        let needs = key.len() + what.len() + 3;
        if needs > left {
            break;
        }
        left -= needs;
        spans.push(Span::styled(format!(" {key}"), theme.key()));
        spans.push(Span::raw(format!(" {what} ")));
    }
    Line::from(spans)
}
