//! A what-if as text, JSON, CSV, a mail's table and a page.

mod figures;
mod json;
mod mail;
mod page;
mod per_cpu;
mod reconciled;
mod table;

pub use json::{changes_frame, whatif_csv, whatif_frame, whatif_json};
pub use mail::whatif_mail;
pub use page::whatif_page;
pub use per_cpu::{per_cpu_csv, per_cpu_json, per_cpu_table};
pub use table::whatif_table;
