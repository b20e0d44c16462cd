//! The answers of the lab as pages.

mod explain;
mod replay;
mod verify;

pub use explain::explain_page;
pub use replay::replay_page;
pub use verify::verify_page;
