//! What would be, beside what is.

mod json;
mod table;

pub use json::{whatif_csv, whatif_json};
pub use table::whatif_table;
