//! Memory pressure: scripts on modelled machines, records, and modelled runs beside real ones.

mod judgement;
mod records;
mod run;

pub use judgement::judgement_answer;
pub use records::records_answer;
pub use run::{killed, run_answer};

use slablab_report::document::Named;

/// The schemas of these answers.
pub(super) fn schemas() -> [Named; 3] {
    [judgement::schema(), records::schema(), run::schema()]
}
