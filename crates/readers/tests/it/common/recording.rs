//! A trace.dat put together by hand, after the man pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5): in
//! either version and endianness, with whatever a test wants in the ring buffers and the options.

/// Bytes of a page of the ring buffers here.
pub(crate) const PAGE: usize = 256;
/// Commit word: events were lost before this page; their number stands behind the events.
pub(crate) const MISSED: u64 = 1 << 31;
pub(crate) const MISSED_STORED: u64 = 1 << 30;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:240;\tsigned:1;\n";

const COMMON: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// Numbers of the events that the recording knows.
pub(crate) const KFREE: u16 = 300;
pub(crate) const PRINT: u16 = 5;
pub(crate) const OTHER: u16 = 301;

/// An option: its number and its value.
pub(crate) type Choice = (u16, Vec<u8>);

/// The parts of a recording; what a test does not set is as a recorder would write it.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) version: u8,
    pub(crate) big_endian: bool,
    /// Each CPU's pages.
    pub(crate) cpus: Vec<Vec<Vec<u8>>>,
    /// Each CPU's pages of another instance.
    pub(crate) instance: Option<Vec<Vec<Vec<u8>>>>,
    pub(crate) options: Vec<Choice>,
    pub(crate) header_page: String,
    /// The clock of version 7, and what version 6 has behind its table.
    pub(crate) clock: &'static str,
}

impl Recording {
    pub(crate) fn new(version: u8, big_endian: bool) -> Recording {
        let (cpus, options) = Default::default();
        let header_page = HEADER_PAGE.into();
        Recording { version, big_endian, cpus, instance: None, options, header_page, clock: "local" }
    }

    pub(crate) fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u64(&self, value: u64) -> [u8; 8] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// The word in front of an entry: five bits of kind, 27 of time.
    fn word(&self, kind: u32, delta: u32) -> [u8; 4] {
        self.u32(if self.big_endian { kind << 27 | delta } else { delta << 5 | kind })
    }

    /// A kfree of `ptr`: 24 bytes of payload.
    pub(crate) fn kfree(&self, delta: u32, ptr: u64) -> Vec<u8> {
        self.data(delta, &self.payload(KFREE, &[self.u64(0xffff_ffff_8100_0010), self.u64(ptr)].concat()))
    }

    /// The same, its size in a word of its own.
    pub(crate) fn long_kfree(&self, delta: u32, ptr: u64) -> Vec<u8> {
        let payload = self.payload(KFREE, &[self.u64(0xffff_ffff_8100_0010), self.u64(ptr)].concat());
        [&self.word(0, delta)[..], &self.u32(payload.len() as u32 + 4), &payload].concat()
    }

    /// An event with the common fields (interrupts off, depth 2, task 7) and what is behind them.
    pub(crate) fn payload(&self, id: u16, rest: &[u8]) -> Vec<u8> {
        [&self.u16(id)[..], &[1, 2], &self.u32(7), rest].concat()
    }

    /// An event of up to 112 bytes.
    pub(crate) fn data(&self, delta: u32, payload: &[u8]) -> Vec<u8> {
        assert!(payload.len().is_multiple_of(4) && payload.len() <= 112);
        [&self.word(payload.len() as u32 / 4, delta), payload].concat()
    }

    /// An event that was thrown away; its size counts from the word that says it.
    pub(crate) fn discarded(&self, delta: u32, payload: &[u8]) -> Vec<u8> {
        [&self.word(29, delta)[..], &self.u32(payload.len() as u32 + 4), payload].concat()
    }

    /// Padding up to the page's end.
    pub(crate) fn padding(&self) -> Vec<u8> {
        [&self.word(29, 0)[..], &[0xee; 20]].concat()
    }

    /// More time than 27 bits hold.
    pub(crate) fn extend(&self, delta: u64) -> Vec<u8> {
        [self.word(30, delta as u32 & 0x7ff_ffff), self.u32((delta >> 27) as u32)].concat()
    }

    /// The time itself.
    pub(crate) fn stamp(&self, time: u64) -> Vec<u8> {
        [self.word(31, time as u32 & 0x7ff_ffff), self.u32((time >> 27) as u32)].concat()
    }

    /// A page of entries; `missed` are flags of the commit word, and what stands behind the events.
    pub(crate) fn page(&self, time: u64, entries: &[Vec<u8>], missed: (u64, Option<u64>)) -> Vec<u8> {
        let entries = entries.concat();
        let commit = entries.len() as u64 | missed.0;
        let stored = missed.1.map_or(Vec::new(), |count| self.u64(count).to_vec());
        let mut page = [&self.u64(time)[..], &self.u64(commit), &entries, &stored].concat();
        assert!(page.len() <= PAGE);
        page.resize(PAGE, 0);
        page
    }

    fn formats(&self) -> [Vec<u8>; 5] {
        let field = |name: &str, offset| format!("\tfield:{name};\toffset:{offset};\tsize:8;\tsigned:0;\n");
        let format = |name: &str, id: u16, fields: String| {
            format!("name: {name}\nID: {id}\n{COMMON}{fields}\nprint fmt: \"\"\n")
        };
        let sized = |text: &str| [&self.u64(text.len() as u64)[..], text.as_bytes()].concat();
        let kfree =
            format("kfree", KFREE, field("unsigned long call_site", 8) + &field("const void * ptr", 16));
        let print = "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
                     \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n";
        let header_event = "# compressed entry header\n";
        let symbols = "ffffffff81000000 T freeing\nffffffff81000100 T next\n";
        let comms = "7 a task\n8 other\n";
        [
            [b"header_page\0", &sized(&self.header_page)[..], b"header_event\0", &sized(header_event)]
                .concat(),
            [&self.u32(1)[..], &sized(&format("print", PRINT, print.into()))].concat(),
            [
                &self.u32(2)[..],
                b"kmem\0",
                &self.u32(1),
                &sized(&kfree),
                b"sched\0",
                &self.u32(1),
                &sized(&format("other", OTHER, String::new())),
            ]
            .concat(),
            [&self.u32(symbols.len() as u32)[..], symbols.as_bytes()].concat(),
            [&self.u64(comms.len() as u64)[..], comms.as_bytes()].concat(),
        ]
    }

    fn start(&self) -> Vec<u8> {
        let version = [b'0' + self.version, 0];
        let start = [&b"\x17\x08\x44tracing"[..], &version, &[u8::from(self.big_endian), 8]].concat();
        [start, self.u32(4096).to_vec()].concat()
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        if self.version == 6 { self.bytes_6() } else { self.bytes_7() }
    }

    fn bytes_6(&self) -> Vec<u8> {
        let [header, ftrace, events, symbols, comms] = self.formats();
        let cpus = self.cpus.len();
        let head = [self.start(), header, ftrace, events, symbols, self.u32(0).to_vec(), comms].concat();
        let option =
            |(id, value): &Choice| [&self.u16(*id)[..], &self.u32(value.len() as u32), value].concat();
        let options: Vec<u8> = self.options.iter().flat_map(option).collect();
        let clock = [&self.u64(self.clock.len() as u64)[..], self.clock.as_bytes()].concat();
        let table = |start: usize, cpus: &[Vec<Vec<u8>>]| {
            let (mut place, mut table) = (start, b"flyrecord\0".to_vec());
            for pages in cpus {
                table.extend([self.u64(place as u64), self.u64((pages.len() * PAGE) as u64)].concat());
                place += pages.len() * PAGE;
            }
            table
        };
        let cpu_count = self.u32(cpus as u32).to_vec();
        let instance_option = self.instance.as_ref().map_or(0, |_| 6 + 9);
        let before = head.len() + 4 + 10 + options.len() + instance_option + 2;
        let data = (before + 10 + 16 * cpus + clock.len()).next_multiple_of(PAGE);
        let pages: Vec<u8> = self.cpus.concat().concat();
        let second = data + pages.len();
        let mut file = [head, cpu_count, b"options  \0".to_vec(), options].concat();
        if self.instance.is_some() {
            let value = [&self.u64(second as u64)[..], b"\0"].concat();
            file.extend(option(&(3, value)));
        }
        file.extend(self.u16(0));
        file.extend([table(data, &self.cpus), clock].concat());
        file.resize(data, 0);
        file.extend(pages);
        if let Some(instance) = &self.instance {
            let data = (second + 10 + 16 * cpus).next_multiple_of(PAGE);
            file.extend(table(data, instance));
            file.resize(data, 0);
            file.extend(instance.concat().concat());
        }
        file
    }

    fn bytes_7(&self) -> Vec<u8> {
        let mut file = [self.start(), b"none\0\0".to_vec()].concat();
        let link = file.len();
        file.extend(self.u64(0));
        let section = |id: u16, size: usize| {
            [&self.u16(id)[..], &self.u16(0), &self.u32(0), &self.u64(size as u64)].concat()
        };
        let mut options = Vec::new();
        for (id, content) in [16, 17, 18, 19, 21].into_iter().zip(self.formats()) {
            options.push((id, self.u64(file.len() as u64).to_vec()));
            file.extend([section(id, content.len()), content].concat());
        }
        options.extend(self.options.iter().cloned());
        for (name, cpus) in [("", Some(&self.cpus)), ("other", self.instance.as_ref())] {
            let Some(cpus) = cpus else { continue };
            let mut value = self.u64(file.len() as u64).to_vec();
            value.extend([name.as_bytes(), b"\0", self.clock.as_bytes(), b"\0"].concat());
            value.extend([self.u32(PAGE as u32), self.u32(cpus.len() as u32)].concat());
            file.extend(section(3, cpus.concat().len() * PAGE));
            for (cpu, pages) in cpus.iter().enumerate() {
                value.extend(self.u32(cpu as u32));
                value.extend([self.u64(file.len() as u64), self.u64((pages.len() * PAGE) as u64)].concat());
                file.extend(pages.concat());
            }
            options.push((3, value));
        }
        self.chain(&mut file, link, &options);
        file
    }

    /// Appends a section of options that ends the chain, and links it at `link`.
    pub(crate) fn chain(&self, file: &mut Vec<u8>, link: usize, options: &[Choice]) {
        let option =
            |(id, value): &Choice| [&self.u16(*id)[..], &self.u32(value.len() as u32), value].concat();
        let options: Vec<u8> = options.iter().flat_map(option).collect();
        let place = self.u64(file.len() as u64);
        file[link..link + 8].copy_from_slice(&place);
        let size = options.len() as u64 + 14;
        file.extend([&self.u16(0)[..], &self.u16(0), &self.u32(0), &self.u64(size)].concat());
        file.extend([&options[..], &self.u16(0), &self.u32(8), &self.u64(0)].concat());
    }
}
