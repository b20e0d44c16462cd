//! The rows of an explanation for programs.

use super::columns::{self, Moving};
use crate::explain::Explained;
use slablab_report::frame::Frame;
use slablab_report::html::Cell;
use slablab_stats::shapley::Mean;

/// A row for each measure and policy: what the policy carries of the measure's change.
pub fn explain_frame(explained: &Explained) -> Frame {
    let keys = ["measure", "unit", "from", "to", "change", "policy", "part", "give_or_take", "alone", "last"];
    let mut frame = Frame::new(keys);
    let columns = columns::measures(&explained.items);
    for one in &explained.measures {
        let measure: Vec<Cell> = columns.cells(&Moving::new(one)).take(5).collect();
        for (item, part) in explained.items.iter().zip(&one.parts) {
            let ends = [part.alone, part.last].map(|end| Cell::Change(end as i64));
            let policy = [Cell::Name(item.name.clone())];
            let cells = measure.iter().cloned().chain(policy).chain(mean_cells(&part.mean));
            frame.row(cells.chain(ends));
        }
    }
    frame
}

/// A row for each measure and pair of policies: what both do beyond what each does without the other.
pub fn explain_pairs_frame(explained: &Explained) -> Frame {
    let mut frame = Frame::new(["measure", "policy", "other_policy", "together", "give_or_take"]);
    for one in &explained.measures {
        for pair in &one.interactions {
            let names = pair.players.map(|item| Cell::Name(explained.items[item].name.clone()));
            let measure = std::iter::once(Cell::Name(one.measure.name.clone()));
            frame.row(measure.chain(names).chain(mean_cells(&pair.mean)));
        }
    }
    frame
}

/// A mean, and half of its interval if it is an estimate.
fn mean_cells(mean: &Mean) -> [Cell; 2] {
    [Cell::Number(mean.value(), 0), mean.give_or_take.map_or(Cell::Empty, |half| Cell::Number(half, 0))]
}
