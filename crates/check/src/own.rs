//! The checks of a registered engine.

use crate::bare::Bare;
use crate::broken::Refuse;
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

/// A check with its name. It gets the effort, 1 for a second or so, and returns what it ran, or what it
/// found.
pub type Check = (&'static str, fn(u64) -> Result<String, String>);

/// The checks of every preset of `F`:
///
/// - `oracle`: random programs beside a reference, in the model on many machines, in checked memory on one
///   thread, and in static memory;
/// - `loom`: two CPUs in every schedule with at most two preemptions;
/// - `shuttle`: two to four CPUs in random schedules.
pub fn checks<F: Family>() -> [Check; 3] {
    [("oracle", by_oracle::<F>), ("loom", by_loom::<F>), ("shuttle", by_shuttle::<F>)]
}

/// The name of a policy in findings, and the release of its page allocator.
fn named<T: Policy>(policy: &T) -> (String, (u32, u32, u32)) {
    let release = policy.release();
    let kernel = (release.major.into(), release.minor.into(), release.patch.into());
    (format!("{}@{release}", T::ENGINE), kernel)
}

fn by_oracle<F: Family>(effort: u64) -> Result<String, String> {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let mut ran = Ran::default();
    for policy in F::Policy::PRESETS {
        let (name, kernel) = named(policy);
        ran +=
            oracle::model::<F::On<Model>, F::On<Twisted<Model, Refuse>>>(&name, policy, kernel, 4 * effort)?;
        for spec in oracle::specs() {
            let what = format!("{name} on checked memory");
            let run = || oracle::run::<Alone, F::On<Alone>>(&what, policy, kernel, &spec, 0..2 * effort);
            ran += Alone::enter(SHAPE, run)?;
            let what = format!("{name} on static memory");
            let run =
                || oracle::run::<Bare<true>, F::On<Bare<true>>>(&what, policy, kernel, &spec, 0..effort);
            ran += Bare::<true>::enter(run)?;
        }
    }
    match ran.allocs {
        0 => Err("no program allocated an object".into()),
        allocs => Ok(format!("{allocs} allocations, {} slabs", ran.slabs)),
    }
}

/// Races of two CPUs. Returns the number of schedules.
fn race<F: Family, K: Kit>(limits: Limits) -> Result<u64, String> {
    let mut executions = 0;
    for policy in F::Policy::PRESETS {
        let (name, _) = named(policy);
        let on_one = races::<Checked<K>, F::On<Checked<K>>>();
        let on_two = hand_over::<Checked<K>, F::On<Checked<K>>>();
        let on_one = on_one.iter().map(|race| (race, Shape::ONE_NODE));
        for (race, shape) in on_one.chain(on_two.iter().map(|race| (race, Shape::TWO_NODES))) {
            let explored = explored::<K, _, _>(race, *policy, shape, limits);
            executions += explored.map_err(|wrong| format!("{name}: {}: {wrong}", race.name))?.executions;
        }
    }
    Ok(executions)
}

/// More effort is another preemption.
fn by_loom<F: Family>(effort: u64) -> Result<String, String> {
    let preemptions = Limits::QUICK.preemptions + effort.ilog10() as usize;
    let executions = race::<F, Loom>(Limits { preemptions, ..Limits::QUICK })?;
    Ok(format!("{executions} schedules with at most {preemptions} preemptions"))
}

fn by_shuttle<F: Family>(effort: u64) -> Result<String, String> {
    let limits = |executions: u64| Limits { executions: (executions * effort) as usize, ..Limits::QUICK };
    let mut executions = race::<F, Shuttle>(limits(300))?;
    for policy in F::Policy::PRESETS {
        let (name, _) = named(policy);
        for shape in [Shape::ONE_NODE, Shape::TWO_NODES, Shape::MEMORYLESS] {
            let ran = programs::<_, F::On<Checked<Shuttle>>>(policy, Load::on(shape), limits(150), |_| ());
            executions += ran.map_err(|wrong| format!("{name}: whole programs: {wrong}"))?.0;
        }
    }
    Ok(format!("{executions} random schedules"))
}
