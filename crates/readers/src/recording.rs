//! The file that `slablab record` writes of a kernel: a recording, and the state of the machine around it, in
//! one tar.
//!
//! ```text
//! slablab-recording.json   what was recorded, when, how; the first member
//! before.tar.zst           a dump of before the recording
//! after.tar.zst            a dump of after it
//! slabinfo.start           /proc/slabinfo when the recorder ran, and the command did not yet
//! slabinfo.end             /proc/slabinfo when the command had ended, and the recorder still ran
//! slabs.start.zst          every slab just after slabinfo.start, if the recorder could read the memory
//! slabs.end.zst            every slab just after slabinfo.end
//! kallsyms.zst             the kernel's symbols
//! perf.data.zst            the events, or trace.dat.zst: the last member
//! ```
//! The tar itself is not compressed, so a reader finds each member by its place. A tar that another program
//! made of the members has them in any order. docs/record.md describes it for use with other programs.

use std::io::{self, Read, Seek, SeekFrom};

use crate::tar::{Entry, Tar, TarError};

/// The member that makes a tar a recording: a description in JSON. `slablab record` writes it first.
pub const ABOUT: &str = "slablab-recording.json";
/// The dump of before the recording.
pub const BEFORE: &str = "before.tar.zst";
/// The dump of after the recording.
pub const AFTER: &str = "after.tar.zst";
/// /proc/slabinfo at the first recorded event.
pub const START: &str = "slabinfo.start";
/// /proc/slabinfo at the last recorded event.
pub const END: &str = "slabinfo.end";
/// Every slab at the first recorded event.
pub const START_SLABS: &str = "slabs.start.zst";
/// Every slab at the last recorded event.
pub const END_SLABS: &str = "slabs.end.zst";
/// The kernel's symbols.
pub const KALLSYMS: &str = "kallsyms.zst";
/// The events, by perf.
pub const PERF_DATA: &str = "perf.data.zst";
/// The events, by tracefs.
pub const TRACE_DAT: &str = "trace.dat.zst";

/// All members.
const ALL: [&str; 10] =
    [ABOUT, BEFORE, AFTER, START, END, START_SLABS, END_SLABS, KALLSYMS, PERF_DATA, TRACE_DAT];

/// The largest member that is no recording of events.
const LIMIT: u64 = 64 << 20;

/// The name of the member at `path` of a tar; `None` for a file that is no member of a recording.
pub(crate) fn member_name(path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    ALL.into_iter().find(|name| *name == path)
}

/// Whether this is the member of events.
pub(crate) fn is_events(name: &str) -> bool {
    matches!(name, PERF_DATA | TRACE_DAT)
}

/// Which of a recording's two states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// Before the recording.
    Before,
    /// After it.
    #[default]
    After,
}

impl Moment {
    /// The member that has its dump.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Moment::Before => BEFORE,
            Moment::After => AFTER,
        }
    }

    /// The member that has its slabs.
    pub(crate) fn slabs(self) -> &'static str {
        match self {
            Moment::Before => START_SLABS,
            Moment::After => END_SLABS,
        }
    }
}

/// A member: its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// The members of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(Vec<Member>);

impl Members {
    /// The members of the file that `reader` begins at; `None` if it is no such recording: one that begins
    /// with [`ABOUT`], or has it and nothing but members of a recording. Reads as far as the member of events
    /// where [`ABOUT`] is before it, else to the end.
    ///
    /// # Errors
    /// A tar that is damaged, or ends before its events.
    pub fn of(reader: impl Read) -> Result<Option<Members>, TarError> {
        let mut tar = Tar::new(reader);
        let (mut members, mut is_recording): (Vec<Member>, bool) = (Vec::new(), false);
        loop {
            match tar.next() {
                Ok(Some(Entry::File { path, size, .. })) => {
                    let known = member_name(&path);
                    if known.is_none() && !is_recording {
                        return Ok(None);
                    }
                    is_recording |= known == Some(ABOUT);
                    let name = known.map_or(path, String::from);
                    let is_last = is_recording && is_events(&name);
                    members.push(Member { name, offset: tar.offset(), size });
                    if is_last {
                        return Ok(Some(Members(members)));
                    }
                }
                // Not a tar at all, or one of something else.
                Err(_) if !is_recording => return Ok(None),
                Err(error) => return Err(error),
                Ok(_) => return Ok(is_recording.then_some(Members(members))),
            }
        }
    }

    /// The member that is called `name`.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.0.iter().find(|member| member.name == name)
    }

    /// The member that has the events.
    pub fn events(&self) -> Option<&Member> {
        self.0.iter().find(|member| is_events(&member.name))
    }
}

impl Member {
    /// The member's bytes in `file`: a reader that ends where the member ends.
    ///
    /// # Errors
    /// What `file` reports.
    pub fn open<R: Read + Seek>(&self, mut file: R) -> io::Result<io::Take<R>> {
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file.take(self.size))
    }

    /// The member's bytes, as they are in `file`. Not for events, which may be larger than memory.
    ///
    /// # Errors
    /// What `file` reports; a member that is larger than any of a kernel, or cut off.
    pub fn read(&self, file: impl Read + Seek) -> io::Result<Vec<u8>> {
        let Member { name, size, .. } = self;
        if *size > LIMIT {
            let what = format!("{name}: expected at most {LIMIT} bytes, found {size}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mut content = Vec::new();
        self.open(file)?.read_to_end(&mut content)?;
        if (content.len() as u64) < *size {
            let what = format!("{name}: cut off after {} of {size} bytes", content.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn header(name: &str, size: usize) -> [u8; 512] {
        let mut block = [0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[148..156].copy_from_slice(b"        ");
        block[156] = b'0';
        block[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    }

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, content) in members {
            tar.extend(header(name, content.len()));
            tar.extend(*content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar
    }

    #[test]
    fn members_by_their_places() {
        #[track_caller]
        fn check(members: &[(&str, &[u8])], expected: Option<&[&str]>) {
            let tar = tar(members);
            let found = Members::of(&tar[..]).unwrap();
            let names = found.as_ref().map(|found| found.0.iter().map(|member| &member.name[..]).collect());
            assert_eq!(names, expected.map(<[_]>::to_vec));
            for member in found.iter().flat_map(|found| &found.0) {
                let content = members.iter().find(|(name, _)| *name == member.name).unwrap().1;
                assert_eq!(member.read(Cursor::new(&tar)).unwrap(), content);
            }
        }
        let events = (PERF_DATA, &b"events"[..]);
        check(&[(ABOUT, b"{}"), (BEFORE, b"dump"), events], Some(&[ABOUT, BEFORE, PERF_DATA]));
        check(&[(ABOUT, b"{}"), events, (AFTER, b"behind the events")], Some(&[ABOUT, PERF_DATA]));
        check(&[(ABOUT, b"{}")], Some(&[ABOUT]));
        // Packed anew by another program: in the order of names, or below the folder.
        check(
            &[(AFTER, b"dump"), events, (ABOUT, b"{}"), (START, b"rows")],
            Some(&[AFTER, PERF_DATA, ABOUT, START]),
        );
        check(&[(AFTER, b"dump"), events], None);
        check(&[(AFTER, b"dump"), ("proc/slabinfo", b"text"), (ABOUT, b"{}")], None);
        check(&[("proc/slabinfo", b"text"), (ABOUT, b"{}")], None);
        check(&[], None);
    }

    #[test]
    fn members_below_a_folder() {
        let tar = tar(&[("./perf.data.zst", b"events"), ("./slablab-recording.json", b"{}")]);
        let members = Members::of(&tar[..]).unwrap().unwrap();
        assert_eq!(members.events().unwrap().read(Cursor::new(&tar)).unwrap(), b"events");
        assert_eq!(members.get(ABOUT).unwrap().read(Cursor::new(&tar)).unwrap(), b"{}");
    }

    #[test]
    fn a_member_that_is_cut_off_says_so() {
        let tar = tar(&[(ABOUT, &[b'x'; 600]), (PERF_DATA, b"events")]);
        let members = Members::of(&tar[..]).unwrap().unwrap();
        let error = members.get(ABOUT).unwrap().read(Cursor::new(&tar[..700])).unwrap_err();
        assert_eq!(error.to_string(), "slablab-recording.json: cut off after 188 of 600 bytes");
        assert!(Members::of(&tar[..700]).unwrap_err().is_cut_off());
    }
}
