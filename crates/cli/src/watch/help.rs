//! The keys and what the columns mean, over everything else.

use super::app::App;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use slablab_doctor::watch::SortKey;

const KEYS: [(&str, &str); 10] = [
    ("j k arrows PgUp PgDn g G", "move; the cursor stays on its cache, g lets it go"),
    ("Enter d", "one cache in detail, or the list again"),
    ("/", "find by name"),
    ("r t", "sort by growth: in the window, since the start"),
    ("w", "window of growth: last sample, 60 s, 600 s"),
    ("i", "least first"),
    ("m", "memory cgroups, or the caches again"),
    ("Space", "pause"),
    ("+ -", "longer or shorter delay"),
    ("q Esc Ctrl-C", "quit"),
];

const WORDS: [&str; 4] = [
    "ACTIVE counts objects parked with a CPU too, so 100% is rarely full.",
    "LAST/MIN, START/MIN: bytes a minute; K, M, G are KiB, MiB, GiB.",
    "SIZE: bytes of slabs. Others in Slab: large kmallocs, in no cache.",
    "HISTORY: 5% of the size at least from bottom to top.",
];

/// Draws the box in the middle, or over all of a small screen.
pub(super) fn draw(app: &App, frame: &mut Frame, area: Rect) {
    let theme = app.theme;
    let mut lines = Vec::new();
    for (keys, what) in KEYS {
        lines.push(Line::from(vec![Span::styled(format!(" {keys:<25}"), theme.key()), Span::raw(what)]));
    }
    lines.push(Line::styled(" sort, as in slabtop", theme.title()));
    let sorts: Vec<SortKey> =
        SortKey::ALL.into_iter().filter(|key| !matches!(key.letter(), 'r' | 't')).collect();
    for row in sorts.chunks(3) {
        let mut spans = Vec::new();
        for key in row {
            spans.push(Span::styled(format!("   {}", key.letter()), theme.key()));
            spans.push(Span::raw(format!(" {:<19}", key.title())));
        }
        lines.push(Line::from(spans));
    }
    lines.extend(WORDS.map(|words| Line::from(format!(" {words}"))));
    let (width, height) = (area.width.min(78), area.height.min(lines.len() as u16 + 2));
    let middle =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, middle);
    let block = Block::bordered().title(" keys ").title_bottom(" any key closes ");
    let block = if theme.ascii { block.border_set(ASCII) } else { block };
    frame.render_widget(Paragraph::new(lines).block(block), middle);
}

/// A frame for terminals without lines.
const ASCII: ratatui::symbols::border::Set = ratatui::symbols::border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};
