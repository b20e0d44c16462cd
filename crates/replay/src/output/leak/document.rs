//! The answer about a leak for programs. Units are in the keys.

use crate::leak::sentence::rate;
use crate::leak::suspect::chain;
use crate::leak::{Course, Judgement, Leak, Suspect};
use crate::sites::{Recorded, Site};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;

/// Call sites of a suspect that the document has.
const SITES: usize = 20;

/// What grew in some time, who holds it, and which code allocates it.
#[derive(Serialize, JsonSchema)]
pub(super) struct LeakDocument<'a> {
    /// Memory of the kernel that is no slabs, and grew.
    counters: Vec<CounterDocument>,
    /// The path of the input; / for the running machine.
    input: String,
    /// What is not there, and why: sentences.
    lacks: &'a [String],
    /// Events of the recording; null without one.
    recorded_events: Option<u64>,
    /// Seconds from the first snapshot to the last; null if that is not known.
    seconds: Option<f64>,
    snapshots: usize,
    /// What grew, the likeliest leak first; of one snapshot, what is held.
    suspects: Vec<SuspectDocument<'a>>,
    verdict: Judgement,
}

#[derive(Serialize, JsonSchema)]
struct CounterDocument {
    after_bytes: u64,
    before_bytes: u64,
    /// The line of /proc/meminfo.
    name: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct SuspectDocument<'a> {
    /// Growth; of one snapshot, all of it.
    bytes: u64,
    bytes_per_hour: Option<f64>,
    /// The caches, the one that says what grew first.
    caches: &'a [String],
    course: Course,
    ends: Option<EndsDocument<'a>>,
    objects: i64,
    /// Whether the kernel frees such objects by itself when it needs memory.
    reclaimable: bool,
    /// Call sites of what the recording saw allocated and not freed.
    sites: Vec<SiteDocument<'a>>,
    who: Option<WhoDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct EndsDocument<'a> {
    /// The command to type; null if there is none.
    command: Option<&'a str>,
    cost: Option<&'a str>,
    how: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct SiteDocument<'a> {
    cache: &'a str,
    course: Course,
    /// The call chain with most of them, from the site outwards.
    frames: Vec<&'a str>,
    live_bytes: u64,
    live_objects: u64,
    name: &'a str,
    /// The task that allocated most of them.
    task: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct WhoDocument<'a> {
    /// Whether others hold some too.
    and_others: bool,
    /// The memory cgroup of the process with most.
    cgroup: &'a str,
    /// The name of the processes.
    comm: &'a str,
    count: u64,
    /// How many more than in the first snapshot.
    more: Option<i64>,
    /// The process with most; 0 for what is no process.
    pid: u32,
    processes: usize,
    /// What they hold, in words.
    what: &'a str,
}

impl Document for LeakDocument<'_> {
    const NAME: &'static str = "slablab.leak.1";
    const TITLE: &'static str = "slablab leak: what grew, who holds it, which code allocates it";
}

impl<'a> LeakDocument<'a> {
    pub(super) fn new(leak: &'a Leak) -> LeakDocument<'a> {
        let measured = &leak.report.measured;
        let history = measured.history.as_ref();
        let counters = measured.counters.iter().map(|counter| CounterDocument {
            after_bytes: counter.now,
            before_bytes: counter.before,
            name: counter.name,
        });
        LeakDocument {
            counters: counters.collect(),
            input: measured.state.path.display().to_string(),
            lacks: &leak.lacks,
            recorded_events: leak.recorded.map(|recorded| recorded.metadata.statistics.rows),
            seconds: history.and_then(|history| history.span_hours()).map(|hours| hours * 3600.0),
            snapshots: history.map_or(1, |history| history.points()),
            suspects: leak.suspects.iter().map(|suspect| of_suspect(leak, suspect)).collect(),
            verdict: leak.judgement,
        }
    }
}

fn of_suspect<'a>(leak: &'a Leak, suspect: &'a Suspect) -> SuspectDocument<'a> {
    let ends = suspect.ends.map(|method| EndsDocument {
        command: method.run.as_deref(),
        cost: method.cost.as_deref(),
        how: &method.how,
    });
    let who = suspect.who.as_ref().map(|who| WhoDocument {
        and_others: who.and_others,
        cgroup: &who.cgroup,
        comm: &who.comm,
        count: who.count,
        more: who.more,
        pid: who.pid,
        processes: who.processes,
        what: &who.words,
    });
    let recorded = leak.recorded;
    SuspectDocument {
        bytes: suspect.bytes,
        bytes_per_hour: rate(leak, suspect.bytes),
        caches: &suspect.names,
        course: suspect.course,
        ends,
        objects: suspect.objects,
        reclaimable: suspect.reclaimable,
        sites: suspect.sites.iter().take(SITES).map(|site| of_site(recorded, site)).collect(),
        who,
    }
}

fn of_site<'a>(recorded: Option<&'a Recorded>, site: &'a Site) -> SiteDocument<'a> {
    SiteDocument {
        cache: &site.cache,
        course: crate::leak::suspect::of_line(&site.line),
        frames: recorded.map_or(Vec::new(), |recorded| chain(recorded, site)),
        live_bytes: site.live_bytes,
        live_objects: site.live,
        name: &site.name,
        task: site.tasks.first().map(|(task, _)| task.as_str()),
    }
}
