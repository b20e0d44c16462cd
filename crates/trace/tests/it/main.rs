//! The trace format as a program meets it: round trips, damaged files, its document.

mod common;
mod damage;
mod document;
mod hostile;
mod round_trip;
mod script;
mod sequences;
