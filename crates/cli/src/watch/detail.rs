//! One cache: what it is, how its memory splits, who holds it, how it moved.

use super::app::App;
use super::theme::{bytes, duration, signed};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use slablab_lab::state::{Cache, State};
use slablab_lab::watch::Track;

/// Lines of the chart.
const CHART_ROWS: usize = 4;

/// Draws the cache under the cursor.
pub(super) fn draw(app: &App, frame: &mut Frame, area: Rect) {
    let list = app.list();
    let Some(track) = list.get(app.cursor(&list)) else {
        frame.render_widget(Paragraph::new(" no cache"), area);
        return;
    };
    let width = usize::from(area.width).saturating_sub(1);
    let mut lines = vec![Line::styled(format!(" {}", track.row.info.name), app.theme.header())];
    if let Some(state) = &app.detail
        && let [cache] = &state.caches[..]
    {
        about(app, state, cache, width, &mut lines);
    }
    growth(app, track, width, &mut lines);
    frame.render_widget(Paragraph::new(lines), area);
}

fn about(app: &App, state: &State, cache: &Cache, width: usize, lines: &mut Vec<Line<'static>>) {
    let plain = |text: String| Line::from(app.theme.cut(&format!(" {text}"), width));
    let slab = cache.slab_bytes(state.page_size);
    if !cache.aliases.is_empty() {
        lines.push(plain(format!("merged with {}", cache.aliases.join(", "))));
    }
    let true_size = cache.object_size.map_or(String::new(), |size| format!(" ({size} asked for)"));
    lines.push(plain(format!(
        "{} objects of {} bytes{true_size} in a slab of {}, order {}",
        cache.objects_per_slab,
        cache.size,
        bytes(slab),
        cache.order
    )));
    if let Some(attrs) = &cache.attrs {
        let parts = [
            ("slabs", &attrs.slabs),
            ("cpu slabs", &attrs.cpu_slabs),
            ("cpu partial", &attrs.slabs_cpu_partial),
            ("partial", &attrs.partial),
        ];
        for (what, counts) in parts {
            let Some(counts) = counts else { continue };
            let mut text = format!("{what:<12}{}", counts.total.value);
            for (node, count) in &counts.nodes {
                text += &format!("  N{node} {}", count.value);
            }
            for (cpu, count) in &counts.cpus {
                text += &format!("  C{cpu} {}", count.value);
            }
            lines.push(plain(text));
        }
    }
}

fn growth(app: &App, track: &Track, width: usize, lines: &mut Vec<Line<'static>>) {
    let theme = app.theme;
    let watch = &app.watch;
    let (now, start) = (watch.growth_per_minute(track), watch.growth_per_minute_since_start(track));
    let window = watch.window_seconds().map_or("no time".into(), duration);
    lines.push(Line::from(vec![
        Span::raw(format!(" growth  {window} ")),
        Span::styled(format!("{}/min", signed(now)), theme.growth(now)),
        Span::raw(format!("  {} ", duration(watch.seconds()))),
        Span::styled(format!("{}/min", signed(start)), theme.growth(start)),
        Span::raw(format!(" = {}", signed(Some(track.since_start())))),
    ]));
    let history = track.history();
    let (low, high) = (history.iter().min().unwrap_or(&0), history.iter().max().unwrap_or(&0));
    let (_, span) = watch.history();
    let label = format!(" {} to {} over {}", bytes(*low), bytes(*high), duration(span));
    lines.push(Line::styled(label, theme.dim()));
    let drawn = theme.chart_lines(history, width.saturating_sub(1), CHART_ROWS);
    lines.extend(drawn.into_iter().map(|line| Line::styled(format!(" {line}"), theme.chart())));
}
