//! Which recording an input is, by its content, and its reader.

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use slablab_readers::Source as Events;
use slablab_readers::compressed::{Compression, Decompressed};
use slablab_readers::event::FormatText;
use slablab_readers::ftrace::{self, Ftrace};
use slablab_readers::pasted;
use slablab_readers::perfdata::PerfData;
use slablab_readers::recording::{self, Member, TRACE_DAT};
use slablab_readers::tidy::Tidy;
use slablab_readers::tracedat::{self, TraceDat};
use slablab_trace::{Metadata, Source, Writer};

use super::convert::{Stop, convert};
use super::spool::{self, Spool};
use super::{FREED_LIMIT, Input, describe, formats};
use crate::recorded;
use slablab_report::error::{At, Error, Result};
use slablab_report::files;

/// Bytes needed to tell what an input is: a text has its first event behind some lines of others.
const HEAD_BYTES: u64 = 4096;

/// Parquet's first bytes.
const PARQUET: &[u8] = b"PAR1";

/// A recording ready to be read.
pub(super) struct Recording {
    path: PathBuf,
    kind: Kind,
    known: Metadata,
    /// Formats for a perf.data that lacks them.
    formats: Vec<FormatText>,
    /// The events' place in the file, if it has others too.
    member: Option<Member>,
    /// Standard input, already opened.
    stdin: Option<Stdin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PerfData,
    TraceDat,
    Tidy,
    Ftrace,
}

/// Whether `path` is a trace already.
pub(super) fn is_trace(path: &Path) -> Result<bool> {
    if is_stdin(path) || path.is_dir() {
        return Ok(false);
    }
    let mut head = Vec::new();
    files::open(path).at(path)?.take(PARQUET.len() as u64).read_to_end(&mut head).at(path)?;
    Ok(head == PARQUET)
}

pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Finds out what `input` is.
pub(super) fn open(input: Input) -> Result<Recording> {
    let (path, known) = resolve(input)?;
    let formats = input.formats.map_or(Ok(Vec::new()), formats::read)?;
    if is_stdin(&path) {
        let digest = Arc::new(Mutex::new(Digested::default()));
        let mut stdin = Decompressed::new(Tee(digest.clone())).at(&path)?;
        let mut head = Vec::new();
        stdin.by_ref().take(HEAD_BYTES).read_to_end(&mut head).at(&path)?;
        let kind = tell(&head).at(&path)?;
        let reader = Box::new(Cursor::new(head).chain(stdin));
        return Ok(Recording {
            path,
            kind,
            known,
            formats,
            member: None,
            stdin: Some(Stdin { reader, digest }),
        });
    }
    if let Some(members) = recorded::members(&path)? {
        let member = members.events().cloned();
        let member = member.ok_or_else(|| Error::new(&path, "a recording without events: it was cut off"))?;
        let kind = if member.name == TRACE_DAT { Kind::TraceDat } else { Kind::PerfData };
        let known = describe::recorded(&path)?;
        return Ok(Recording { path, kind, known, formats, member: Some(member), stdin: None });
    }
    let mut head = Vec::new();
    Decompressed::new(files::open(&path).at(&path)?)
        .at(&path)?
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .at(&path)?;
    let kind = tell(&head).at(&path)?;
    Ok(Recording { path, kind, known, formats, member: None, stdin: None })
}

/// The file to read, and the files that belong to it.
fn resolve(input: Input) -> Result<(PathBuf, Metadata)> {
    match (input.path.is_dir(), input.recording) {
        (false, None) => Ok((input.path.into(), Metadata::default())),
        (false, Some(name)) => Err(Error::new(
            input.path,
            format!("a file, and {name:?} names a recording of a folder: expected a folder, or no name"),
        )),
        (true, name) => {
            let known = recordings(input.path)?;
            let wanted = known.iter().find(|(known, _)| Some(&**known) == name);
            let (_, file) = wanted.ok_or_else(|| {
                let list = known.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
                let what = match (name, list.is_empty()) {
                    (_, true) => "a folder without recordings: expected files called NAME.events.csv, \
                                  NAME.events.csv.gz or their like, or a recording instead of a folder"
                        .to_string(),
                    (None, false) => {
                        format!("a folder: expected the name of one of its recordings too: {list}")
                    }
                    (Some(name), false) => format!("no recording {name:?}; expected one of: {list}"),
                };
                Error::new(input.path, what)
            })?;
            let machine = input.path.join("machine.json");
            let metadata = if machine.exists() { describe::machine(&machine)? } else { Metadata::default() };
            Ok((file.clone(), metadata))
        }
    }
}

/// The recordings of a directory: `NAME.events.csv` and its compressed forms.
fn recordings(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((name, "" | ".gz" | ".zst" | ".xz")) = name.split_once(".events.csv") {
            found.push((name.to_string(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the file at `path`, which counts from the folder of the recordings, is a part of one: events,
/// counters, or the machine.
pub fn reads(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name == "machine.json"
        || name.split_once(".csv").is_some_and(|(_, end)| matches!(end, "" | ".gz" | ".zst" | ".xz"))
}

/// What an input with this (decompressed) beginning is.
fn tell(head: &[u8]) -> std::result::Result<Kind, String> {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    let begins = |magic: &[u8]| head.starts_with(magic);
    match () {
        () if begins(b"PERFILE2") || begins(b"2ELIFREP") => Ok(Kind::PerfData),
        () if line.starts_with(b"t_us,") || line.starts_with(b"seq,ts,") => Ok(Kind::Tidy),
        () if begins(PARQUET) => Err("a trace already: nothing to import".into()),
        () if begins(tracedat::MAGIC) => Ok(Kind::TraceDat),
        () if head.starts_with(recording::ABOUT.as_bytes()) => {
            Err("a file of slablab record, which has several parts: expected its name, not its bytes on standard input".into())
        }
        () if head.is_empty() => Err("the file is empty: expected a perf.data, a trace.dat, a text of events or a CSV of them".into()),
        () if ftrace::is_text(head) => Ok(Kind::Ftrace),
        () => {
            if head.get(257..262) == Some(b"ustar") {
                return Err("expected a recording, found a tar file: `slablab doctor` reads the state of a machine".into());
            }
            if let Some(words) = pasted::other_tool(head) {
                return Err(format!("expected a recording, found {words}"));
            }
            let start: String = head
                .iter()
                .take(16)
                .flat_map(|&byte| std::ascii::escape_default(byte))
                .map(char::from)
                .collect();
            Err(format!(
                "expected a perf.data (\"PERFILE2\"), a trace.dat (\"\\x17\\x08Dtracing\"), a text of \
                 events (\"bash-12 [000] 3.141592: kmalloc: ..\"), or a CSV of them (\"t_us,..\" or \
                 \"seq,ts,..\"), plain, gz, zst or xz; found \"{start}\" at its beginning"
            ))
        }
    }
}

impl Recording {
    /// Reads the recording and writes it, in the order of effects of this draw.
    pub(super) fn convert<W: Write + Send + 'static>(
        self,
        writer: Writer<W>,
        draw: u64,
        tick: &mut dyn FnMut(u64),
    ) -> Result<(W, Metadata)> {
        let Recording { path, kind, known, formats, member, stdin } = self;
        let name = match (kind, known.release.is_some()) {
            (Kind::PerfData, _) => "perf.data",
            (Kind::TraceDat, _) => "trace.dat",
            (Kind::Ftrace, _) => "ftrace text",
            (Kind::Tidy, false) => "csv",
            (Kind::Tidy, true) => "counters csv",
        };
        if let Some(stdin) = stdin {
            let (digest, passed) = (stdin.digest.clone(), stdin.digest.clone());
            let passed = || passed.lock().map_or(0, |digest| digest.size_bytes);
            let job = Job {
                path: &path,
                writer,
                known,
                draw,
                name,
                digest: Box::new(move || digest.lock().map(|d| d.clone()).unwrap_or_default()),
            };
            let stdin = stdin.reader;
            return match kind {
                Kind::PerfData => job.run(&mut PerfData::pipe(stdin).at(&path)?, tick),
                Kind::TraceDat => {
                    job.run(&mut TraceDat::new(spooled(stdin, &passed, &path)?).at(&path)?, tick)
                }
                Kind::Tidy => job.run(&mut Tidy::new(stdin).at(&path)?, tick),
                Kind::Ftrace => job.run(&mut Ftrace::new(stdin), tick),
            };
        }
        let open = || Decompressed::new(opened(&path, member.as_ref())?);
        let digest = digest_of(path.clone());
        let job = Job { path: &path, writer, known, draw, name, digest };
        let whole = open().at(&path)?.compression() == Compression::Plain;
        let plain = || Ok(BufReader::with_capacity(1 << 18, files::open(&path).at(&path)?));
        match kind {
            Kind::Tidy => job.run(&mut Tidy::new(open().at(&path)?).at(&path)?, tick),
            Kind::Ftrace => job.run(&mut Ftrace::new(open().at(&path)?), tick),
            Kind::PerfData if whole => {
                job.run(&mut PerfData::seekable_with(plain()?, &formats).at(&path)?, tick)
            }
            Kind::PerfData => job.run(&mut PerfData::reopen_with(open, &formats).at(&path)?, tick),
            // It is read in pieces of its own, which another buffer would only copy.
            Kind::TraceDat if whole => {
                job.run(&mut TraceDat::new(files::open(&path).at(&path)?).at(&path)?, tick)
            }
            Kind::TraceDat => {
                let size_bytes = files::size(&path).at(&path)?;
                let reader = spooled(open().at(&path)?, &|| size_bytes, &path)?;
                job.run(&mut TraceDat::new(reader).at(&path)?, tick)
            }
        }
    }
}

/// The file at `path`, or the events in it.
fn opened(path: &Path, member: Option<&Member>) -> std::io::Result<Box<dyn Read>> {
    let file = files::open(path)?;
    Ok(match member {
        Some(member) => Box::new(member.open(file)?),
        None => Box::new(file),
    })
}

/// All of `reader` in a file of this process, for a format whose parts are all over it. `packed` says how
/// many bytes it came from: real recordings shrink to a tenth or a thirtieth, and what grows much more is
/// there to fill the disk.
fn spooled(mut reader: impl Read, packed: &dyn Fn() -> u64, path: &Path) -> Result<Spool> {
    const RATIO: u64 = 256;
    const ALWAYS: u64 = 16 << 20;
    let folder = std::env::temp_dir();
    let mut file = spool::unnamed()?;
    let (mut piece, mut size) = (vec![0; 1 << 18], 0);
    // Not `io::copy`: which side an error comes from decides which file it names.
    loop {
        let count = match reader.read(&mut piece) {
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // Cut off: the reader finds out what is missing.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && size > 0 => break,
            count => count.at(path)?,
        };
        size += count as u64;
        if size > ALWAYS.max(packed().saturating_mul(RATIO)) {
            let what =
                format!("decompresses to more than {size} bytes: expected at most {RATIO} times its size");
            return Err(Error::new(path, what));
        }
        file.write_all(&piece[..count]).at(&folder)?;
    }
    file.seek(SeekFrom::Start(0)).at(&folder)?;
    Ok(file)
}

/// A conversion with everything but its events.
struct Job<'a, W: Write + Send + 'static> {
    path: &'a Path,
    writer: Writer<W>,
    known: Metadata,
    /// Which of the orders of effects.
    draw: u64,
    name: &'static str,
    /// The source's hash, once the source has been read.
    digest: Box<dyn FnOnce() -> Digested>,
}

impl<W: Write + Send + 'static> Job<'_, W> {
    fn run<S: Events>(self, source: &mut S, tick: &mut dyn FnMut(u64)) -> Result<(W, Metadata)> {
        let Job { path, writer, known, draw, name, digest } = self;
        let finish = move |metadata: &mut Metadata| {
            let Digested { hash, size_bytes } = digest();
            let command = metadata.source.take().unwrap_or_default().command;
            metadata.source = Some(Source { kind: name.into(), sha256: hex(hash), size_bytes, command });
        };
        convert((source, draw), writer, known, FREED_LIMIT, finish, tick).map_err(|stop| match stop {
            Stop::Output(error) => {
                Error::new(path, format!("the trace cannot be written: {}", error.without_path()))
            }
            stop => Error::new(path, stop),
        })
    }
}

/// What finds the digest of a file: a thread of its own, as hashing a large file takes about as long as
/// decoding it; in a page, when it is asked.
fn digest_of(path: PathBuf) -> Box<dyn FnOnce() -> Digested> {
    let find = move || Digested::of(&path).unwrap_or_default();
    if cfg!(target_family = "wasm") {
        return Box::new(find);
    }
    let hashing = std::thread::spawn(find);
    Box::new(move || hashing.join().unwrap_or_default())
}

/// SHA-256 of the bytes read so far.
#[derive(Clone, Default)]
struct Digested {
    hash: Sha256,
    size_bytes: u64,
}

impl Digested {
    fn of(path: &Path) -> std::io::Result<Digested> {
        let mut digested = Digested::default();
        std::io::copy(&mut files::open(path)?, &mut digested)?;
        Ok(digested)
    }
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.hash.update(bytes);
        self.size_bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Standard input, decompressed, and the hash of it as it came.
struct Stdin {
    reader: Box<dyn Read + Send>,
    digest: Arc<Mutex<Digested>>,
}

/// Hashes what passes.
struct Tee(Arc<Mutex<Digested>>);

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = std::io::stdin().read(buffer)?;
        let mut digest = self.0.lock().map_err(|_| std::io::ErrorKind::Other)?;
        digest.write_all(&buffer[..count])?;
        Ok(count)
    }
}
