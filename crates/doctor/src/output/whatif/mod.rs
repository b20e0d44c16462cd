//! A what-if as text, JSON, CSV, a mail's table and a page.

mod figures;
mod json;
mod mail;
mod page;
mod per_cpu;
mod table;

pub use json::{changes_frame, whatif_csv, whatif_frame, whatif_json};
pub use mail::whatif_mail;
pub use page::whatif_page;
pub use per_cpu::{per_cpu_csv, per_cpu_json, per_cpu_table};
pub use table::whatif_table;

use crate::measure::split::Split;
use crate::state::State;
use crate::words::size;

/// How the waste of a prediction and the loss of `slablab doctor` go together, in a line: both of today.
fn reconciled(state: &State) -> String {
    let mut total = Split::default();
    state.caches.iter().for_each(|cache| total.add(&Split::of(cache, state)));
    let metadata = total.metadata.map_or(0, |metadata| metadata.total());
    let loss = total.loss();
    let raced = match total.raced.unsigned_abs() {
        0 => String::new(),
        raced => format!(", less {} counted twice", size(raced)),
    };
    format!(
        "waste is the tails of slabs alone. `slablab doctor` says a loss of {}{} for this input: tails {}, free \
         objects {}, alignment, free pointers and debugging {}{raced}",
        if loss < 0 { "-" } else { "" },
        size(loss.unsigned_abs()),
        size(total.tail),
        size(total.free),
        size(metadata)
    )
}
