//! Recording by the kernel's own files: an instance below /sys/kernel/tracing/instances, which has buffers,
//! events and a clock of its own, so that nobody else's tracing is touched.
//!
//! A shell stands by, which removes the instance when its standard input ends: when this process has ended,
//! however that came. If both are killed, the next recording removes the instance: its name has the number
//! and the start of its process.

use super::spool::{CLOSED, Spool, Spooled, hurry};
use super::tracedat::{Head, Ring};
use super::{Recorded, Wanted, probes};
use crate::instances::{PREFIX, dead, root, told};
use crate::outcome::{Failure, tell};
use rustix::fs::OFlags;
use slablab_doctor::state::TRACE_DAT;
use slablab_recorder::Owner;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clocks that all CPUs share, the wanted one first.
const CLOCKS: [&str; 2] = ["mono", "global"];

/// How long a reader of buffers waits when all are empty: they fill up in a hundred times as long.
const NAP: Duration = Duration::from_millis(20);

/// CPUs that one thread reads.
const CPUS_PER_THREAD: usize = 4;

/// How often the kernel's short list of task names is read: it holds some hundreds.
const NAMES_EVERY: Duration = Duration::from_secs(1);

/// Switches the instance at `$1` off and removes it, when standard input ends.
const REMOVE: &str = r#"read line
i=0
while [ $i -lt 100 ]; do
  i=$((i + 1))
  [ -d "$1" ] || exit 0
  echo 0 > "$1/tracing_on"; echo > "$1/set_event"
  rmdir "$1" && exit 0
  sleep 0.1
done"#;

/// CPUs, and what was read of their buffers.
type Streams = Vec<(u32, Spooled)>;

/// A running recording.
pub(super) struct Tracefs {
    /// Readers end before the instance is removed: it is in use as long as they have its files open.
    readers: Vec<JoinHandle<std::io::Result<Streams>>>,
    stop: Arc<AtomicBool>,
    instance: Instance,
    events: Vec<String>,
    /// Systems of which the file has the formats: kmem, and the probes'.
    systems: [String; 2],
    call_chains: bool,
    names: BTreeMap<u32, String>,
    names_at: Instant,
}

/// Removes the instances and the probes of recorders that were killed, and names them. A kernel without
/// tracefs has none.
pub(super) fn clear() {
    let Ok(root) = root() else { return };
    for path in dead(&root) {
        match fs::remove_dir(&path) {
            Ok(()) => tell(format_args!(
                "{}: removed; a slablab that was killed had left it, with its buffers",
                path.display()
            )),
            // In use: its recorder lives in another container, whose processes are not seen here.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            Err(error) => tell(format_args!("{}: {error}", path.display())),
        }
    }
    // Behind the instances, which may use them.
    probes::clear(&root);
}

impl Tracefs {
    /// Makes an instance, and switches the events on.
    pub(super) fn start(wanted: &Wanted) -> Result<Tracefs, Failure> {
        let instance = Instance::new(&root()?)?;
        Tracefs::begin(instance, wanted)
    }

    /// Records with an instance that was just made.
    fn begin(instance: Instance, wanted: &Wanted) -> Result<Tracefs, Failure> {
        instance.write("tracing_on", "0")?;
        let known = instance.read("trace_clock")?;
        let has = |clock: &&&str| known.split([' ', '[', ']', '\n']).any(|word| word == **clock);
        let clock = CLOCKS.iter().find(has).ok_or_else(|| {
            format!("{}: expected the clock mono or global, found {}", instance.0.display(), known.trim())
        })?;
        instance.write("trace_clock", clock)?;
        instance.write("buffer_size_kb", &(wanted.buffer_mb * 1024).to_string())?;
        if wanted.call_chains {
            instance.write("options/stacktrace", "1")?;
        }
        for event in wanted.events {
            instance.write(&format!("events/kmem/{event}/enable"), "1")?;
        }
        let group = &wanted.probes.group;
        for probe in &wanted.probes.set {
            let file = |name: &str| format!("events/{group}/{}/{name}", probe.name);
            instance.write(&file("filter"), &probe.filter)?;
            instance.write(&file("enable"), "1")?;
        }
        let cpus = instance.cpus()?;
        let stop = Arc::new(AtomicBool::new(false));
        let page_size = instance.page_size()?;
        let mut tracefs = Tracefs {
            readers: Vec::new(),
            stop: stop.clone(),
            instance,
            events: wanted.events.to_vec(),
            systems: ["kmem".into(), group.clone()],
            call_chains: wanted.call_chains,
            names: BTreeMap::new(),
            names_at: Instant::now(),
        };
        for cpus in cpus.chunks(CPUS_PER_THREAD) {
            let open = |&cpu: &u32| {
                let path = tracefs.instance.0.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                let flags = OFlags::NONBLOCK.bits() as i32;
                let file = File::options().read(true).custom_flags(flags).open(&path);
                let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
                let spool = Spool::new(wanted.folder);
                let spool = spool.map_err(|error| format!("{}: {error}", wanted.folder.display()))?;
                Ok::<_, Failure>(Buffer { cpu, file, spool })
            };
            let buffers = cpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
            let stop = stop.clone();
            tracefs.readers.push(std::thread::spawn(move || read(buffers, page_size, &stop)));
        }
        tracefs.instance.write("tracing_on", "1")?;
        Ok(tracefs)
    }

    /// Events recorded and lost so far.
    pub(super) fn counts(&mut self) -> (u64, u64) {
        let cpus = self.instance.cpus().unwrap_or_default();
        let stats = cpus.iter().map(|cpu| self.instance.read(&format!("per_cpu/cpu{cpu}/stats")));
        let (mut events, mut lost) = (0, 0);
        for text in stats.map(Result::unwrap_or_default) {
            let value = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
                line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
            };
            events += value("entries") + value("read events");
            lost += value("overrun") + value("commit overrun") + value("dropped events");
        }
        (events, lost)
    }

    /// Whether it still records.
    pub(super) fn is_alive(&mut self) -> bool {
        if self.names_at.elapsed() >= NAMES_EVERY {
            self.read_names();
        }
        !self.readers.iter().any(JoinHandle::is_finished)
    }

    /// Ends the recording.
    pub(super) fn stop(mut self) -> Result<Recorded, Failure> {
        self.instance.write("tracing_on", "0")?;
        self.stop.store(true, Relaxed);
        let mut streams = BTreeMap::new();
        for reader in std::mem::take(&mut self.readers) {
            streams.extend(reader.join().expect("it does not panic")?);
        }
        self.read_names();
        let (entries, lost) = self.counts();
        // An entry of its own follows each event, with its call chain.
        let events = if self.call_chains { entries / 2 } else { entries };
        let head = self.head(&streams)?;
        Ok(Recorded {
            member: TRACE_DAT,
            head,
            streams: streams.into_values().collect(),
            events,
            lost,
            version: "tracefs".into(),
            recorded: self.events.iter().map(|event| format!("kmem:{event}")).collect(),
            problem: None,
        })
    }

    /// The part of a trace.dat in front of the events.
    fn head(&self, streams: &BTreeMap<u32, Spooled>) -> Result<Vec<u8>, Failure> {
        let (instance, root) = (&self.instance, self.instance.root());
        let formats = |system: &str| {
            let mut folders: Vec<_> = fs::read_dir(root.join("events").join(system))
                .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
                .unwrap_or_default();
            folders.sort();
            folders.iter().filter_map(|folder| whole(&folder.join("format")).ok()).collect::<Vec<_>>()
        };
        let text = |name: &str| whole(&root.join("events").join(name)).unwrap_or_default();
        let names: String = self.names.iter().map(|(pid, name)| format!("{pid} {name}\n")).collect();
        let stats = streams.keys().map(|cpu| {
            let stats = instance.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
            format!("CPU: {cpu}\n{stats}")
        });
        let ring = |(&cpu, spooled): (&u32, &Spooled)| Ring { cpu, bytes: spooled.bytes };
        let head = Head {
            header_page: &text("header_page"),
            header_event: &text("header_event"),
            ftrace: &formats("ftrace"),
            systems: &self.systems.each_ref().map(|system| (&system[..], formats(system))),
            kallsyms: &super::facts::kallsyms().unwrap_or_default(),
            names: &names,
            clock: &instance.read("trace_clock")?,
            stats: &stats.collect::<Vec<_>>(),
            rings: &streams.iter().map(ring).collect::<Vec<_>>(),
        };
        Ok(head.bytes(self.instance.page_size()?))
    }

    fn read_names(&mut self) {
        self.names_at = Instant::now();
        let list = whole(&self.instance.root().join("saved_cmdlines")).unwrap_or_default();
        for line in String::from_utf8_lossy(&list).lines() {
            if let Some((pid, name)) = line.split_once(' ')
                && let Ok(pid) = pid.parse()
                && name != "<...>"
            {
                self.names.insert(pid, name.to_string());
            }
        }
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        // After an error. A reader ends when its buffers are empty, which they never are while CPUs write
        // faster; nothing of the recording is kept.
        let _ = self.instance.write("tracing_on", "0");
        CLOSED.store(true, Relaxed);
        self.stop.store(true, Relaxed);
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// The buffer of a CPU.
struct Buffer {
    cpu: u32,
    file: File,
    spool: Spool,
}

/// Reads buffers, page by page, until `stop` and then until they are empty, or until there is no room.
fn read(mut buffers: Vec<Buffer>, page_size: usize, stop: &AtomicBool) -> std::io::Result<Streams> {
    hurry();
    let mut page = vec![0; page_size];
    'all: loop {
        // Read before the pages are: what came before the stop is read once more.
        let last = stop.load(Relaxed);
        let mut found = false;
        for buffer in &mut buffers {
            // One CPU that is always faster than this must not keep it from the others.
            for _ in 0..1024 {
                match buffer.file.read(&mut page) {
                    Ok(0) => break,
                    Ok(count) => {
                        page[count..].fill(0);
                        found = true;
                        if buffer.spool.push(&page) {
                            break 'all;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if last && !found {
            break;
        }
        if !found {
            std::thread::sleep(NAP);
        }
    }
    buffers.into_iter().map(|buffer| Ok((buffer.cpu, buffer.spool.finish()?))).collect()
}

/// An instance of tracing. Its end removes it.
struct Instance(PathBuf, Option<Child>);

impl Instance {
    fn new(root: &Path) -> Result<Instance, Failure> {
        let path = root.join("instances").join(format!("{PREFIX}{}", Owner::own()));
        // Before the instance is there: nobody may end this process in between and leave it.
        let mut command = Command::new("sh");
        command.args(["-c", REMOVE, "sh"]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut remover = command.spawn().ok();
        if let Err(error) = fs::create_dir(&path) {
            // What is there is another's.
            if let Some(remover) = &mut remover {
                let _ = remover.kill().and_then(|()| remover.wait());
            }
            return Err(told(&path, &error));
        }
        Ok(Instance(path, remover))
    }

    fn root(&self) -> &Path {
        self.0.ancestors().nth(2).expect("an instance is in a folder of the root")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.0.join(name);
        let file = File::options().write(true).truncate(true).open(&path);
        let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.map_err(|error| format!("{}: {error}, writing {text}", path.display()).into())
    }

    fn read(&self, name: &str) -> Result<String, Failure> {
        let path = self.0.join(name);
        let text = whole(&path).map_err(|error| told(&path, &error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The CPUs that have a buffer, ascending.
    fn cpus(&self) -> Result<Vec<u32>, Failure> {
        let path = self.0.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(|error| told(&path, &error))?;
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = entries.flatten().filter_map(number).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Bytes of a page of the buffers: the end of `data` in `header_page`.
    fn page_size(&self) -> Result<usize, Failure> {
        let path = self.root().join("events/header_page");
        let text = whole(&path).map_err(|error| told(&path, &error))?;
        let text = String::from_utf8_lossy(&text);
        let line =
            text.lines().find(|line| line.split(';').next().is_some_and(|name| name.ends_with(" data")));
        let value = |key: &str| {
            let part = line?.split(';').find_map(|part| part.trim().strip_prefix(key));
            part.and_then(|value| value.parse::<usize>().ok())
        };
        let size = value("offset:").zip(value("size:")).map(|(offset, size)| offset + size);
        let size = size.filter(|size| size.is_power_of_two() && (64..=16 << 20).contains(size));
        let expected = "expected a line `field: char data; offset:16; size:4080; ..`";
        size.ok_or_else(|| format!("{}: {expected}, found {}", path.display(), line.unwrap_or("none")).into())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        let _ = self.write("set_event", "\n");
        // A reader's file may be closed a little later.
        for _ in 0..20 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
        if let Some(mut child) = self.1.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// The bytes of a file, asked for in large pieces: `header_page` gives a reader that asks for a few bytes
/// these alone, and then its end.
fn whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let (mut file, mut bytes, mut piece) = (File::open(path)?, Vec::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
