//! The head of a trace.dat, version 6, as trace-cmd(1) writes and reads it: trace-cmd.dat.v6(5).

/// The buffer of a CPU, in bytes as it was read.
pub(super) struct Ring {
    pub(super) cpu: u32,
    pub(super) bytes: u64,
}

/// What is in front of the events.
pub(super) struct Head<'a> {
    pub(super) header_page: &'a [u8],
    pub(super) header_event: &'a [u8],
    pub(super) ftrace: &'a [Vec<u8>],
    /// Systems of events, with the formats of theirs. One without events is left out.
    pub(super) systems: &'a [(&'a str, Vec<Vec<u8>>)],
    pub(super) kallsyms: &'a [u8],
    /// Lines of number and name.
    pub(super) names: &'a str,
    /// The list of clocks, the used one in brackets.
    pub(super) clock: &'a str,
    /// The text of a CPU's `stats`, with the number of the CPU in front.
    pub(super) stats: &'a [String],
    /// CPUs ascending.
    pub(super) rings: &'a [Ring],
}

/// Options of the file.
const DONE: u16 = 0;
const CPUSTAT: u16 = 2;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const CPUCOUNT: u16 = 8;

impl Head<'_> {
    /// The bytes, up to a whole page of the buffers: the events follow, CPU by CPU.
    pub(super) fn bytes(&self, page_size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(b"\x17\x08\x44tracing6\0");
        out.extend([u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
        out.extend((rustix::param::page_size() as u32).to_ne_bytes());
        for (name, text) in [("header_page\0", self.header_page), ("header_event\0", self.header_event)] {
            out.extend(name.as_bytes());
            long(&mut out, text);
        }
        out.extend((self.ftrace.len() as u32).to_ne_bytes());
        self.ftrace.iter().for_each(|format| long(&mut out, format));
        let systems = || self.systems.iter().filter(|(_, formats)| !formats.is_empty());
        out.extend((systems().count() as u32).to_ne_bytes());
        for (name, formats) in systems() {
            out.extend([name.as_bytes(), &[0]].concat());
            out.extend((formats.len() as u32).to_ne_bytes());
            formats.iter().for_each(|format| long(&mut out, format));
        }
        out.extend((self.kallsyms.len() as u32).to_ne_bytes());
        out.extend(self.kallsyms);
        // No texts of trace_printk.
        out.extend(0u32.to_ne_bytes());
        long(&mut out, self.names.as_bytes());
        let cpus = self.rings.last().map_or(0, |ring| ring.cpu + 1);
        out.extend(cpus.to_ne_bytes());
        self.options(&mut out, cpus);
        out.extend(b"flyrecord\0");
        let clock_len = 8 + self.clock.len();
        let mut at = (out.len() + 16 * cpus as usize + clock_len).next_multiple_of(page_size) as u64;
        let begin = at as usize;
        for cpu in 0..cpus {
            let size = self.rings.iter().find(|ring| ring.cpu == cpu).map_or(0, |ring| ring.bytes);
            out.extend(at.to_ne_bytes());
            out.extend(size.to_ne_bytes());
            at += size;
        }
        long(&mut out, self.clock.as_bytes());
        out.resize(begin, 0);
        out
    }

    fn options(&self, out: &mut Vec<u8>, cpus: u32) {
        out.extend(b"options  \0");
        let mut option = |id: u16, value: &[u8]| {
            out.extend(id.to_ne_bytes());
            out.extend((value.len() as u32).to_ne_bytes());
            out.extend(value);
        };
        self.stats.iter().for_each(|text| option(CPUSTAT, &[text.as_bytes(), &[0]].concat()));
        option(TRACECLOCK, &[self.clock.as_bytes(), &[0]].concat());
        let uname = rustix::system::uname();
        let words = [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
        option(UNAME, &words.map(|word| word.to_bytes()).join(&b' '));
        option(CPUCOUNT, &cpus.to_ne_bytes());
        out.extend(DONE.to_ne_bytes());
    }
}

/// A 64-bit size, and as many bytes.
fn long(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_ne_bytes());
    out.extend(bytes);
}
