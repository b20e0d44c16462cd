//! Kernel memory by cgroup, in place of the caches.

use super::theme::{Theme, bytes, signed};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use slablab_doctor::Owners;
use slablab_doctor::measure::cgroups::charged;

/// The cgroups as lines of text: a head, a line for each, and how many are dying.
pub(super) fn lines(now: &Owners, first: &Owners) -> Vec<String> {
    let found = charged(now, Some(first));
    let mut lines = vec![format!("{:>9} {:>9} {:>9} {:>9}  CGROUP", "SLAB", "RECL", "UNRECL", "GROWN")];
    for charged in &found {
        let part = |part: Option<u64>| part.map_or("-".into(), bytes);
        let (cgroup, grown) = (charged.cgroup, signed(charged.growth));
        let (reclaimable, not) = (part(cgroup.reclaimable), part(cgroup.unreclaimable));
        lines.push(format!(
            "{:>9} {reclaimable:>9} {not:>9} {grown:>9}  {}",
            bytes(charged.bytes),
            charged.name
        ));
    }
    if found.is_empty() {
        lines.push("no memory cgroup says how much kernel memory it is charged for".into());
    }
    lines.extend(now.dying().map(|dying| format!("{dying} removed cgroups still hold memory")));
    lines
}

/// Draws them; what does not fit is left out.
pub(super) fn draw(theme: Theme, (now, first): (&Owners, &Owners), frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width).saturating_sub(1);
    let mut all = lines(now, first).into_iter().map(|line| theme.cut(&format!(" {line}"), width));
    let head = all.next().map(|head| Line::styled(head, theme.title()));
    let rest = all.map(Line::from);
    frame.render_widget(Paragraph::new(head.into_iter().chain(rest).collect::<Vec<_>>()), area);
}
