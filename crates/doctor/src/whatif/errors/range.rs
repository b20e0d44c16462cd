//! The errors that are built in, and the range of a prediction.

use super::class::{COVERAGE, Class, LogError, Question, half_width};
use std::fmt;
use std::sync::LazyLock;

const BUILTIN: &str = include_str!("../../../data/whatif-errors.csv");

/// The columns of the table.
pub const COLUMNS: [&str; 10] = [
    "from",
    "to",
    "machine",
    "change",
    "question",
    "large",
    "loaded",
    "far",
    "predicted_bytes",
    "real_bytes",
];

/// Measured errors.
static ERRORS: LazyLock<Vec<LogError>> =
    LazyLock::new(|| BUILTIN.lines().skip(1).filter_map(error).collect());

/// The width of the widest range.
static WIDEST: LazyLock<f64> = LazyLock::new(|| {
    let widths = ERRORS.iter().map(|error| half_width(ERRORS.iter(), error.class));
    widths.fold(0.0, f64::max)
});

fn error(line: &str) -> Option<LogError> {
    let cells: Vec<&str> = line.split(',').collect();
    let [_, _, machine, _, question, large, loaded, far, predicted, real] =
        <[&str; 10]>::try_from(cells).ok()?;
    let question = Question::ALL.into_iter().find(|known| known.name() == question)?;
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|bytes| *bytes > 0.0);
    let [large, loaded, far] = [large, loaded, far].map(|cell| cell == "yes");
    let class = Class { question, large, loaded, far };
    Some(LogError { class, machine: machine.into(), ln: (number(real)? / number(predicted)?).ln() })
}

/// Where the range beside a prediction is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// The change has no effect on any cache: there is no range.
    Unchanged,
    /// Predictions of this class were compared with boots.
    Measured {
        /// What the error depends on.
        class: Class,
        /// Half of the width, as a logarithm.
        ln: f64,
    },
    /// What is asked is not predicted: why. The dump is no bound.
    Unknown(&'static str),
    /// Another release: from nothing parked to all filled, and the scatter of boots.
    Modelled {
        /// The least bytes of all slabs.
        low: u64,
        /// The most bytes of all slabs.
        high: u64,
    },
    /// No boot was there for comparison. The range is the widest of any class, a guess.
    Guess {
        /// Half of the width, as a logarithm.
        ln: f64,
    },
}

impl Range {
    /// The range of a class, `wider` times as wide.
    pub fn measured(class: Class, wider: f64) -> Range {
        Range::Measured { class, ln: half_width(ERRORS.iter(), class) * wider }
    }

    /// The widest range of any class.
    pub fn guess() -> Range {
        Range::Guess { ln: *WIDEST }
    }

    /// Half of the width, as a logarithm; 0 where the range has none.
    pub fn ln(self) -> f64 {
        match self {
            Range::Unchanged | Range::Unknown(_) | Range::Modelled { .. } => 0.0,
            Range::Measured { ln, .. } | Range::Guess { ln } => ln,
        }
    }

    /// A modelled range that is wider at both ends, by `ln` as a logarithm.
    pub fn widened(self, ln: f64) -> Range {
        match self {
            Range::Modelled { low, high } => {
                let (low, high) = (low as f64 / ln.exp(), high as f64 * ln.exp());
                Range::Modelled { low: low as u64, high: high as u64 }
            }
            other => other,
        }
    }

    /// Why slab memory is not predicted, if it is not.
    pub fn unknown(self) -> Option<&'static str> {
        match self {
            Range::Unknown(why) => Some(why),
            _ => None,
        }
    }

    /// The least and the most bytes around a prediction.
    pub fn around(self, bytes: u64) -> (u64, u64) {
        if let Range::Modelled { low, high } = self {
            return (low, high);
        }
        let factor = self.ln().exp();
        ((bytes as f64 / factor) as u64, (bytes as f64 * factor) as u64)
    }

    /// Whether boots measured predictions of this kind.
    pub fn is_measured(self) -> bool {
        matches!(self, Range::Unchanged | Range::Measured { .. })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * COVERAGE;
        match self {
            Range::Unchanged => f.write_str("the change alters no cache"),
            Range::Measured { class, .. } => {
                write!(f, "{percent:.0} % of measured boots fall inside; {class}")
            }
            Range::Unknown(why) => write!(f, "unknown: {why}"),
            Range::Modelled { .. } => f.write_str(
                "from nothing parked to all filled, and 5 % by which two boots of a kernel differ",
            ),
            Range::Guess { .. } => write!(
                f,
                "assumed: as wide as the widest measured range; no boot has measured such a prediction"
            ),
        }
    }
}
