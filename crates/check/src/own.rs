//! The checks of a registered engine.

use crate::bare::Bare;
use crate::broken::Refuse;
use crate::duties::duties;
use crate::explore::guard;
use crate::kit::{Kit, Limits};
use crate::loomed::Loom;
use crate::machine::Shape;
use crate::oracle;
use crate::program::Ran;
use crate::schedules::{Load, explored, hand_over, programs, races};
use crate::shuttled::Shuttle;
use crate::twist::Twisted;
use crate::world::{Alone, Checked};
use slablab_model::Model;
use slablab_slabs::Family;
use slablab_slabs::knob::Policy;
use slablab_slabs::registered::Registered;
use std::panic::{set_hook, take_hook};
use std::sync::{Arc, Mutex, PoisonError};

/// A check with its name. It gets the effort, 1 for a second or so, and the policies to check; without them
/// it checks every preset. It returns what it ran, or what it found.
pub type Check = (&'static str, fn(u64, Option<&Registered>) -> Result<String, String>);

/// The checks of `F`:
///
/// - `oracle`: random programs beside a reference, in the model on many machines, in checked memory on one
///   thread, and in static memory; then the duties of hotplug, shrink and RCU;
/// - `loom`: two CPUs in every schedule with at most two preemptions;
/// - `shuttle`: two to four CPUs in random schedules.
pub fn checks<F: Family>() -> [Check; 3] {
    [("oracle", by_oracle::<F>), ("loom", by_loom::<F>), ("shuttle", by_shuttle::<F>)]
}

/// The name of a policy in findings, and the release of its page allocator.
fn named<T: Policy>(policy: &T) -> (String, (u32, u32, u32)) {
    let release = policy.release();
    let kernel = (release.major.into(), release.minor.into(), release.patch.into());
    (format!("{}@{release}", T::NAME), kernel)
}

/// The policies that were asked for, or every preset.
fn chosen<F: Family>(asked: Option<&Registered>) -> Vec<F::Policy> {
    asked.map_or_else(|| F::Policy::PRESETS.to_vec(), |asked| vec![asked.policy()])
}

/// Calls `check`. A panic in it prints nothing: its text and its place are the finding.
///
/// The panic hook is put back afterwards. shuttle leaves a hook that prints a schedule at every panic, also
/// at those with which loom ends its threads in good order.
fn quietly<R>(check: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    let place = Arc::new(Mutex::new(None));
    let seen = place.clone();
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let at = panic.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }));
    let result = guard(check);
    set_hook(before);
    result.unwrap_or_else(|text| {
        let at = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(format!("panic: {text}{}", at.unwrap_or_default()))
    })
}

fn by_oracle<F: Family>(effort: u64, asked: Option<&Registered>) -> Result<String, String> {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let check = || {
        let mut ran = Ran::default();
        for policy in &chosen::<F>(asked) {
            let (name, kernel) = named(policy);
            let seeds = 4 * effort;
            ran +=
                oracle::model::<F::On<Model>, F::On<Twisted<Model, Refuse>>>(&name, policy, kernel, seeds)?;
            for spec in oracle::specs() {
                let what = format!("{name} on checked memory");
                let run = || oracle::run::<Alone, F::On<Alone>>(&what, policy, kernel, &spec, 0..2 * effort);
                ran += Alone::enter(SHAPE, run)?;
                let what = format!("{name} on static memory");
                let run =
                    || oracle::run::<Bare<true>, F::On<Bare<true>>>(&what, policy, kernel, &spec, 0..effort);
                ran += Bare::<true>::enter(run)?;
            }
            duties::<F::On<Model>>(policy, kernel).map_err(|wrong| format!("{name}: {wrong}"))?;
        }
        Ok(ran)
    };
    let ran = quietly(check)?;
    match ran.allocs {
        0 => Err("no program allocated an object".into()),
        allocs => Ok(format!("{allocs} allocations, {} slabs", ran.slabs)),
    }
}

/// Races of two CPUs. Returns the number of schedules.
fn race<F: Family, K: Kit>(asked: Option<&Registered>, limits: Limits) -> Result<u64, String> {
    let mut executions = 0;
    for policy in chosen::<F>(asked) {
        let (name, _) = named(&policy);
        let on_one = races::<Checked<K>, F::On<Checked<K>>>();
        let on_two = hand_over::<Checked<K>, F::On<Checked<K>>>();
        let on_one = on_one.iter().map(|race| (race, Shape::ONE_NODE));
        for (race, shape) in on_one.chain(on_two.iter().map(|race| (race, Shape::TWO_NODES))) {
            let explored = explored::<K, _, _>(race, policy, shape, limits);
            executions += explored.map_err(|wrong| format!("{name}: {}: {wrong}", race.name))?.executions;
        }
    }
    Ok(executions)
}

/// Ten times the effort is another preemption.
fn by_loom<F: Family>(effort: u64, asked: Option<&Registered>) -> Result<String, String> {
    let preemptions = Limits::QUICK.preemptions + effort.ilog10() as usize;
    let executions = quietly(|| race::<F, Loom>(asked, Limits { preemptions, ..Limits::QUICK }))?;
    Ok(format!("{executions} schedules with at most {preemptions} preemptions"))
}

fn by_shuttle<F: Family>(effort: u64, asked: Option<&Registered>) -> Result<String, String> {
    let limits = |executions: u64| Limits { executions: (executions * effort) as usize, ..Limits::QUICK };
    let check = || {
        let mut executions = race::<F, Shuttle>(asked, limits(300))?;
        for policy in &chosen::<F>(asked) {
            let (name, _) = named(policy);
            for shape in [Shape::ONE_NODE, Shape::TWO_NODES, Shape::MEMORYLESS] {
                let load = Load::on(shape);
                let ran = programs::<_, F::On<Checked<Shuttle>>>(policy, load, limits(150), |_| ());
                executions += ran.map_err(|wrong| format!("{name}: whole programs: {wrong}"))?.0;
            }
        }
        Ok(executions)
    };
    quietly(check).map(|executions| format!("{executions} random schedules"))
}
