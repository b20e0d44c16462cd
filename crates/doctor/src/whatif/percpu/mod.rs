//! What a kernel allocates for each CPU, cache by cache.
//!
//! ```text
//! PerCpu::of         from dumps of one kernel with different numbers of CPUs
//! PerCpu::nearest    from the built-in table, data/per-cpu.csv: the kernel most like that of a dump
//! ```
//!
//! A dump does not tell which objects belong to a CPU, and two dumps bound them ([`derive`]). The built-in
//! table is what `slablab whatif --input A --input B --format csv` prints for the dumps in examples/dumps.
//! What another release or another architecture allocates for each CPU is not known: it is assumed to be as
//! in the nearest kernel of the table, and [`PerCpu::assumed`] says so.

mod derive;
mod table;

pub use table::{COLUMNS, Kernel, PerCpu, Rate};
