//! How a prediction goes together with what `slablab doctor` says.

use crate::measure::split::Split;
use crate::state::State;
use crate::words::size;

/// How the waste of a prediction and the loss of `slablab doctor` go together, in a line: both of today.
pub(super) fn reconciled(state: &State) -> String {
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
