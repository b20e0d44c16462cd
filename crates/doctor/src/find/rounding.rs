//! A finding about what kmalloc's classes cost.

use super::finding::{Finding, Kind};
use crate::measure::rounding::Rounding;
use crate::words::{percent, size};

/// The finding, if rounding is a tenth of the bytes given and at least `worth` bytes.
pub(crate) fn find(rounding: &Rounding, worth: u64) -> Option<Finding> {
    const PERCENT: u64 = 10;
    let bytes = rounding.bytes();
    if bytes < worth || bytes < rounding.allocated / 100 * PERCENT {
        return None;
    }
    let of = |class: &(&u32, &(u64, u64))| {
        u64::from(*class.0) * class.1.0 - class.1.1.min(u64::from(*class.0) * class.1.0)
    };
    let worst = rounding.classes.iter().max_by_key(of).map_or(String::new(), |class| {
        format!("; most by {} objects of {} bytes, {}", class.1.0, class.0, size(of(&class)))
    });
    Some(Finding::of_machine(
        Kind::Rounding,
        bytes,
        format!(
            "kmalloc rounds up: the {} objects that the recording allocated and did not free asked for \
             {} and got {}, {} more ({}){worst}",
            rounding.objects,
            size(rounding.requested),
            size(rounding.allocated),
            size(bytes),
            percent(bytes, rounding.allocated)
        ),
    ))
}
