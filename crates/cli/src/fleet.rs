//! `slablab fleet`: many dumps as one answer.

use crate::input::{Progress, expect_file};
use crate::interrupts::Interrupts;
use crate::outcome::{Done, Failure};
use crate::output::Format;
use crate::rows::ListArgs;
use slablab_doctor::fleet::{self, By};
use slablab_doctor::output::fleet_answer;
use slablab_doctor::whatif::Change;
use slablab_engines::parse;
use std::path::PathBuf;

/// `slub_max_order` whose saving is told if nothing else is asked.
const MAX_ORDER: u8 = 0;

/// Looks at many dumps.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  slablab fleet dumps/                            every dump in a folder, and in the folders below
  slablab fleet a.tar.xz b.tar.xz --by cpus
  slablab fleet dumps/ --max-order 1 --engine slub@7.1   what each would save over all machines
  slablab fleet dumps/ --format csv -o fleet.csv  a row for each machine

Several dumps of one host (by the name in them) are one machine: the newest counts, and what grew since the
oldest is looked at. docs/fleet.md says what stands out.")]
pub(crate) struct Args {
    /// Dumps of any kind that `slablab doctor` reads, and folders of them
    #[arg(required = true, value_name = "DUMP")]
    dumps: Vec<PathBuf>,
    /// What machines are grouped by: they stand out within their group
    #[arg(long, value_enum, default_value_t = Grouping::Release)]
    by: Grouping,
    /// Tell what this slub_max_order (slab_max_order) would save over all; may be repeated [default: 0]
    #[arg(long, value_name = "N")]
    max_order: Vec<u8>,
    /// Tell what this engine or release would save over all, as `slub@7.1`; may be repeated
    #[arg(long = "engine", value_name = "ENGINE")]
    engines: Vec<String>,
    #[command(flatten)]
    list: ListArgs<Format>,
}

/// Groups of machines.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Grouping {
    /// The kernel's release, as 6.12
    Release,
    /// The number of CPUs
    Cpus,
    /// The architecture
    Arch,
    /// The folder that a dump is in
    Folder,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    for dump in &args.dumps {
        expect_file("DUMP", dump, "files and folders")?;
    }
    args.list.out.check(args.dumps.iter().map(|dump| ("DUMP", dump.as_path())))?;
    let engine = |text: &String| parse(text).map_err(|bad| format!("--engine {text}: {bad}"));
    let engines = args.engines.iter().map(engine).collect::<Result<Vec<_>, _>>()?;
    let max_orders = match (&args.max_order[..], &engines[..]) {
        ([], []) => vec![MAX_ORDER],
        _ => args.max_order,
    };
    let of_order = |order| Change { max_order: Some(order), ..Change::default() };
    let of_engine = |engine| Change { engine: Some(engine), ..Change::default() };
    let changes: Vec<Change> =
        max_orders.into_iter().map(of_order).chain(engines.into_iter().map(of_engine)).collect();
    let by = match args.by {
        Grouping::Release => By::Release,
        Grouping::Cpus => By::Cpus,
        Grouping::Arch => By::Arch,
        Grouping::Folder => By::Folder,
    };
    let progress = Progress::new("fleet");
    let interrupts = Interrupts::new(&progress)?;
    let dumps = fleet::dumps(&args.dumps)?;
    let fleet = fleet::read(&dumps, by, &changes, &|done, all| progress.at(done, all));
    drop(progress);
    if fleet.machines.is_empty() {
        let why = fleet.unread.first().map_or("the folder is empty".into(), |first| first.why.clone());
        return Err(format!("none of {} dumps could be read: {why}", dumps.len()).into());
    }
    let _whole = interrupts.hold();
    args.list.answer(&fleet_answer(&fleet, args.list.lines))?;
    Ok(if fleet.unread.is_empty() { Done::Complete } else { Done::Incomplete })
}
