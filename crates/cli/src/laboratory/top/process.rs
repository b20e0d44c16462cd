//! Another process: its memory, its mappings, its page faults, all from /proc.

use crate::outcome::Failure;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Memory that is read by address. The tests have one of their own.
pub(super) trait Memory {
    /// Fills `into` from an address on.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
    /// Whether each page from an address on, which begins a page, holds anything. `None`: not known.
    fn present(&self, at: u64, page: u64, pages: usize) -> Option<Vec<bool>>;
    /// Mappings, in the order of their addresses.
    fn mappings(&self) -> io::Result<Vec<Mapping>>;

    /// A word.
    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.read(at, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// `bytes` bytes from an address on. Pages that hold nothing read as zeros, and are not touched: a read
    /// would make the kernel map a page of zeros into the other process.
    fn read_present(&self, at: u64, bytes: usize, page: u64) -> io::Result<Vec<u8>> {
        let mut all = vec![0; bytes];
        let start = at & !(page - 1);
        let Some(end) = at.checked_add(bytes as u64) else { return Err(ErrorKind::InvalidInput.into()) };
        let pages = (end - start).div_ceil(page) as usize;
        let Some(present) = self.present(start, page, pages) else {
            self.read(at, &mut all)?;
            return Ok(all);
        };
        let mut index = 0;
        while index < pages {
            let run = present[index..].iter().take_while(|is| **is == present[index]).count();
            if present[index] {
                let from = (start + index as u64 * page).max(at);
                let to = (start + (index + run) as u64 * page).min(end);
                self.read(from, &mut all[(from - at) as usize..(to - at) as usize])?;
            }
            index += run;
        }
        Ok(all)
    }
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_writable: bool,
    /// Private, and of no file.
    pub(super) is_anonymous: bool,
}

impl Mapping {
    /// A line of /proc/PID/maps. `None` if it is none.
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let access = words.next()?;
        let inode = words.nth(2)?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            is_writable: access.starts_with("rw"),
            is_anonymous: inode == "0" && access.ends_with('p'),
        })
    }
}

/// A process of this machine.
pub(super) struct Process {
    pub(super) pid: u32,
    /// The program's name, as `ps` shows it.
    pub(super) name: String,
    memory: File,
    /// Which pages hold something. `None` where the kernel does not tell.
    pagemap: Option<File>,
}

impl Process {
    /// Opens a process for reading.
    pub(super) fn open(pid: u32) -> Result<Process, Failure> {
        let path = |file: &str| format!("/proc/{pid}/{file}");
        let name = match std::fs::read_to_string(path("comm")) {
            Ok(name) => name.trim_end().to_string(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!("process {pid}: no such process; expected a number that ps lists").into());
            }
            Err(error) => return Err(format!("process {pid}: {}: {error}", path("comm")).into()),
        };
        let memory = File::open(path("mem")).map_err(|error| refused(pid, &name, &error))?;
        let pagemap = File::open(path("pagemap")).ok();
        Ok(Process { pid, name, memory, pagemap })
    }

    /// Minor and major page faults since the process began.
    pub(super) fn faults(&self) -> io::Result<(u64, u64)> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        faults(&text).ok_or_else(|| io::Error::other(format!("/proc/{}/stat has no page faults", self.pid)))
    }
}

/// The numbers of page faults in /proc/PID/stat. The program's name, in parentheses, may hold anything.
fn faults(stat: &str) -> Option<(u64, u64)> {
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // The third field of the file is the first one behind the name.
    let minor = words.nth(10 - 3)?.parse().ok()?;
    Some((minor, words.nth(1)?.parse().ok()?))
}

/// `ESRCH`: what the kernel says of the memory of a process that has none.
const NO_SUCH_PROCESS: i32 = 3;

/// Why a process's memory is not readable.
fn refused(pid: u32, name: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "process {pid} ({name}): its memory may not be read; expected a process of the same user that \
             may be traced (kernel.yama.ptrace_scope=0), or CAP_SYS_PTRACE; try sudo slablab top {pid}"
        ),
        _ if error.raw_os_error() == Some(NO_SUCH_PROCESS) => {
            format!("process {pid} ({name}): it has no memory: a thread of the kernel, or it has ended")
        }
        _ => format!("process {pid} ({name}): /proc/{pid}/mem: {error}"),
    }
}

impl Process {
    /// Writes a word of the process.
    pub(super) fn write_word(&self, at: u64, word: u64) -> io::Result<()> {
        let memory = File::options().write(true).open(format!("/proc/{}/mem", self.pid))?;
        memory.write_all_at(&word.to_le_bytes(), at)
    }
}

impl Memory for Process {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(into, at)
    }

    fn present(&self, at: u64, page: u64, pages: usize) -> Option<Vec<bool>> {
        // Two bits of a page's entry: it is in memory, it is swapped.
        const HOLDS: u64 = 3 << 62;
        let mut entries = vec![0; pages * 8];
        self.pagemap.as_ref()?.read_exact_at(&mut entries, at / page * 8).ok()?;
        let entries = entries.as_chunks::<8>().0.iter();
        Some(entries.map(|entry| u64::from_le_bytes(*entry) & HOLDS != 0).collect())
    }

    fn mappings(&self) -> io::Result<Vec<Mapping>> {
        let text = std::fs::read(format!("/proc/{}/maps", self.pid))?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(Mapping::parse).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc() {
        let line = "7f0000000000-7f0000021000 rw-p 00000000 00:00 0                          [heap) 0]";
        let (start, end) = (0x7f00_0000_0000, 0x7f00_0002_1000);
        let private = Mapping { start, end, is_writable: true, is_anonymous: true };
        assert_eq!(Mapping::parse(line), Some(private.clone()));
        let of_file = line.replace("00:00 0 ", "08:01 7 ").replace("rw-p", "r--p");
        let expected = Mapping { is_writable: false, is_anonymous: false, ..private };
        assert_eq!(Mapping::parse(&of_file), Some(expected));
        for bad in ["", "7f-", "1-2", "1-2 rw-p 0 0", "x-y rw-p 0 0 0"] {
            assert_eq!(Mapping::parse(bad), None, "{bad}");
        }
        // minflt is the tenth field, majflt the twelfth.
        assert_eq!(faults("1 (a) b) 5) S 4 5 6 7 8 9 10 11 12 13"), Some((10, 12)));
        assert_eq!(faults("1 (a S 4 5 6 7 8 9 10 11 12 13"), None);
        assert_eq!(faults("1 (a) S 4 5 6 7 8 9 10"), None);
    }
}
