//! What debugging found: a typed value, and the text a kernel would print for it.

use crate::cache::CacheId;
use core::fmt;
use slablab_platform::CpuId;

/// A violation, and the facts known about the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kind of violation.
    pub fault: Fault,
    /// The cache that was asked.
    pub cache: CacheId,
    /// The object's address as a number: frame times page size plus offset.
    pub object: u64,
    /// The user whose call found it.
    pub by: User,
    /// The user that allocated the object last, where users are noted and the object is the cache's.
    pub allocated: Option<User>,
    /// The user that freed the object last, likewise. The free that found the violation counts.
    pub freed: Option<User>,
}

/// Kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A free of an address that is not an allocated object of this cache.
    Misuse(Misuse),
    /// A zone, or a free object, was written to.
    Overwritten(Overwritten),
    /// The engine handed out an object that a caller holds: its lists are broken.
    HandedOutTwice,
}

/// A caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The address is in no slab.
    NotInSlab,
    /// The object belongs to another cache.
    WrongCache(CacheId),
    /// The address is in a slab of this cache, but is not the start of an object.
    NotAnObject,
    /// The object is free already: a double free.
    AlreadyFree,
}

/// What is wrong with the address. The text continues a message that names the address: `free of 0x...: `.
impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::NotInSlab => f.write_str("not in a slab"),
            Misuse::WrongCache(owner) => write!(f, "an object of another cache, number {}", owner.0),
            Misuse::NotAnObject => f.write_str("not the start of an object"),
            Misuse::AlreadyFree => f.write_str("already free"),
        }
    }
}

impl core::error::Error for Misuse {}

/// A zone that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The bytes before the object.
    LeftRedZone,
    /// The bytes behind it.
    RightRedZone,
    /// The free object itself: a use after free.
    Poison,
    /// The rest of its slot.
    Padding,
}

/// The first wrong byte of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwritten {
    /// The zone.
    pub zone: Zone,
    /// Bytes from the object's start; negative before it.
    pub offset: i32,
    /// The byte that was found.
    pub found: u8,
    /// The byte that should be there.
    pub expected: u8,
}

/// The user of an object: a call site, a CPU and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The call site's number, as the caller gave it.
    pub site: u64,
    /// The CPU.
    pub cpu: CpuId,
    /// When, ns.
    pub at_ns: u64,
}

impl Fault {
    /// The fault's name, as the kernel words it where it has one.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Misuse(Misuse::NotInSlab) => "Not a slab object",
            Fault::Misuse(Misuse::WrongCache(_)) => "Object of another cache",
            Fault::Misuse(Misuse::NotAnObject) => "Invalid object pointer",
            Fault::Misuse(Misuse::AlreadyFree) => "Object already free",
            Fault::Overwritten(over) => match over.zone {
                Zone::LeftRedZone => "Left Redzone overwritten",
                Zone::RightRedZone => "Right Redzone overwritten",
                Zone::Poison => "Poison overwritten",
                Zone::Padding => "Object padding overwritten",
            },
            Fault::HandedOutTwice => "Object handed out twice",
        }
    }
}

/// The first violations of a cache, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// The first ones, oldest first.
    pub first: [Option<Report>; Reports::KEPT],
    /// All of them.
    pub total: u64,
}

impl Reports {
    /// The number of reports that a cache stores.
    pub const KEPT: usize = 8;

    pub(crate) fn add(&mut self, report: Report) {
        if let Some(place) = self.first.get_mut(self.total as usize) {
            *place = Some(report);
        }
        self.total += 1;
    }
}

/// A report as text, under the cache's name.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a, C> {
    /// The report.
    pub report: &'a Report,
    /// The cache's name.
    pub cache: C,
    /// Writes what a call site's number stands for.
    pub site: fn(u64, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl<'a, C> Text<'a, C> {
    /// Call sites are written as numbers.
    pub fn new(report: &'a Report, cache: C) -> Self {
        Text { report, cache, site: |site, f| write!(f, "{site}") }
    }
}

/// A call site as a [`Text`] writes it.
struct Site(u64, fn(u64, &mut fmt::Formatter<'_>) -> fmt::Result);

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1(self.0, f)
    }
}

impl<C: fmt::Display> fmt::Display for Text<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { fault, object, by, allocated, freed, .. } = self.report;
        writeln!(f, "BUG {}: {}", self.cache, fault.name())?;
        match fault {
            Fault::Overwritten(Overwritten { offset, found, expected, .. }) => {
                writeln!(f, "INFO: byte {offset} of the object is {found:#04x} instead of {expected:#04x}")?;
            }
            Fault::Misuse(Misuse::WrongCache(owner)) => {
                writeln!(f, "INFO: it belongs to cache {}", owner.0)?;
            }
            Fault::Misuse(_) | Fault::HandedOutTwice => {}
        }
        for (what, user) in [("Allocated", allocated), ("Freed", freed)] {
            if let Some(User { site, cpu, at_ns }) = user {
                let age = by.at_ns.saturating_sub(*at_ns);
                let site = Site(*site, self.site);
                writeln!(f, "INFO: {what} in {site} age={age} ns cpu={}", cpu.0)?;
            }
        }
        let site = Site(by.site, self.site);
        write!(f, "INFO: Object {object:#x}, found in {site} on cpu {} at {} ns", by.cpu.0, by.at_ns)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    /// A message continues with the text of a misuse, so no text is the name of a variant.
    #[test]
    fn each_misuse_says_what_is_wrong_with_the_address() {
        let check = |misuse: Misuse, text: &str| assert_eq!(misuse.to_string(), text, "{misuse:?}");
        check(Misuse::NotInSlab, "not in a slab");
        check(Misuse::WrongCache(CacheId(7)), "an object of another cache, number 7");
        check(Misuse::NotAnObject, "not the start of an object");
        check(Misuse::AlreadyFree, "already free");
    }
}
