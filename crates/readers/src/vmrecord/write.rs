//! Writes a record as the recording program does.

use super::{Disk, ObjectCounts, ObjectResidency, Phase, Record, State};
use std::fmt::{self, Display, Formatter};

impl Record {
    /// The record as text.
    pub fn write(&self) -> String {
        self.to_string()
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.phases.iter().try_for_each(|phase| phase.fmt(f))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        if self.is_complete { writeln!(f, "@end") } else { Ok(()) }
    }
}

impl Display for Phase {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        writeln!(f, "@phase {}", self.name)?;
        writeln!(f, "elapsed_ns {}\nuptime_ns {}", self.elapsed_ns, self.uptime_ns)?;
        let rusage = &self.rusage;
        writeln!(
            f,
            "rusage minflt={} majflt={} inblock={} oublock={} utime_us={} stime_us={} nvcsw={} nivcsw={}",
            rusage.minflt,
            rusage.majflt,
            rusage.inblock,
            rusage.oublock,
            rusage.utime_us,
            rusage.stime_us,
            rusage.nvcsw,
            rusage.nivcsw
        )?;
        writeln!(f, "counts ok={} fail={} stats={}", self.counts.ok, self.counts.fail, self.counts.stats)?;
        self.objects.iter().try_for_each(|object| object.fmt(f))?;
        self.residency.iter().try_for_each(|object| object.fmt(f))?;
        self.disks.iter().try_for_each(|disk| disk.fmt(f))?;
        writeln!(f, "<vmstat>")?;
        for counter in &self.vmstat {
            writeln!(f, "{} {} {}", counter.name, counter.delta, counter.value)?;
        }
        writeln!(f, "</vmstat>")?;
        for section in &self.sections {
            write!(f, "<{0}>\n{1}</{0}>\n", section.name, section.text)?;
        }
        Ok(())
    }
}

impl Display for ObjectCounts {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ObjectCounts { name, ops, minflt, majflt, inblock, ns } = self;
        writeln!(f, "obj {name} ops={ops} minflt={minflt} majflt={majflt} inblock={inblock} ns={ns}")
    }
}

impl Display for ObjectResidency {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let [absent, present, swapped] = State::ALL.map(|state| self.pages.count(state));
        let (name, pages) = (&self.name, self.pages.pages());
        let counts = format!("pages={pages} present={present} swapped={swapped} absent={absent}");
        writeln!(f, "res {name} {counts} {}", self.pages.encode())
    }
}

impl Display for Disk {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "blk {}", self.name)?;
        self.stat.iter().try_for_each(|field| write!(f, " {field}"))?;
        writeln!(f)
    }
}
