//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

pub(crate) mod doctor;
mod fleet;
mod orders;
mod what;
mod whatif;

pub use doctor::{Shown, doctor_answer, doctor_frame, doctor_text};
pub use fleet::fleet_answer;
pub use orders::orders_answer;
pub use what::{what_answer, what_list_answer};
pub use whatif::{changes_frame, per_cpu_answer, whatif_answer};

use slablab_report::document::{Named, named};

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    let own = [
        named::<doctor::DoctorDocument>(),
        named::<fleet::FleetDocument>(),
        named::<orders::OrdersDocument>(),
        named::<what::WhatDocument>(),
    ];
    own.into_iter().chain(whatif::schemas()).collect()
}
