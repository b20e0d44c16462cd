//! The readers as a program meets them: samples of real recorders, damaged files, hostile files.

mod common;
mod dumps;
mod formats;
mod ftrace;
mod hostile;
mod perfdata;
mod tidy;
mod tracedat;
mod vmrecord;
