//! `slablab record -- COMMAND`: the kernel's slab allocator while a command runs.
//!
//! ```text
//! run, record
//!   dump                 the state before
//!   Probes::set          on what has no event, where the kernel can
//!   Recorder::start      perf, or an instance of tracefs
//!   slabinfo             once more: what the recorder itself allocated is not part of the change
//!   Snapshots::take      every slab, if the kernel's memory can be read
//!   Session::wait        the command, a signal, the time, or want of room ends it
//!   slabinfo, stop       the same at the end
//!   dump                 the state after
//!   pack                 all of it in one file
//! ```
//! Nothing has a name until the file is complete, and nothing stays switched on: perf and the removers of the
//! instance and of the probes end when this process does, however that comes.

mod count;
mod facts;
mod perf;
mod probes;
mod session;
mod slabs;
mod spool;
mod tracedat;
mod tracefs;

use super::{Args, With};
use crate::instances::root;
use crate::outcome::{Done, Failure, say, tell};
use crate::output::check;
use probes::Probes;
use serde_json::{Value, json};
use session::{End, Session};
use slablab_doctor::state::{
    ABOUT, AFTER, BEFORE, END, END_SLABS, KALLSYMS, PERF_DATA, Package, START, START_SLABS, dump,
};
use slabs::{At, Snapshots};
use spool::{Room, Spooled};
use std::io::{Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to record.
struct Wanted<'a> {
    /// Names of the system kmem; none if only perf can tell.
    events: &'a [String],
    probes: &'a Probes,
    call_chains: bool,
    /// Of each CPU.
    buffer_mb: u64,
    /// Where the file will be, and what is spooled.
    folder: &'a Path,
}

/// What was recorded.
struct Recorded {
    /// The name of its member.
    member: &'static str,
    /// Bytes in front of the streams.
    head: Vec<u8>,
    streams: Vec<Spooled>,
    events: u64,
    lost: u64,
    /// The recorder's.
    version: String,
    /// Events, with their system.
    recorded: Vec<String>,
    /// Why it is not whole.
    problem: Option<String>,
}

/// A recorder that runs.
enum Recorder {
    Perf(perf::Perf),
    Tracefs(tracefs::Tracefs),
}

impl Recorder {
    fn start(with: Option<With>, wanted: &Wanted) -> Result<Recorder, Failure> {
        let perf = || perf::Perf::start(wanted).map(Recorder::Perf);
        let tracefs = || tracefs::Tracefs::start(wanted).map(Recorder::Tracefs);
        match with {
            Some(With::Perf) => perf(),
            Some(With::Tracefs) => tracefs(),
            None => perf().or_else(|first| {
                tracefs().map_err(|second| {
                    format!("neither perf nor tracefs can record this kernel:\n  {first}\n  {second}").into()
                })
            }),
        }
    }

    fn counts(&mut self) -> (u64, u64) {
        match self {
            Recorder::Perf(perf) => perf.counts(),
            Recorder::Tracefs(tracefs) => tracefs.counts(),
        }
    }

    fn is_alive(&mut self) -> bool {
        match self {
            Recorder::Perf(perf) => perf.is_alive(),
            Recorder::Tracefs(tracefs) => tracefs.is_alive(),
        }
    }

    fn stop(self) -> Result<Recorded, Failure> {
        match self {
            Recorder::Perf(perf) => perf.stop(),
            Recorder::Tracefs(tracefs) => tracefs.stop(),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    let (done, said) = record(args)?;
    // The recording is whole, and the exit status the command's, also if nobody reads this.
    say(&said);
    Ok(done)
}

/// Records, and returns what is to be said of it.
pub(super) fn record(args: &Args) -> Result<(Done, String), Failure> {
    let output = writable_output(args)?;
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_path_buf();
    let room = enough_room(&folder)?;
    let events = root().map(|root| facts::events(&root)).unwrap_or_default();
    let mut session = Session::new()?;
    let (before, state) = dump().map_err(|error| Failure::from(error.to_string()))?;
    let kallsyms = facts::kallsyms().map(|text| zstd::bulk::compress(&text, 3)).transpose()?;
    tracefs::clear();
    let probes = Probes::set(root(), !args.no_probes);
    let wanted = Wanted {
        events: &events,
        probes: &probes,
        call_chains: args.call_chains,
        buffer_mb: args.buffer.unwrap_or_else(buffer_mb),
        folder: &folder,
    };
    let mut snapshots = Snapshots::new(!args.no_snapshot);
    let mut recorder = Recorder::start(args.with, &wanted)?;
    let start = std::fs::read("/proc/slabinfo")?;
    snapshots.take();
    let (began, up_s, clock) = (Instant::now(), facts::up_s(), SystemTime::now());
    session.begin(&args.program)?;
    let end = session.wait(&mut recorder, &room, args.time);
    let last = std::fs::read("/proc/slabinfo")?;
    let time = began.elapsed();
    snapshots.take();
    let mut recorded = recorder.stop()?;
    let (after, _) = dump().map_err(|error| Failure::from(error.to_string()))?;
    let problem = problem(&end, &mut recorded);
    if let (Some(problem), true) = (&problem, session.runs()) {
        tell(format_args!("the recording ended: {problem}; the command runs on"));
    }
    let seconds = clock.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut about = about(args, &wanted, &recorded);
    about["page_size_bytes"] = json!(state.page_size);
    about["cpus_online"] = json!(state.cpus.map(|cpus| cpus.online));
    about["started_s"] = json!(seconds);
    about["up_s_at_start"] = json!(up_s);
    about["duration_s"] = json!(time.as_secs_f64());
    about["cut_off"] = json!(problem);
    about["snapshots"] = snapshots.about();
    let done = session.finish()?;
    let parts = Parts { about, before, after, start, last, snapshots: &snapshots, kallsyms, seconds };
    let size = pack(&output, parts, &mut recorded, &mut session)?;
    let said = summary(
        (&output, size),
        &recorded,
        (time, wanted.buffer_mb),
        (&snapshots.sentence(), &probes.sentence()),
        problem.as_deref(),
    );
    let done = match (done, end) {
        (Some(done), _) => done,
        (None, End::Signal(signal)) if args.time.is_some() => Done::Ended { signal },
        _ if recorded.lost > 0 || problem.is_some() => Done::Incomplete,
        _ => Done::Complete,
    };
    Ok((done, said))
}

/// Where the recording will be. Fails now where it would after a long run.
fn writable_output(args: &Args) -> Result<PathBuf, Failure> {
    let output = args.output.clone().unwrap_or_else(|| default_output(args));
    check([], [("-o", output.as_path())])?;
    if output == Path::new("-") || output.exists() && !output.is_file() {
        let what =
            "a recording has several parts, which are put together at its end: expected the name of a file";
        return Err(format!("{}: {what}", output.display()).into());
    }
    drop(slablab_report::AtomicFile::create(&output)?);
    Ok(output)
}

/// The room that the recording has.
fn enough_room(folder: &Path) -> Result<Room, Failure> {
    let room = Room::of(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if !room.is_enough() {
        let what = "too little room for a recording: expected 16 MiB or more that are free, and no smaller limit \
                    of a file's size (ulimit -f)";
        return Err(format!("{}: {what}", folder.display()).into());
    }
    Ok(room)
}

/// Why the recording is not whole.
fn problem(end: &End, recorded: &mut Recorded) -> Option<String> {
    let stopped = recorded.streams.iter_mut().find_map(|stream| stream.stopped.take());
    let full = stopped.map(|error| format!("the disk is full: {error}"));
    let said = full.or(recorded.problem.take());
    match end {
        End::Room => end.problem().or(said),
        // What the recorder says of itself is more exact.
        _ => said.or(end.problem()),
    }
}

/// The description of the recording, without the machine's state and the times.
fn about(args: &Args, wanted: &Wanted, recorded: &Recorded) -> Value {
    json!({
        "schema": "slablab.recording.1",
        "program": format!("slablab {}", env!("CARGO_PKG_VERSION")),
        "command": args.program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "recorder": recorded.version,
        "events": recorded.recorded,
        "probes": wanted.probes.about(),
        "call_chains": args.call_chains,
        "buffer_bytes_per_cpu": wanted.buffer_mb << 20,
        "release": facts::word("/proc/sys/kernel/osrelease"),
        "boot_id": facts::word("/proc/sys/kernel/random/boot_id"),
        "clock": "mono",
        "events_recorded": recorded.events,
        "events_lost": recorded.lost,
    })
}

fn default_output(args: &Args) -> PathBuf {
    let name = args.program.first().map(Path::new).and_then(Path::file_name);
    let name = name.map_or("kernel".into(), |name| name.to_string_lossy());
    PathBuf::from(format!("{name}.recording.tar"))
}

/// 32 MB for each CPU, as far as all buffers take no more than a sixteenth of the memory: locked memory of
/// the kernel.
fn buffer_mb() -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let share_mb = kib.unwrap_or(1 << 20) / 1024 / 16 / cpus;
    // A power of two, as perf wants it.
    1 << share_mb.clamp(1, 32).ilog2()
}

/// What is in the file beside the events.
struct Parts<'a> {
    about: Value,
    before: Vec<u8>,
    after: Vec<u8>,
    start: Vec<u8>,
    last: Vec<u8>,
    snapshots: &'a Snapshots,
    kallsyms: Option<Vec<u8>>,
    seconds: u64,
}

/// How long until another try if the disk is full.
const RETRY: Duration = Duration::from_secs(2);
/// Tries if no terminal is there from which a user could end them.
const TRIES: u32 = 30;

/// Writes the file. A disk that others have filled is waited for: what was recorded is not given up unless
/// the user says so, or a minute has passed without a user. Returns the file's bytes.
fn pack(
    output: &Path,
    parts: Parts<'_>,
    recorded: &mut Recorded,
    session: &mut Session,
) -> Result<u64, Failure> {
    let about = format!("{:#}\n", parts.about);
    let head = match recorded.head.is_empty() {
        true => Vec::new(),
        false => zstd::bulk::compress(&recorded.head, 3)?,
    };
    // In a trace.dat the symbols are inside.
    let kallsyms = parts.kallsyms.filter(|_| recorded.member == PERF_DATA);
    let mut tried = 0;
    loop {
        let mut write = || -> Result<(), Failure> {
            let mut package = Package::create(output, parts.seconds)?;
            let mut add =
                |name: &str, bytes: &[u8]| package.add(name, bytes.len() as u64, &mut Cursor::new(bytes));
            add(ABOUT, about.as_bytes())?;
            add(BEFORE, &parts.before)?;
            add(AFTER, &parts.after)?;
            add(START, &parts.start)?;
            add(END, &parts.last)?;
            for (name, at) in [(START_SLABS, At::Start), (END_SLABS, At::End)] {
                let packed = parts.snapshots.packed(at);
                if !packed.is_empty() {
                    add(name, packed)?;
                }
            }
            kallsyms.as_ref().map(|text| add(KALLSYMS, text)).transpose()?;
            let mut size = head.len() as u64;
            let mut events: Box<dyn Read> = Box::new(Cursor::new(&head));
            for stream in &mut recorded.streams {
                stream.rewind()?;
                size += stream.size;
                events = Box::new(events.chain(stream));
            }
            package.add(recorded.member, size, &mut events)?;
            drop(events);
            Ok(package.commit()?)
        };
        match write() {
            Ok(()) => return Ok(std::fs::metadata(output).map_or(0, |file| file.len())),
            Err(error)
                if is_full(&error.to_string())
                    && !session.is_interrupted()
                    && (tried < TRIES || std::io::stderr().is_terminal()) =>
            {
                if tried == 0 {
                    tell(format_args!(
                        "{error}: free some space; trying again every 2 s, Ctrl-C gives it up"
                    ));
                }
                tried = tried.saturating_add(1);
                std::thread::sleep(RETRY);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether this is the error of a full disk or of a quota, which others can make room in. A limit of the
/// file's size stays.
fn is_full(error: &str) -> bool {
    ["(os error 28)", "(os error 122)"].iter().any(|known| error.contains(known))
}

/// What was recorded, in some lines.
fn summary(
    (output, size): (&Path, u64),
    recorded: &Recorded,
    (time, buffer_mb): (Duration, u64),
    (snapshots, probes): (&str, &str),
    problem: Option<&str>,
) -> String {
    let path = slablab_report::visible::name(&output.display().to_string()).into_owned();
    let lost = match (recorded.lost, recorded.events) {
        (0, _) => "0".to_string(),
        (lost, events) => {
            let percent = lost as f64 * 100.0 / (lost + events) as f64;
            format!("{lost} events, {percent:.1} %: expected a larger --buffer than {buffer_mb} MB")
        }
    };
    let cut_off = problem.map_or(String::new(), |problem| {
        format!("  cut off     {}\n", slablab_report::visible::lines(problem))
    });
    let mb = size as f64 / 1e6;
    format!(
        "{path}: {mb:.1} MB\n  events      {} in {:.2} s, by {}\n  lost        {lost}\n  every slab  {snapshots}\n  probes      {probes}\n{cut_off}  next        slablab verify {path}\n              slablab replay {path} --engine slub@7.1\n              slablab sites {path}\n",
        recorded.events,
        time.as_secs_f64(),
        recorded.version,
    )
}
