//! The answers of the lab as pages.

mod doctor;
mod explain;
mod replay;
mod verify;
mod whatif;

pub use doctor::doctor_page;
pub use explain::explain_page;
pub use replay::replay_page;
pub use verify::verify_page;
pub use whatif::whatif_page;
