//! The list of caches.

use super::app::App;
use super::table::{Column, Table, column_of};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// The caches.
pub(super) fn draw(app: &mut App, frame: &mut Frame, area: Rect) {
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
        if at == cursor {
            // The mark of the cursor goes to the edge, however short the name is.
            let used: usize = spans.iter().map(Span::width).sum();
            spans.push(Span::styled(" ".repeat((width + 1).saturating_sub(used)), theme.selected()));
        }
        let line = Line::from(spans);
        lines.push(if at == cursor { line.style(theme.selected()) } else { line });
    }
    if count == 0 && rows > 0 {
        lines.push(Line::styled(" no cache has this in its name", theme.dim()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}
