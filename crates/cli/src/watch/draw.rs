//! The screen: header, list or one cache or both, notices, keys.

use super::app::App;
use super::table::{Column, Table, column_of};
use super::theme::{bytes, duration, signed};
use super::{detail, help};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use slablab_lab::watch::percent;

/// Rows from which slabtop's whole header is shown.
const FULL_HEADER_ROWS: u16 = 18;
/// Columns from which the header has room for a chart beside it, and where that begins.
const CHART_COLUMNS: u16 = 110;
const CHART_FROM: u16 = 78;
/// Columns from which one cache is shown beside the list.
const BESIDE_COLUMNS: u16 = 140;
const BESIDE_LIST: u16 = 84;

/// Draws everything.
pub(super) fn draw(app: &mut App, frame: &mut Frame) {
    let area = frame.area();
    let whole = area.height >= FULL_HEADER_ROWS;
    let beside = area.width >= BESIDE_COLUMNS;
    let alone = app.open && !beside;
    let width = usize::from(area.width);
    let mut header = vec![title(app, true)];
    if whole && !alone {
        header.extend(slabtop_header(app));
    }
    header.push(memory(app, width));
    let notices = notices(app, width, area.height);
    let (top, rest) = split(area, header.len() as u16);
    let (rest, keys) = split(rest, rest.height.saturating_sub(1));
    let (body, below) = split(rest, rest.height.saturating_sub(notices.len() as u16));
    let wide = whole && !alone && area.width >= CHART_COLUMNS;
    frame.render_widget(Paragraph::new(header), top);
    if wide {
        let beside = Rect { x: CHART_FROM, width: area.width - CHART_FROM - 1, y: top.y + 1, height: 5 };
        chart(app, frame, beside);
    }
    frame.render_widget(Paragraph::new(notices), below);
    frame.render_widget(Paragraph::new(footer(app, width)), keys);
    match (app.open, beside) {
        (false, _) => list(app, frame, body),
        (true, false) => detail::draw(app, frame, body),
        (true, true) => {
            let at = BESIDE_LIST.min(body.width);
            list(app, frame, Rect { width: at, ..body });
            let right = Rect { x: body.x + at + 1, width: body.width - at - 1, ..body };
            detail::draw(app, frame, right);
        }
    }
    if app.help {
        help::draw(app, frame, area);
    }
}

/// The first `rows` of an area, and what is below.
fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let below = Rect { y: area.y + rows, height: area.height - rows, ..area };
    (Rect { height: rows, ..area }, below)
}

/// What is watched, in which order, and on a screen how often and how long.
pub(super) fn title(app: &App, live: bool) -> Line<'static> {
    let theme = app.theme;
    let mut spans = vec![Span::styled(" slablab", theme.title())];
    let mut say = |text: String, style| spans.push(Span::styled(text, style));
    if let Some(release) = app.source.release() {
        say(format!("  {release}"), theme.title());
    }
    let sorted = format!("  by {}{}", app.sort.title(), if app.inverted { ", least first" } else { "" });
    say(sorted, theme.title());
    if !live {
        return Line::from(spans);
    }
    if app.paused {
        say("  PAUSED".into(), theme.notice());
    } else if app.over {
        say("  END OF RECORDING".into(), theme.notice());
    } else {
        say(format!("  every {} s", app.delay_s), theme.dim());
    }
    say(format!("  tick {}, {}", app.watch.ticks(), duration(app.watch.seconds())), theme.dim());
    Line::from(spans)
}

/// slabtop's five lines.
pub(super) fn slabtop_header(app: &App) -> Vec<Line<'static>> {
    let totals = app.watch.last().totals();
    let share = |part, whole| percent(part, whole).map_or("-".into(), |percent| format!("{percent:.1}%"));
    let kib = |bytes: u64| format!("{:.2}K", bytes as f64 / 1024.0);
    let pair = |what: &str, part: u64, whole: u64| {
        Line::from(format!(" {what:<35}: {part} / {whole} ({})", share(part, whole)))
    };
    let average = totals.object_bytes.checked_div(totals.objects).unwrap_or(0);
    let average = match totals.objects {
        0 => kib(average),
        objects => format!("{:.2}K", totals.object_bytes as f64 / objects as f64 / 1024.0),
    };
    vec![
        pair("Active / Total Objects (% used)", totals.active_objects, totals.objects),
        pair("Active / Total Slabs (% used)", totals.active_slabs, totals.slabs),
        pair("Active / Total Caches (% used)", totals.active_caches, totals.caches),
        Line::from(format!(
            " {:<35}: {} / {} ({})",
            "Active / Total Size (% used)",
            kib(totals.active_bytes),
            kib(totals.object_bytes),
            share(totals.active_bytes, totals.object_bytes)
        )),
        Line::from(format!(
            " {:<35}: {} / {average} / {}",
            "Minimum / Average / Maximum Object",
            kib(totals.smallest),
            kib(totals.largest)
        )),
    ]
}

/// Slab memory as the kernel counts it, what of it is in the caches, and how it moves; as much of it as fits.
pub(super) fn memory(app: &App, width: usize) -> Line<'static> {
    let theme = app.theme;
    let caches = app.watch.last().totals().bytes;
    let (growth, since_start) = app.watch.total_per_minute();
    let (now, start) = (format!("; {}/min", signed(growth)), format!(", start {}/min", signed(since_start)));
    let texts = match app.watch.last().memory {
        None => vec![format!(" Caches {}", bytes(caches))],
        Some(memory) => {
            let slab = format!(" Slab {}", bytes(memory.slab));
            let parts = match memory.slab.checked_sub(caches) {
                Some(outside) => format!("{slab}: caches {}, others {}", bytes(caches), bytes(outside)),
                // A CPU adds its changes to the kernel's figure now and then only.
                None => {
                    format!("{slab}: caches {}, {} uncounted", bytes(caches), bytes(caches - memory.slab))
                }
            };
            let share = percent(memory.reclaimable, memory.slab).unwrap_or(0.0);
            let with_share = |words| format!("{parts}, {share:.0}% {words}");
            vec![with_share("reclaimable"), with_share("recl."), parts, slab]
        }
    };
    let room = width.saturating_sub(now.len() + start.len());
    let fits = texts.iter().find(|text| text.chars().count() <= room);
    Line::from(vec![
        Span::styled(fits.or(texts.last()).cloned().unwrap_or_default(), theme.title()),
        Span::styled(now, theme.growth(growth)),
        Span::styled(start, theme.growth(since_start)),
    ])
}

/// Slab memory over time, at the right of the header.
fn chart(app: &App, frame: &mut Frame, area: Rect) {
    let (values, span) = app.watch.history();
    let (Some(low), Some(high)) = (values.iter().min(), values.iter().max()) else { return };
    let label = format!("slab memory, {}: {} to {}", duration(span), bytes(*low), bytes(*high));
    let mut lines = vec![Line::styled(label, app.theme.dim())];
    let height = usize::from(area.height).saturating_sub(1);
    let drawn = app.theme.chart_lines(values, usize::from(area.width), height);
    lines.extend(drawn.into_iter().map(|line| Line::styled(line, app.theme.chart())));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The caches.
fn list(app: &mut App, frame: &mut Frame, area: Rect) {
    let rows = usize::from(area.height).saturating_sub(1);
    let (cursor, count) = {
        let list = app.list();
        (app.cursor(&list), list.len())
    };
    // The cursor stays in sight, and the list fills the screen while it can.
    app.top = app.top.max((cursor + 1).saturating_sub(rows)).min(cursor).min(count.saturating_sub(rows));
    app.page = rows;
    let theme = app.theme;
    let list = app.list();
    let width = usize::from(area.width).saturating_sub(1);
    let table = Table::new(&app.watch, &list, Some(width), app.sort);
    let sorted = column_of(app.sort);
    let mut heads = vec![Span::raw(" ")];
    for (column, width) in table.columns() {
        let style = if *column == sorted { theme.header() } else { theme.title() };
        heads.push(Span::styled(table.head(*column, *width), style));
        heads.push(Span::raw(" "));
    }
    heads.pop();
    let mut lines = vec![Line::from(heads)];
    for (at, track) in list.iter().enumerate().skip(app.top).take(rows) {
        let mark = if at == cursor { ">" } else { " " };
        let mut spans = vec![Span::raw(mark)];
        for (column, width) in table.columns() {
            let text = table.fitted(theme, *column, *width, track);
            let style = match column {
                _ if at == cursor => theme.selected(),
                Column::Growth | Column::GrowthSinceStart => theme.growth(table.growth(*column, track)),
                Column::History => theme.chart(),
                _ => Default::default(),
            };
            spans.push(Span::styled(text, style));
            spans.push(Span::raw(" "));
        }
        spans.pop();
        let line = Line::from(spans);
        lines.push(if at == cursor { line.style(theme.selected()) } else { line });
    }
    if count == 0 && rows > 0 {
        let why = if app.filter.is_empty() { "no caches" } else { "no cache has this in its name" };
        lines.push(Line::styled(format!(" {why}"), theme.dim()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// What could not be read, and the command that helps: one line for each file, if there is room.
fn notices(app: &App, width: usize, height: u16) -> Vec<Line<'static>> {
    let of_cache = app.detail.iter().flat_map(|state| &state.missing).filter(|_| app.open);
    let room = usize::from(height / 8);
    let missing = app.source.missing().iter().chain(of_cache);
    let line = |missing: &slablab_lab::state::Missing| {
        let help = missing.command.as_ref().map_or(String::new(), |command| format!(": {command}"));
        let text = format!(" {}: {}; unknown: {}{help}", missing.file, missing.why, missing.costs);
        Line::styled(app.theme.cut(&text, width), app.theme.notice())
    };
    missing.take(room).map(line).collect()
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
    let keys: [(&str, &str); 9] = [
        ("?", "help"),
        ("q", "quit"),
        ("Enter", if app.open { "list" } else { "detail" }),
        ("/", "find"),
        ("abclnopsuv", "sort"),
        ("r t", "growth"),
        ("Space", if app.paused { "go on" } else { "pause" }),
        ("+ -", "delay"),
        ("w", "window"),
    ];
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
