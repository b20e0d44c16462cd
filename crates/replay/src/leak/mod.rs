//! A leak while it happens: the states of a machine before and after some time, and a recording of that
//! time, as one answer. It names what grew, who holds it, which code allocates it, and what ends it.
//!
//! ```text
//! Evidence            a recording with its states, snapshots, or one snapshot
//! examine             Evidence becomes Leak
//!   worth             growth that is worth a sentence in so short a time
//!   Suspect           caches that grew together: holder, call sites, what ends it
//!     Course          whether it grew in each quarter of the time: a leak does, a load that starts does not
//!   sentence          the answer in some sentences
//! ```

mod evidence;
mod examine;
mod found;
pub(crate) mod sentence;
pub(crate) mod suspect;

pub use evidence::{Evidence, Progress};
pub use examine::examine;
pub use found::{Judgement, Leak};
pub use suspect::{Course, Suspect};
