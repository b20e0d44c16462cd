//! Errors of predictions of other releases, from dumps of one guest under several.

use super::boots::Boot;
use super::change::Change;
use super::predict::predict;
use super::rules::Rules;
use super::sheaves::{KNOWN_SINCE, is_loaded, policy};
use crate::state::State;
use slablab_report::error::Result;
use slablab_slabs::Preset;

/// The prediction of one release from a dump of another, beside the boot.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    /// The dump that predicts.
    pub from: String,
    /// The dump that is predicted.
    pub to: String,
    /// Whether both were taken after a load.
    pub loaded: bool,
    /// Bytes of slabs of the dump that predicts.
    pub today: u64,
    /// Bytes of slabs, predicted.
    pub predicted: u64,
    /// The range of the prediction.
    pub range: (u64, u64),
    /// Bytes of slabs of the boot.
    pub real: u64,
}

impl Released {
    /// The error as a part of the real bytes; positive if the prediction is too high.
    pub fn error(&self) -> f64 {
        self.predicted as f64 / self.real.max(1) as f64 - 1.0
    }

    /// The error of the guess that memory stays as it is.
    pub fn error_unchanged(&self) -> f64 {
        self.today as f64 / self.real.max(1) as f64 - 1.0
    }

    /// Whether the boot is in the range.
    pub fn is_inside(&self) -> bool {
        (self.range.0..=self.range.1).contains(&self.real)
    }
}

/// Every prediction of one dump's release from another dump of the same machine in the same state.
///
/// # Errors
/// A dump that does not tell what the rules need.
pub fn released(boots: &[Boot]) -> Result<Vec<Released>> {
    let mut all = Vec::new();
    for (from, to) in boots.iter().flat_map(|from| boots.iter().map(move |to| (from, to))) {
        let (Some(own), Some(asked)) = (from.state.release, to.state.release) else { continue };
        let known = own >= KNOWN_SINCE && asked >= KNOWN_SINCE;
        if !known || own == asked || alike(&from.state)? != alike(&to.state)? {
            continue;
        }
        let change = Change { engine: Some(Preset::Slub(policy(&to.state))), ..Change::default() };
        let prediction = predict(&from.state, &change)?;
        all.push(Released {
            from: from.name.clone(),
            to: to.name.clone(),
            loaded: is_loaded(&from.state),
            today: prediction.today.bytes,
            predicted: prediction.whatif.bytes,
            range: (prediction.whatif.low, prediction.whatif.high),
            real: to.state.bytes(),
        });
    }
    Ok(all)
}

/// What two dumps share that one predicts the other: machine, nodes, largest order, state.
fn alike(state: &State) -> Result<(Rules, usize, bool)> {
    let rules = Rules::of(state, &mut Vec::new())?;
    Ok((rules, state.dump.nodes.len(), is_loaded(state)))
}
