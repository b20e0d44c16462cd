//! `slablab whatif`: the same machine with another policy, other boot parameters, other pages, more or fewer CPUs.

use crate::input::write_out;
use crate::{Done, Failure};
use slablab_lab::output::{whatif_csv, whatif_json, whatif_table};
use slablab_lab::state::{Input, read};
use slablab_lab::whatif::grid::Grid;
use slablab_lab::whatif::{Policy, predict};
use slablab_slabs::Preset;
use std::path::PathBuf;

/// Predicts slab memory with something changed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab whatif --max-order 0                       this machine\n  slablab whatif sosreport.tar.xz --page-size 64K --cpus 160\n  slablab whatif dump.tar --max-order 0,1,2,3 --page-size 4K,64K\n\nLists give one line for each combination."
)]
pub(crate) struct Args {
    /// A directory, a tar, a support bundle, a slabinfo; this machine if left out, - for standard input
    input: Option<PathBuf>,
    /// Order policy: clamped, single, halving, patel-v3, slqb, online-cpus ... (a wrong name lists all)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Policy::parse)]
    policy: Vec<Policy>,
    /// slub_max_order
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    max_order: Vec<u8>,
    /// slub_min_order
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    min_order: Vec<u8>,
    /// slub_min_objects; 0 for the rule by CPUs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    min_objects: Vec<u32>,
    /// Bytes in a page, as 4K or 65536
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = page_size)]
    page_size: Vec<u64>,
    /// CPUs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Engine, as `engine[@release][,knob=value]...`; may be repeated (see `slablab engines`)
    #[arg(long = "engine", value_name = "ENGINE")]
    engines: Vec<String>,
    /// Bytes in a page of the input, where it does not tell
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    input_page_size: Option<u64>,
    /// CPUs of the input, where it does not tell
    #[arg(long, value_name = "N")]
    input_cpus: Option<u32>,
    /// Caches to list
    #[arg(short = 'N', long, value_name = "N", default_value_t = 15)]
    lines: usize,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
    /// CSV, a row per change and cache
    Csv,
}

/// Bytes of a page, perhaps in K.
fn page_size(text: &str) -> Result<u64, String> {
    let error = || format!("expected bytes of a page, as 4K, 64K or 65536, found {text}");
    let (digits, shift) = match text.trim_end_matches("iB").strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| error())?;
    number.checked_mul(1 << shift).filter(|bytes| bytes.is_power_of_two()).ok_or_else(error)
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let engine = |text: &String| Preset::parse(text).map_err(|bad| format!("--engine {text}: {bad}"));
    let grid = Grid {
        engines: args.engines.iter().map(engine).collect::<Result<_, _>>()?,
        policies: args.policy,
        max_orders: args.max_order,
        min_orders: args.min_order,
        min_objects: args.min_objects,
        page_sizes: args.page_size,
        cpus: args.cpus,
    };
    let changes = grid.changes()?;
    let state = read(&Input { path: args.input, page_size: args.input_page_size, cpus: args.input_cpus })?;
    let predictions = changes.iter().map(|change| predict(&state, change)).collect::<Result<Vec<_>, _>>()?;
    let text = match args.format {
        Format::Table => whatif_table(&state, &predictions, args.lines),
        Format::Json => serde_json::to_string_pretty(&whatif_json(&state, &predictions))? + "\n",
        Format::Csv => whatif_csv(&predictions),
    };
    write_out(&text, args.output.as_deref())?;
    Ok(if state.missing.is_empty() { Done::Complete } else { Done::Incomplete })
}
