//! Recording by `perf record`, which writes its stream to a pipe.
//!
//! perf records from when its own command begins until that ends. The command is a shell that says so, and
//! waits for the end of its standard input: for the end of this process, too, however that comes.

use super::count::{Counts, Records};
use super::facts::FEW_EVENTS;
use super::spool::{Spool, Spooled, hurry};
use super::{Recorded, Wanted};
use crate::outcome::Failure;
use rustix::pipe::fcntl_setpipe_size;
use slablab_doctor::state::PERF_DATA;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What perf's command says when recording has begun.
const STARTED: &str = "slablab-record: started";

/// Bytes of the pipe from perf.
const PIPE: usize = 1 << 20;

/// perf's priority, of those in real time the lowest: a load of hundreds of tasks keeps it from its buffers
/// otherwise.
const PRIORITY: &str = "1";

/// How long perf may take to begin: it opens an event on each CPU, and reads the kernel's symbols.
const BEGIN_LIMIT: Duration = Duration::from_secs(60);
/// How long perf may take to write what is in its buffers.
const END_LIMIT: Duration = Duration::from_secs(120);

/// A running perf.
pub(super) struct Perf {
    child: Child,
    /// Its end ends the recording.
    go_on: Option<ChildStdin>,
    reading: Option<JoinHandle<std::io::Result<Spooled>>>,
    said: Receiver<String>,
    messages: Vec<String>,
    counts: Arc<Counts>,
    version: String,
    events: Vec<String>,
}

impl Perf {
    /// Starts perf, and waits until it records.
    pub(super) fn start(wanted: &Wanted) -> Result<Perf, Failure> {
        let version = version()?;
        let events = match wanted.events {
            [] => FEW_EVENTS.iter().map(|event| event.to_string()).collect(),
            events => events.to_vec(),
        };
        let mut command = Command::new("perf");
        command.args(["record", "-a", "-o", "-", "-B", "-N", "-k", "mono", "-r", PRIORITY]);
        command.args(["-m", &format!("{}M", wanted.buffer_mb.next_power_of_two())]);
        events.iter().for_each(|event| _ = command.args(["-e", &format!("kmem:{event}")]));
        let probes = wanted.probes;
        for probe in &probes.set {
            let event = format!("{}:{}", probes.group, probe.name);
            command.args(["-e", &event, "--filter", &probe.filter]);
        }
        if wanted.call_chains {
            command.args(["--call-graph", "fp", "--kernel-callchains"]);
        }
        command.args(["--", "sh", "-c", &format!("echo '{STARTED}' >&2; read line; exit 0")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The signals of a terminal's keys are for the command that is recorded, and for this process.
        command.process_group(0);
        // Before perf runs: what cannot be written is not worth recording.
        let spool =
            Spool::new(wanted.folder).map_err(|error| format!("{}: {error}", wanted.folder.display()))?;
        let mut child = command.spawn().map_err(|error| format!("perf: {error}"))?;
        let (go_on, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let counts = Arc::new(Counts::default());
        let (out, err) = (out.expect("it is piped"), err.expect("it is piped"));
        let reading = std::thread::spawn({
            let counts = counts.clone();
            move || read(out, spool, &counts)
        });
        let said = listen(err);
        let mut perf = Perf {
            child,
            go_on,
            reading: Some(reading),
            said,
            messages: Vec::new(),
            counts,
            version,
            events,
        };
        perf.wait_for_start()?;
        Ok(perf)
    }

    fn wait_for_start(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + BEGIN_LIMIT;
        loop {
            match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line == STARTED => return Ok(()),
                Ok(line) => self.messages.push(line),
                Err(RecvTimeoutError::Timeout) => return Err("perf did not begin within a minute".into()),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    return Err(format!("perf record ended at once ({status}): {}", self.complaint()).into());
                }
            }
        }
    }

    /// What perf said, in one line.
    fn complaint(&mut self) -> String {
        self.messages.extend(self.said.try_iter());
        let lines = self.messages.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        // perf's help is long: its first lines have the reason.
        let said = lines.take(4).collect::<Vec<_>>().join(" ");
        let refused = ["ermission", "not permitted", "not allowed", "Access to performance", "No access"];
        let hint = if refused.iter().any(|word| said.contains(word)) { " (try with sudo)" } else { "" };
        if said.is_empty() { "it said nothing".into() } else { format!("{said}{hint}") }
    }

    /// Events recorded and lost so far.
    pub(super) fn counts(&mut self) -> (u64, u64) {
        (self.counts.events.load(Relaxed), self.counts.lost())
    }

    /// Whether it still records.
    pub(super) fn is_alive(&mut self) -> bool {
        self.reading.as_ref().is_some_and(|reading| !reading.is_finished())
    }

    /// Ends the recording.
    pub(super) fn stop(mut self) -> Result<Recorded, Failure> {
        self.end();
        let status = self.child.wait()?;
        let reading = self.reading.take().expect("it is taken once");
        let spooled = reading.join().expect("it does not panic");
        let spooled = match spooled {
            Ok(spooled) if spooled.bytes > 0 => spooled,
            Ok(_) => return Err(format!("perf recorded nothing ({status}): {}", self.complaint()).into()),
            Err(error) => return Err(format!("{error}; perf said: {}", self.complaint()).into()),
        };
        // If the stream ended for want of room, perf ended as its pipe was closed.
        let early = !status.success() && spooled.stopped.is_none();
        let problem = early.then(|| format!("perf ended early ({status}): {}", self.complaint()));
        let (events, lost) = self.counts();
        Ok(Recorded {
            member: PERF_DATA,
            head: Vec::new(),
            streams: vec![spooled],
            events,
            lost,
            version: self.version.clone(),
            recorded: self.events.iter().map(|event| format!("kmem:{event}")).collect(),
            problem,
        })
    }

    /// Tells perf to end, and waits for it: it writes what is in its buffers first.
    fn end(&mut self) {
        drop(self.go_on.take());
        let deadline = Instant::now() + END_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                // It hangs. What it wrote stays.
                let _ = self.child.kill();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        if self.reading.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The version, which also shows that there is a perf.
fn version() -> Result<String, Failure> {
    let output = Command::new("perf").arg("--version").stdin(Stdio::null()).output().map_err(|error| {
        match error.kind() {
            ErrorKind::NotFound => {
                "perf: not found: install it (Debian: linux-perf, Ubuntu: linux-tools-generic)".into()
            }
            _ => format!("perf: {error}"),
        }
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(
            format!("perf --version failed: {}", said.lines().next().unwrap_or("it said nothing")).into()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Reads perf's stream to its end, or as far as there is room for it.
fn read(mut out: ChildStdout, mut spool: Spool, counts: &Counts) -> std::io::Result<Spooled> {
    hurry();
    // A larger pipe, if this user may: fewer turns of perf and this thread.
    let _ = fcntl_setpipe_size(&out, PIPE);
    let (mut records, mut piece) = (Records::default(), vec![0; PIPE]);
    loop {
        match out.read(&mut piece) {
            Ok(0) => return spool.finish(),
            Ok(count) => {
                if spool.push(&records.pass(&piece[..count], counts)?) {
                    return spool.finish();
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The lines that perf says, as they come.
fn listen(err: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(err).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                // Nobody listens: perf's pipe stays open all the same.
            }
        }
    });
    receiver
}
