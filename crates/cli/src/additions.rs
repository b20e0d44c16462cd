//! What a program adds to the laboratory: engines, policies of page replacement, checks.

use crate::laboratory::check::{Check, Entry};
use crate::program::Program;
use slablab_bench::own::{Benched, Own};
use slablab_experiment::Simulated;
use slablab_experiment::pressure::knob::Policy as Replaces;
use slablab_experiment::pressure::registered::Registration as Replacement;
use slablab_replay::engines::Replayed;
use slablab_slabs::Family;
use slablab_slabs::registered::Registration;
use std::marker::PhantomData;

impl Program {
    /// Adds an engine: every verb that takes one knows it by the name of its policy, and runs it.
    pub fn engine<F: Family>(mut self) -> Program {
        self.own.engines.push(engine::<F>());
        self
    }

    /// Adds an engine to the allocators of the verb `bench`, as malloc's heap: [`benched!`] gives it a place
    /// in the process. [`Program::engine`] adds it to the other verbs.
    ///
    /// [`benched!`]: crate::benched
    pub fn bench<F: Benched>(mut self) -> Program {
        self.own.benched.push(Own::of::<F>());
        self
    }

    /// Adds a family of policies of page replacement: every verb that takes a policy knows it by its word, as
    /// in `vm@6.1,WORD`.
    pub fn replacement<T: Replaces>(mut self) -> Program {
        self.own.replacements.push(replacement::<T>());
        self
    }

    /// Adds checks of an engine by their names. `slablab check` runs them.
    pub fn checks(mut self, engine: &'static str, checks: &[(&'static str, Check)]) -> Program {
        self.own.checks.extend(checks.iter().map(|(name, check)| Entry { engine, name, check: *check }));
        self
    }
}

/// What the simulated kernel needs of `T`, for [`Program::replacement`].
fn replacement<T: Replaces>() -> &'static Replacement {
    struct Of<T>(PhantomData<T>);
    impl<T: Replaces> Of<T> {
        const ALL: &'static Replacement = &Replacement::new::<T>();
    }
    Of::<T>::ALL
}

/// The functions that the verbs need of `F`, for [`Program::engine`].
fn engine<F: Family>() -> &'static Registration {
    struct Of<F>(PhantomData<F>);
    impl<F: Family> Of<F> {
        const SIMULATED: Simulated = Simulated::of::<F>();
        const REPLAYED: Replayed = Replayed::of::<F>();
        const ALL: &'static Registration = match F::CYCLES {
            Some(_) => &Registration::new::<F::Policy>(&[&Self::SIMULATED, &Self::REPLAYED]),
            // Without prices nothing is modelled: another engine's would say nothing of this one.
            None => &Registration::new::<F::Policy>(&[&Self::REPLAYED]),
        };
    }
    Of::<F>::ALL
}
