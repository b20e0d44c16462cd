//! What comes with the package.

use pyo3::prelude::*;
use slablab_experiment::{ExperimentFile, INSTALLED};
use slablab_machines::INSTALLED as MACHINES;
use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slob::SlobPolicy;
use slablab_slabs::engines::slqb::SlqbPolicy;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::Policy;

/// The engines' presets, as `engine@release`, oldest first.
#[pyfunction]
pub(crate) fn engines() -> Vec<String> {
    fn of<T: Policy>() -> impl Iterator<Item = String> {
        T::PRESETS.iter().map(|preset| format!("{}@{}", T::ENGINE, preset.release()))
    }
    of::<SlubPolicy>().chain(of::<SlqbPolicy>()).chain(of::<SlabPolicy>()).chain(of::<SlobPolicy>()).collect()
}

/// The names of the machines that come with the package.
#[pyfunction]
pub(crate) fn machines() -> Vec<&'static str> {
    MACHINES.iter().map(|machine| machine.name).collect()
}

/// The experiments that come with the package: each one's name and title.
#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, String)> {
    let title = |text| ExperimentFile::parse(text).expect("installed experiments are read by a test").title;
    INSTALLED.iter().map(|installed| (installed.name, title(installed.text))).collect()
}

/// The version.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
