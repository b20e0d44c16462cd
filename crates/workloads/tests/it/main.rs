//! The trace format as a program meets it: round trips, damaged files, its document.

mod common;
mod damage;
mod document;
mod round_trip;
mod script;
