//! Counts of a /proc/slabinfo that is newer than /sys/kernel/slab.
//!
//! A walk through sysfs allocates slabs itself, and some time passes until a recording begins; the text of
//! /proc/slabinfo can be read just then. It has the slabs and the active objects, so also the objects free on
//! node lists, but neither how many slabs have those nor which node they are on. These are as sysfs had them,
//! as far as both can be true.

use super::{Before, CacheBefore};
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::text::Breakdown;
use slablab_report::error::{Error, Result};
use std::path::Path;

impl Before {
    /// This state with the totals of `newer`.
    pub(super) fn with_totals(mut self, newer: &Before) -> Result<Before> {
        let Some(slabinfo) = newer.slabinfo.clone() else {
            return Err(Error::new(&newer.path, "has no proc/slabinfo"));
        };
        for row in slabinfo.rows.iter().filter(|row| row.ordinal == 0) {
            match self.find(&row.name).map(|(index, _)| index) {
                Some(index) => self.caches[index].set_totals(row, &self.path, &newer.path)?,
                None => self.caches.push(CacheBefore::of_row(row)),
            }
        }
        self.slabinfo = Some(slabinfo);
        Ok(self.indexed())
    }
}

impl CacheBefore {
    fn set_totals(&mut self, row: &SlabinfoRow, at: &Path, newer: &Path) -> Result<()> {
        if (row.objsize, row.objperslab) != (self.size, self.objects) {
            let text = format!(
                "{}: {} objects of {} bytes in a slab, in {} {} of {}: expected two dumps of one machine",
                row.name,
                row.objperslab,
                row.objsize,
                at.display(),
                self.objects,
                self.size
            );
            return Err(Error::new(newer, text));
        }
        self.active = row.active_objs;
        let free = row.num_objs.saturating_sub(row.active_objs);
        let objects = row.objperslab.max(1);
        let frozen = self.cpu_slabs.as_ref().map_or(0, |slabs| slabs.total.value);
        if let Some(slabs) = &mut self.slabs {
            set_total(slabs, row.num_slabs);
        }
        if let (Some(partial), Some(in_use)) = (&mut self.partial, &mut self.objects_partial) {
            // A listed slab has one free object at least, and at most all of its objects.
            let least = free.div_ceil(objects);
            let most = free.min(row.num_slabs.saturating_sub(frozen)).max(least);
            let listed = partial.total.value.clamp(least, most);
            set_total(partial, listed);
            set_total(in_use, (listed * objects).saturating_sub(free));
        }
        Ok(())
    }
}

/// Sets a total; the nodes' parts keep their proportions, as far as whole numbers can.
fn set_total(counts: &mut Breakdown, total: u64) {
    let (old, nodes) = (counts.nodes_sum(), counts.nodes.len());
    counts.total.value = total;
    let mut passed = (0, 0);
    for (_, count) in &mut counts.nodes {
        let share = |upto: u64| match old {
            0 => 0,
            old => (u128::from(upto) * u128::from(total) / u128::from(old)) as u64,
        };
        let upto = passed.0 + count.value;
        let value = share(upto) - passed.1;
        passed = (upto, passed.1 + value);
        count.value = value;
    }
    if old == 0 && nodes > 0 {
        counts.nodes[0].1.value = total;
    }
}
