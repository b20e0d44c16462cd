//! The lines above the list: slabtop's, and slab memory as the kernel counts it.

use super::app::App;
use super::theme::{bytes, duration, signed};
use ratatui::text::{Line, Span};
use slablab_doctor::watch::percent;

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
pub(super) fn slabtop(app: &App) -> Vec<Line<'static>> {
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

/// Slab memory as the kernel counts it, the part in the caches, and its growth. Parts that do not fit are
/// left out.
pub(super) fn memory(app: &App, width: usize) -> Line<'static> {
    let theme = app.theme;
    let caches = app.watch.last().totals().bytes;
    let (growth, since_start) = app.watch.total_per_minute();
    // One sample has not moved.
    let rate = |words, rate: Option<i64>| match rate {
        Some(rate) => format!("{words}{}/min", signed(Some(rate))),
        None => String::new(),
    };
    let (now, start) = (rate("; ", growth), rate(", start ", since_start));
    let texts = match app.watch.last().memory {
        None => vec![format!(" Caches {}", bytes(caches))],
        Some(memory) => {
            let slab = format!(" Slab {}", bytes(memory.slab));
            let parts = match memory.slab.checked_sub(caches) {
                _ if app.blind() => slab.clone(),
                Some(outside) => format!("{slab}: caches {}, others {}", bytes(caches), bytes(outside)),
                // A CPU adds its changes to the kernel's figure now and then only.
                None => {
                    format!("{slab}: caches {}, {} uncounted", bytes(caches), bytes(caches - memory.slab))
                }
            };
            let share = percent(memory.reclaimable, memory.slab).unwrap_or(0.0);
            let with_share = |words| format!("{parts}, {share:.0}% {words}");
            vec![with_share("reclaimable"), with_share("recl."), parts.clone(), slab]
        }
    };
    let fits = |text: &&String, tail: usize| text.chars().count() + tail <= width;
    let text = texts.iter().find(|text| fits(text, now.len() + start.len()));
    let mut spans = vec![Span::styled(text.or(texts.last()).cloned().unwrap_or_default(), theme.title())];
    spans.push(Span::styled(now, theme.growth(growth)));
    if text.is_some() {
        spans.push(Span::styled(start, theme.growth(since_start)));
    }
    Line::from(spans)
}

/// Slab memory over time: a label, and a chart of the lines that are left.
pub(super) fn chart(app: &App, width: usize, height: usize) -> Vec<Line<'static>> {
    let (values, span) = app.watch.history();
    let (low, high) = (values.iter().min().unwrap_or(&0), values.iter().max().unwrap_or(&0));
    let label = format!("slab memory, {}: {} to {}", duration(span), bytes(*low), bytes(*high));
    let mut lines = vec![Line::styled(label, app.theme.dim())];
    let drawn = app.theme.chart_lines(values, width, height.saturating_sub(1));
    lines.extend(drawn.into_iter().map(|line| Line::styled(line, app.theme.chart())));
    lines
}
