//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

pub(crate) mod doctor;
mod orders;
mod whatif;

pub use doctor::{
    Shown, doctor_csv, doctor_frame, doctor_json, doctor_page, doctor_prometheus, doctor_table,
};
pub use orders::{orders_csv, orders_json, orders_table};
pub use whatif::{
    changes_frame, whatif_csv, whatif_frame, whatif_json, whatif_mail, whatif_page, whatif_table,
};
pub use whatif::{per_cpu_csv, per_cpu_json, per_cpu_table};
