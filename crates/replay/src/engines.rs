//! Registered engines in a replay.

use crate::map::watched::Watched;
use crate::replay::outcome::Outcome;
pub use crate::replay::run::Replayed;
use crate::replay::run::{Job, World};
use crate::replay::{Variant, wrapped};
use slablab_engines::until_ended;
use slablab_model::Model;
use slablab_report::error::{Error, Result};
use slablab_slabs::registered::Registered;
use slablab_slabs::wrap::Hardened;
use slablab_slabs::{Common, Engine, Family, Preset};

impl Replayed {
    /// The functions of `F`.
    pub const fn of<F: Family>() -> Replayed {
        Replayed {
            plain: run::<Model, F>,
            hardened: run::<Hardened<Model>, F>,
            watched: run::<Watched<Model>, F>,
            watched_hardened: run::<Watched<Hardened<Model>>, F>,
            shares_pages: <<F::On<Model> as Engine<Model>>::Common as Common>::SHARES_PAGES,
            order: |spec, own| F::On::<Model>::layout(spec, &own.policy()).map(|layout| layout.order),
        }
    }
}

fn run<W: World, F: Family>(job: &Job<'_>, variant: &Variant, tick: &dyn Fn(u64)) -> Result<Outcome> {
    let Preset::Registered(own) = &variant.preset else { unreachable!("a registered engine runs itself") };
    let policy: F::Policy = Registered::policy(own);
    let run = || wrapped::<W, F::On<W>>(job, variant, &|own| own.of(policy), tick);
    until_ended(run)
        .unwrap_or_else(|ended| Err(Error::new(job.path, format!("{}: {}", variant.preset, ended.0))))
}
