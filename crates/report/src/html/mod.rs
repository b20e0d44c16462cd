//! One house style for reports: a self-contained page, readable without JavaScript and without a network.
//!
//! ```text
//! Page  ── lede, facts, sections, text, notes, evidence     what is said
//!   ├─ figure   a chart and the table of its numbers        what is shown
//!   │    └─ chart   SVG drawn here, twice: for a wide and for a narrow page
//!   └─ table
//! ```
//!
//! A page is a function of its input: no clock, no random names, so that the same input gives the same bytes.
//! Whatever comes from outside (names of caches, paths, a kernel's release) goes through [`escape`] where it
//! enters markup, and the page forbids itself every load with a content security policy. Colours are
//! variables of the style sheet, light and dark; a dash, a texture or a shape says the same as a colour. Long
//! time lines carry uPlot, which replaces the drawing by one that can be zoomed; what it shows is in the
//! drawing and in the table too.

pub mod chart;
mod escape;
pub mod number;
mod page;
mod table;

pub use escape::{command_line, escape};
pub use page::{Page, name_of};
pub use table::{Align, Cell, Head, Table};
