//! `slablab check`: random programs through a kernel tree's allocator, and the checks that a program
//! registered with its own engines.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use indicatif::{ProgressBar, ProgressStyle};
use slablab_engines::parse;
use slablab_slabs::Preset;
use slablab_slabs::preset::Text;
use slablab_slabs::registered::Registered;
use std::time::{Duration, Instant};

/// A check of an engine: it gets the effort, 1 for a second or so, and the policies to check, or none for
/// every preset. It returns what it ran, or what it found.
pub type Check = fn(effort: u64, policies: Option<&Registered>) -> Result<String, String>;

/// A check with its names.
pub(crate) struct Entry {
    /// The engine's name.
    pub(crate) engine: &'static str,
    /// The check's name.
    pub(crate) name: &'static str,
    /// The check.
    pub(crate) check: Check,
}

/// Checks an engine: random programs through it, beside a reference.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab check linux:mine --effort 10\n  slablab check mine oracle\n  slablab check mine,limit=3\n  slablab check loom\n\nOf a kernel tree that `slablab linux build` built: the check `oracle` finds objects that overlap or lie wrong,\nzeros that are not, slabs and pages that do not come back, and what the tree's code says itself.\nOf engines that a program registered: its checks (docs/your-engine.md). Exit code 1: a check found something."
)]
pub(crate) struct Args {
    /// The engine, as in `linux:NAME`, `mine` (every preset) or `mine@7.1,knob=value` (these policies); or
    /// the check alone, for every engine. Without it, every engine with checks
    engine: Option<String>,
    /// The check; without it, every check of the engine
    check: Option<String>,
    /// How many times as many programs and schedules as usual
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    effort: u64,
}

/// What the arguments ask for.
struct Asked {
    engine: Option<String>,
    check: Option<String>,
    policies: Option<Registered>,
}

impl Args {
    fn asked(&self, checks: &[Entry]) -> Result<Asked, Failure> {
        let (first, check) = (self.engine.clone(), self.check.clone());
        let Some(first) = first else { return Ok(Asked { engine: None, check, policies: None }) };
        let is_check = |name: &str| checks.iter().any(|entry| entry.name == name);
        let is_engine = |name: &str| checks.iter().any(|entry| entry.engine == name);
        if check.is_none() && is_check(&first) && !is_engine(&first) {
            return Ok(Asked { engine: None, check: Some(first), policies: None });
        }
        let name = Text::split(&first).name;
        if !name.starts_with(TREE) && (name == first || !is_engine(name)) {
            return Ok(Asked { engine: Some(first), check, policies: None });
        }
        match parse(&first).map_err(|bad| bad.to_string())? {
            Preset::Registered(policies) => {
                let engine = policies.registration().engine().to_owned();
                Ok(Asked { engine: Some(engine), check, policies: Some(policies) })
            }
            _ => Err(format!("{first}: expected an engine of this program").into()),
        }
    }
}

/// The name before the colon of a tree's engine.
const TREE: &str = "linux:";

pub(crate) fn run(args: &Args, checks: &[Entry]) -> Result<Done, Failure> {
    let asked = args.asked(checks)?;
    let engine = asked.policies.as_ref().map(|policies| policies.registration().engine());
    let of_tree = engine.filter(|engine| engine.starts_with(TREE));
    let of_tree =
        of_tree.map(|engine| Entry { engine, name: "oracle", check: crate::laboratory::trees::check });
    let checks = of_tree.as_ref().map_or(checks, std::slice::from_ref);
    let is_asked = |asked: &Option<String>, name: &str| asked.as_deref().is_none_or(|asked| asked == name);
    let chosen = |entry: &&Entry| is_asked(&asked.engine, entry.engine) && is_asked(&asked.check, entry.name);
    let chosen: Vec<&Entry> = checks.iter().filter(chosen).collect();
    if chosen.is_empty() {
        return Err(unknown(args, checks).into());
    }
    let mut found = 0;
    for Entry { engine, name, check } in &chosen {
        let shown = spinner(format!("{engine} {name}"));
        let began = Instant::now();
        let result = check(args.effort, asked.policies.as_ref());
        shown.finish_and_clear();
        let (word, what) = match &result {
            Ok(ran) => ("ok", ran),
            Err(wrong) => ("WRONG", wrong),
        };
        found += usize::from(result.is_err());
        let seconds = began.elapsed().as_secs_f64();
        write_out(&format!("{word:<5} {engine} {name:<8} {seconds:6.1} s  {what}\n"), None)?;
    }
    let count = chosen.len();
    write_out(&format!("{} passed, {found} failed\n", count - found), None)?;
    Ok(if found > 0 { Done::OverThreshold } else { Done::Complete })
}

fn unknown(args: &Args, checks: &[Entry]) -> String {
    if checks.is_empty() {
        return "expected linux:NAME or linux:PATH, a kernel tree that `slablab linux build` built: this program \
                has no engine with checks of its own (docs/your-engine.md)"
            .into();
    }
    let asked = [&args.engine, &args.check].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    let known = checks.iter().map(|entry| format!("{} {}", entry.engine, entry.name));
    format!("no check {asked}: expected one of {}", known.collect::<Vec<_>>().join(", "))
}

/// On a terminal, the name of what runs and for how long.
fn spinner(what: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is right");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
