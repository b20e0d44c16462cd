//! What would be, beside what is.

mod figures;
mod json;
mod mail;
mod page;
mod table;

pub use json::{whatif_csv, whatif_json};
pub use mail::whatif_mail;
pub use page::whatif_page;
pub use table::whatif_table;
