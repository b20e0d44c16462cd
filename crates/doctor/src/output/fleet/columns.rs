//! The columns of machines.

use crate::fleet::{Machine, Saved};
use crate::whatif::Change;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// One end of what a change saves, or the middle.
type End = fn(Saved) -> i64;

/// A machine: its newest dump.
pub(super) fn machines(changes: &[Change]) -> Columns<Machine> {
    let columns = Columns::<Machine>::default()
        .key("machine", |machine| Cell::Name(machine.name.clone()))
        .key("dump", |machine| Cell::Name(machine.path.display().to_string()))
        .key("group", |machine| Cell::Name(machine.group.clone()))
        .key("memory_bytes", |machine| match machine.memory {
            0 => Cell::Empty,
            bytes => Cell::Count(bytes),
        })
        .or_unknown()
        .key("slab_bytes", |machine| Cell::Count(machine.slabs))
        .key("unreclaimable_bytes", |machine| Cell::Count(machine.unreclaimable))
        .key("loss_bytes", |machine| Cell::Number(machine.loss as f64, 0));
    let ends: [(&str, End); 3] =
        [("low", |saved| saved.low), ("likely", |saved| saved.likely), ("high", |saved| saved.high)];
    let mut all = columns;
    for (at, change) in changes.iter().enumerate() {
        let word = change.to_string().replace(['=', ' ', '@', '.', ','], "_");
        for (end, of) in ends {
            let saved = move |machine: &Machine| {
                let known = machine.saved.get(at).copied().flatten();
                known.map_or(Cell::Empty, |saved| Cell::Number(of(saved) as f64, 0))
            };
            all = all.key(format!("{word}_saves_{end}_bytes"), saved).or_unknown();
        }
    }
    all
}
