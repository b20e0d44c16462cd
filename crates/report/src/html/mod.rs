//! One house style for reports: a self-contained page, readable without JavaScript and without a network.
//!
//! ```text
//! Page  ── lede, facts, sections, text, notes, evidence     what is said
//!   ├─ figure   a chart and the table of its numbers        what is shown
//!   │    └─ chart   SVG drawn here, twice: for a wide and for a narrow page
//!   ├─ movies   cells whose states change with time, to play
//!   └─ table
//! ```
//!
//! A page is a function of its input: no clock, no random names, so that the same input gives the same bytes.
//! Each text from an input (names of caches, paths, a kernel's release) passes through [`escape`] before it
//! enters markup. The page's content security policy forbids it to load anything. Colours are variables of
//! the style sheet, light and dark. Each colour comes with a dash, a texture or a shape of the same meaning.
//! Pages with long time lines contain uPlot, which replaces the drawing by a chart that can be zoomed. All
//! its values are in the drawing and in the table too.

pub mod chart;
mod escape;
pub mod movie;
pub mod number;
mod page;
mod table;

pub use escape::{command_line, escape};
pub use page::{Page, name_of};
pub use table::{Align, Cell, Head, Table};
