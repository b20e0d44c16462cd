//! How much CPUs and nodes keep: from the least to the most.

/// Two boots of one kernel under one load differ by 2 to 5 %: both ends of a range are wider by this part.
pub const SCATTER: f64 = 0.05;

/// Room in slabs for each parked object of a cache whose slabs were filled at a peak that is gone, the
/// object included: geometric mean, and one standard deviation as a factor, over the six caches of which
/// the bundled recording frees more than a thousand objects, replayed under `slub@7.1`. A test of
/// the replay checks both.
pub const ROOM: (f64, f64) = (3.3, 2.3);

/// How much is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::whatif) enum Level {
    /// Nothing but what a refill must bring.
    Least,
    /// Sheaves half full, where nothing tells.
    Expected,
    /// All filled.
    Most,
}

impl Level {
    /// The part of a sheaf, or of a barn, that is filled where nothing tells.
    pub(super) fn filled(self) -> f64 {
        match self {
            Level::Least => 0.0,
            Level::Expected => 0.5,
            Level::Most => 1.0,
        }
    }

    /// Room in slabs for each parked object of a load's peak.
    pub(super) fn room(self) -> f64 {
        let (room, factor) = ROOM;
        match self {
            Level::Least => room / factor,
            Level::Expected => room,
            Level::Most => room * factor,
        }
    }

    /// Of the CPUs that allocated (`holding`) and all (`cpus`), those with a spare sheaf.
    pub(super) fn spares(self, holding: f64, cpus: f64) -> f64 {
        match self {
            Level::Least => 0.0,
            Level::Expected => holding,
            Level::Most => cpus,
        }
    }
}
