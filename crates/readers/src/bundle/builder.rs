//! Puts a dump together from its files.

use std::collections::BTreeMap;
use std::io::Read;

use super::page_size::page_size;
use super::wanted::{self, below_root};
use super::{BundleError, CpusFrom, Dump, Node, listing, machine, supportconfig};
use crate::allocinfo;
use crate::cgroups::{self, Cgroup};
use crate::compressed::Decompressed;
use crate::modules;
use crate::moment;
use crate::pasted::Pasted;
use crate::procfs;
use crate::recording::{self, Moment};
use crate::slabinfo::{Slabinfo, SlabinfoError};
use crate::slabs::Snapshot;
use crate::sysfs::SlabAttrs;
use crate::tar::{Entry, Tar, TarError};
use crate::text::{LineError, id_list, number, utf8};

/// Takes the files of a dump one by one.
#[derive(Debug, Default)]
pub struct DumpBuilder {
    dump: Dump,
    nodes: BTreeMap<u32, Node>,
    nodes_online: Vec<u32>,
    nodes_with_memory: Option<Vec<u32>>,
    caches: BTreeMap<String, SlabAttrs>,
    cgroups: BTreeMap<String, Cgroup>,
    /// Target and alias.
    links: BTreeMap<String, String>,
    listed: bool,
    /// Configurations by the release in their file's name; that of the running kernel has none.
    configs: BTreeMap<String, BTreeMap<String, String>>,
    lscpu: Option<u32>,
    cpuinfo: Option<u32>,
    files: u64,
    bytes: u64,
    /// Which state of a recording is read.
    moment: Moment,
    /// Whether the slabs of a recording are read, too, that were read one by one.
    wants_slabs: bool,
}

/// Members of a recording, in any order.
#[derive(Default)]
struct Recorded {
    /// Whether there is a description, which makes the tar a recording.
    is_one: bool,
    /// The dump.
    dump: Option<Vec<u8>>,
    /// The slabs.
    slabs: Option<Vec<u8>>,
    /// A member that is larger than any, and the most bytes it may have.
    too_large: Option<(&'static str, u64)>,
}

impl Recorded {
    /// Takes a member, if it is one of those that are read.
    fn take<R: Read>(
        &mut self,
        (name, size): (&'static str, u64),
        (moment, wants_slabs): (Moment, bool),
        tar: &mut Tar<R>,
    ) -> Result<(), BundleError> {
        self.is_one |= name == recording::ABOUT;
        let place = match name {
            name if name == moment.member() => &mut self.dump,
            name if name == moment.slabs() && wants_slabs => &mut self.slabs,
            _ => return Ok(()),
        };
        match size > DumpBuilder::LIMIT {
            true => self.too_large = Some((name, DumpBuilder::LIMIT)),
            false => *place = Some(tar.content()?),
        }
        Ok(())
    }
}

impl DumpBuilder {
    /// The most bytes that all files may have together: what bounds memory, whatever an archive holds.
    pub const LIMIT: u64 = 192 << 20;
    const CACHE_LIMIT: usize = 1 << 16;
    const NODE_LIMIT: usize = 1 << 12;

    /// An empty dump.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty dump, for the state of `moment` if the input is a recording with two states ([`recording`]).
    pub fn of(moment: Moment) -> Self {
        DumpBuilder { moment, ..Self::default() }
    }

    /// The same, with the slabs that were read one by one then, if the recording has them.
    pub fn with_slabs(self) -> Self {
        DumpBuilder { wants_slabs: true, ..self }
    }

    /// Whether the file at `path` is worth reading ([`WANTED`](super::WANTED)).
    pub fn wants(path: &str) -> bool {
        wanted::is_wanted(path)
    }

    /// The most bytes that the file at `path` may have.
    pub fn limit(path: &str) -> u64 {
        wanted::limit(path)
    }

    /// Files and links seen, wanted or not.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Whether there was anything about slabs yet.
    pub fn has_slabs(&self) -> bool {
        self.dump.slabinfo.is_some() || !self.caches.is_empty() || self.dump.pasted.is_some()
    }

    /// Takes all files and links of a tar: plain, gz, zst or xz. Files that are not needed are skipped
    /// unread. If the tar is truncated, the builder keeps the files before the end, and returns the error.
    ///
    /// # Errors
    /// A damaged tar, a file that is not as the kernel writes it, more than [`DumpBuilder::LIMIT`].
    pub fn tar(&mut self, reader: impl Read) -> Result<Option<TarError>, BundleError> {
        let io = |source| TarError::Io { offset: 0, source };
        let mut tar = Tar::new(Decompressed::new(reader).map_err(io)?);
        match self.entries(&mut tar) {
            Ok(()) => Ok(None),
            Err(BundleError::Tar(error)) if error.is_cut_off() && tar.offset() > 0 => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    fn entries<R: Read>(&mut self, tar: &mut Tar<R>) -> Result<(), BundleError> {
        let mut parts = Recorded::default();
        loop {
            let entry = match tar.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // Of a recording that is cut off behind the dump, the dump is there.
                Err(_) if parts.is_one && parts.dump.is_some() => break,
                Err(error) => return Err(error.into()),
            };
            let member = match &entry {
                Entry::File { path, size, .. } => recording::member_name(path).map(|name| (name, *size)),
                Entry::Link { .. } => None,
            };
            match member {
                // The events are behind all others, and stay unread, in a file of `slablab record`.
                Some((name, _)) if recording::is_events(name) && parts.is_one => break,
                Some((name, size)) => parts.take((name, size), (self.moment, self.wants_slabs), tar)?,
                None => self.entry(entry, tar)?,
            }
            if parts.is_one && parts.dump.is_some() && (parts.slabs.is_some() || !self.wants_slabs) {
                break;
            }
        }
        if parts.is_one { self.recorded(parts) } else { Ok(()) }
    }

    fn entry<R: Read>(&mut self, entry: Entry, tar: &mut Tar<R>) -> Result<(), BundleError> {
        match entry {
            Entry::File { path, size, changed_s } if Self::wants(&path) => {
                check_size(&path, size)?;
                self.file(&path, &tar.content()?)?;
                self.changed(&path, changed_s);
            }
            Entry::File { path, .. } => self.pass(&path),
            Entry::Link { path, target } => self.link(&path, &target)?,
        }
        Ok(())
    }

    /// Takes one dump of a recording, and the slabs that were read one by one then.
    fn recorded(&mut self, parts: Recorded) -> Result<(), BundleError> {
        let member = self.moment.member();
        if let Some((path, limit)) = parts.too_large {
            return Err(BundleError::TooMuch { path: path.into(), limit });
        }
        let content = parts.dump.ok_or(BundleError::NoState(member))?;
        let io = |source| TarError::Io { offset: 0, source };
        let mut nested = Tar::new(Decompressed::new(&content[..]).map_err(io)?);
        while let Some(entry) = nested.next()? {
            self.entry(entry, &mut nested)?;
        }
        if let Some(packed) = parts.slabs {
            let mut text = Vec::new();
            let unpacked = Decompressed::new(&packed[..]).map_err(io)?;
            unpacked.take(Snapshot::BYTES_MAX).read_to_end(&mut text).map_err(io)?;
            let wrong = |source| BundleError::File { path: self.moment.slabs().into(), source };
            self.dump.slabs = Some(Box::new(Snapshot::parse(&text).map_err(wrong)?));
        }
        Ok(())
    }

    /// Takes the time at which a file that was taken was written last, in seconds since 1970. Only files of
    /// slabs count: a configuration is as old as its kernel.
    pub fn changed(&mut self, path: &str, seconds: u64) {
        let mut parts = below_root(path);
        if matches!(
            (parts.next(), parts.next()),
            (Some("proc"), Some("slabinfo")) | (Some("sys"), Some("kernel"))
        ) && seconds > 0
        {
            self.dump.changed_s = self.dump.changed_s.max(Some(seconds));
        }
    }

    pub(super) fn slabinfo(&mut self, slabinfo: Slabinfo) {
        self.files += 1;
        self.dump.slabinfo = Some(slabinfo);
    }

    /// Takes what was found in a text.
    pub(super) fn pasted(&mut self, found: Pasted) {
        self.files += 1;
        let caches = found.caches();
        let dump = &mut self.dump;
        dump.slabinfo = (!caches.slabinfo.rows.is_empty()).then_some(caches.slabinfo);
        dump.sized = caches.sized;
        dump.earlier = found.earlier();
        if dump.meminfo.is_empty() {
            dump.meminfo = found.meminfo.clone();
        }
        dump.release = dump.release.take().or_else(|| found.release.clone());
        self.lscpu = self.lscpu.or(found.cpus);
        dump.dentry_state = dump.dentry_state.or(found.dentry_state);
        dump.date_s = dump.date_s.or(found.taken_s);
        dump.up_s = dump.up_s.or(found.up_s);
        dump.pasted = Some(Box::new(found));
    }

    pub(super) fn date(&mut self, seconds: Option<u64>) {
        self.dump.date_s = self.dump.date_s.or(seconds);
    }

    /// Takes note of a file that is there and is not read.
    pub fn pass(&mut self, path: &str) {
        self.files += 1;
        let mut parts = below_root(path);
        let at = [parts.next(), parts.next(), parts.next(), parts.next(), parts.next()];
        self.dump.cgroup_caches |=
            matches!(at, [Some("sys"), Some("kernel"), Some("slab"), Some(_), Some("cgroup")]);
    }

    /// Takes a file. One that is not wanted is passed over.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it.
    pub fn file(&mut self, path: &str, content: &[u8]) -> Result<(), BundleError> {
        self.pass(path);
        check_size(path, content.len() as u64)?;
        self.bytes += content.len() as u64;
        if self.bytes > Self::LIMIT {
            return Err(BundleError::TooMuch { path: path.to_string(), limit: Self::LIMIT });
        }
        // Support bundles have files of which nothing could be read. Attributes may be empty.
        let below: Vec<&str> = below_root(path).collect();
        if content.trim_ascii().is_empty() && !matches!(below[..], ["sys", ..]) {
            if Self::wants(path) && self.dump.empty.len() < wanted::WANTED.len() {
                self.dump.empty.push(below.join("/"));
            }
            return Ok(());
        }
        self.take(path, content)?.map_err(|source| BundleError::File { path: path.to_string(), source })
    }

    /// Takes a symbolic link: an alias of a cache. Nothing follows it: its target is a name here, wherever it
    /// points.
    ///
    /// # Errors
    /// More caches than a kernel has.
    pub fn link(&mut self, path: &str, target: &str) -> Result<(), BundleError> {
        self.files += 1;
        let parts: Vec<&str> = below_root(path).collect();
        match parts[..] {
            ["sys", "kernel", "slab", alias] | ["sys", "slab", alias] => self.alias(path, alias, target),
            _ => Ok(()),
        }
    }

    fn alias(&mut self, path: &str, alias: &str, target: &str) -> Result<(), BundleError> {
        let target = target.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        // A link to itself, or to no name, is no alias.
        if matches!(target, "" | "." | "..") || target == alias {
            return Ok(());
        }
        if self.links.len() >= Self::CACHE_LIMIT {
            return Err(too_many(path, "caches", Self::CACHE_LIMIT));
        }
        self.links.insert(alias.to_string(), target.to_string());
        Ok(())
    }

    /// Takes the output of `ls -l` of /sys/kernel/slab: its links are aliases.
    fn listing(&mut self, path: &str, content: &[u8]) -> Result<(), BundleError> {
        for line in String::from_utf8_lossy(content).lines() {
            self.listed_line(path, line)?;
        }
        Ok(())
    }

    /// Takes one line of such a listing.
    pub(super) fn listed_line(&mut self, path: &str, line: &str) -> Result<(), BundleError> {
        let Some((alias, target)) = listing::link(line) else { return Ok(()) };
        self.listed = true;
        self.alias(path, alias, target)
    }

    fn take(&mut self, path: &str, content: &[u8]) -> Result<Result<(), LineError>, BundleError> {
        if let Some((cgroup, file)) = wanted::cgroup_file(path) {
            if self.cgroups.len() >= cgroups::LIMIT && !self.cgroups.contains_key(&cgroup) {
                return Err(too_many(path, "cgroups", cgroups::LIMIT));
            }
            return Ok(cgroups::take(self.cgroups.entry(cgroup).or_default(), file, content));
        }
        let parts: Vec<&str> = below_root(path).collect();
        match parts[..] {
            ["sys", "kernel", "slab", cache, attribute] | ["sys", "slab", cache, attribute] => {
                if self.caches.len() >= Self::CACHE_LIMIT && !self.caches.contains_key(cache) {
                    return Err(too_many(path, "caches", Self::CACHE_LIMIT));
                }
                let attrs = self.caches.entry(cache.to_string()).or_default();
                Ok(utf8(content).and_then(|text| attrs.set(attribute, text)))
            }
            ["sys", "devices", "system", "node", node, file] => {
                let Some(id) = node.strip_prefix("node").and_then(number) else { return Ok(Ok(())) };
                if self.nodes.len() >= Self::NODE_LIMIT && !self.nodes.contains_key(&id) {
                    return Err(too_many(path, "nodes", Self::NODE_LIMIT));
                }
                Ok(self.node_file(id, file, content))
            }
            ["sos_commands", _, listing] if listing.starts_with("ls_") => {
                self.listing(path, content)?;
                Ok(Ok(()))
            }
            ["boot", config] => {
                let release = config.strip_prefix("config-").unwrap_or("");
                self.config(release, content);
                Ok(Ok(()))
            }
            [file] if supportconfig::FILES.contains(&file) => {
                for (path, content) in supportconfig::sections(&String::from_utf8_lossy(content)) {
                    if Self::wants(path) {
                        self.file(path, content.as_bytes())?;
                    }
                }
                Ok(Ok(()))
            }
            ["proc", "config.gz"] => Ok(self.packed_config(content)),
            _ => Ok(self.machine_file(&parts, content)),
        }
    }

    fn node_file(&mut self, id: u32, file: &str, content: &[u8]) -> Result<(), LineError> {
        let node = self.nodes.entry(id).or_insert_with(|| Node { id, ..Node::default() });
        match file {
            "cpulist" => node.cpus = ids(content)?,
            "distance" => {
                let text = utf8(content)?;
                let distances = text.split_whitespace().map(number).collect::<Option<_>>();
                node.distances = distances.ok_or_else(|| LineError::new(1, "distances", text))?;
            }
            "meminfo" => node.meminfo = procfs::parse_numbers(content)?,
            _ => {}
        }
        Ok(())
    }

    fn config(&mut self, release: &str, content: &[u8]) {
        // More kernels than a machine has installed.
        if self.configs.len() < 256 {
            let config = machine::config(&String::from_utf8_lossy(content));
            self.configs.insert(release.to_string(), config);
        }
    }

    fn packed_config(&mut self, content: &[u8]) -> Result<(), LineError> {
        let mut text = Vec::new();
        let unpacked =
            Decompressed::new(content).and_then(|reader| reader.take(4 << 20).read_to_end(&mut text));
        unpacked.map_err(|error| LineError::new(1, "a compressed configuration", &error.to_string()))?;
        self.config("", &text);
        Ok(())
    }

    fn machine_file(&mut self, parts: &[&str], content: &[u8]) -> Result<(), LineError> {
        let dump = &mut self.dump;
        match parts {
            ["proc", "slabinfo"] => {
                dump.slabinfo = Some(Slabinfo::parse(content).map_err(|error| match error {
                    SlabinfoError::Line(error) => error,
                    // The text form has no other error.
                    other => LineError::new(1, "a slabinfo", &other.to_string()),
                })?);
            }
            ["proc", "meminfo"] => dump.meminfo = procfs::parse_numbers(content)?,
            ["proc", "vmstat"] => dump.vmstat = procfs::parse_numbers(content)?,
            ["proc", "zoneinfo"] => dump.zones = procfs::parse_zoneinfo(content)?,
            ["proc", "buddyinfo"] => dump.buddyinfo = procfs::parse_buddyinfo(content)?,
            ["proc", "pagetypeinfo"] => dump.pagetypes = Some(procfs::parse_pagetypeinfo(content)?),
            ["proc", "cmdline"] => dump.cmdline = Some(utf8(content)?.trim().to_string()),
            ["proc", "sys", "kernel", "osrelease"] => dump.release = Some(utf8(content)?.trim().to_string()),
            ["proc", "sys", "kernel", "arch"] => dump.arch = Some(utf8(content)?.trim().to_string()),
            ["proc", "sys", "kernel", "hostname"] | ["sos_commands", "host", "hostname"] => {
                let name = utf8(content)?.trim().to_string();
                dump.host = dump.host.take().or(Some(name));
            }
            ["proc", "sys", "kernel", "random", "boot_id"] => {
                dump.boot_id = Some(utf8(content)?.trim().to_string());
            }
            ["proc", "sys", "fs", "dentry-state"] => dump.dentry_state = procfs::parse_dentry_state(content)?,
            ["proc", "net", "protocols"] => dump.protocols = procfs::parse_protocols(content)?,
            ["proc", "allocinfo"] => dump.alloc_sites = allocinfo::lines(content),
            ["proc", "modules"] => dump.modules = modules::parse(content),
            ["sos_commands", "kernel", "lsmod"] if dump.modules.is_empty() => {
                dump.modules = modules::parse(content)
            }
            ["proc", "cgroups"] => dump.owners.counted = cgroups::counted(content)?,
            ["slablab", "containers"] => dump.owners.containers = cgroups::containers(content)?,
            ["slablab", "holders"] => dump.owners.holders = cgroups::holders(content)?,
            // `Linux version 6.1.0 (builder) (gcc) #1 SMP`
            ["proc", "version"] => {
                let release = utf8(content)?.split_whitespace().nth(2).map(str::to_string);
                dump.release = dump.release.take().or(release);
            }
            // `Linux host 6.1.0 #1 SMP <date> x86_64 GNU/Linux`
            ["sos_commands", "kernel", "uname_-a"] => {
                let words: Vec<&str> = utf8(content)?.split_whitespace().collect();
                let at = |index: usize| words.get(index).map(|word| word.to_string());
                dump.release = dump.release.take().or_else(|| at(2));
                let last = words.len().checked_sub(1 + usize::from(words.last() == Some(&"GNU/Linux")));
                dump.arch = dump.arch.take().or_else(|| at(last.filter(|&last| last > 2)?));
            }
            // `<seconds up> <idle>`
            ["proc", "uptime"] => {
                let text = utf8(content)?;
                let up = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
                let up = up.filter(|up| up.is_finite() && *up >= 0.0);
                dump.up_s = Some(up.ok_or_else(|| LineError::new(1, "seconds", text))?);
            }
            ["sos_commands", _, "uptime"] => {
                dump.up_s = dump.up_s.or(moment::uptime(&String::from_utf8_lossy(content)))
            }
            ["sos_commands", _, "date" | "date_--utc" | "timedatectl"] => {
                dump.date_s = dump.date_s.or(moment::date(&String::from_utf8_lossy(content)));
            }
            ["sos_commands", "processor", "lscpu"] => {
                self.lscpu = machine::lscpu(&String::from_utf8_lossy(content))
            }
            // Fields of it may be in any encoding.
            ["proc", "cpuinfo"] => self.cpuinfo = machine::cpuinfo(&String::from_utf8_lossy(content)),
            ["sys", "devices", "system", "cpu", "possible"] => dump.cpus_possible = ids(content)?,
            ["sys", "devices", "system", "cpu", "present"] => dump.cpus_present = ids(content)?,
            ["sys", "devices", "system", "cpu", "online"] => dump.cpus_online = ids(content)?,
            ["sys", "devices", "system", "node", "online"] => self.nodes_online = ids(content)?,
            ["sys", "devices", "system", "node", "has_memory"] => {
                self.nodes_with_memory = Some(ids(content)?)
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts the dump together.
    ///
    /// # Errors
    /// [`BundleError::Empty`] when there was nothing about slabs.
    pub fn finish(mut self) -> Result<Dump, BundleError> {
        let links = std::mem::take(&mut self.links);
        self.dump.listed = self.listed && self.caches.is_empty();
        for (alias, target) in links {
            // A link whose directory is not in the dump still tells the alias.
            self.caches.entry(target).or_default().aliases.push(alias);
        }
        let (lscpu, cpuinfo) = (self.lscpu, self.cpuinfo);
        let mut dump = self.dump;
        if dump.slabinfo.is_none() && self.caches.is_empty() && dump.pasted.is_none() {
            return Err(BundleError::Empty { files: self.files });
        }
        let name_cache = |(name, mut cache): (String, SlabAttrs)| {
            cache.aliases.sort();
            SlabAttrs { name, ..cache }
        };
        dump.caches = self.caches.into_iter().map(name_cache).collect();
        for &id in self.nodes_online.iter().take(Self::NODE_LIMIT) {
            self.nodes.entry(id).or_insert_with(|| Node { id, ..Node::default() });
        }
        dump.nodes = self.nodes.into_values().collect();
        // Without the directories of the nodes, a single node still has all CPUs.
        if let [node] = &mut dump.nodes[..]
            && node.cpus.is_empty()
        {
            node.cpus = dump.cpus_online.clone();
        }
        for node in &mut dump.nodes {
            node.has_memory = match &self.nodes_with_memory {
                Some(nodes) => nodes.contains(&node.id),
                None => node.meminfo.get("MemTotal").is_some_and(|&total| total > 0),
            };
        }
        // The running kernel's own, that of its release, or the only one where the release is not known.
        let own = self.configs.remove("");
        let own = own.or_else(|| self.configs.remove(dump.release.as_ref()?));
        dump.config = match own {
            Some(config) => config,
            None if dump.release.is_none() && self.configs.len() == 1 => {
                self.configs.into_values().next().unwrap_or_default()
            }
            None => BTreeMap::new(),
        };
        let in_nodes = dump.nodes.iter().map(|node| node.cpus.len() as u32).sum();
        let zones = dump.zones.iter().flat_map(|zone| &zone.pagesets).map(|pageset| pageset.cpu + 1).max();
        let counts = [
            (Some(in_nodes), CpusFrom::Nodes),
            (lscpu, CpusFrom::Lscpu),
            (cpuinfo, CpusFrom::Cpuinfo),
            (zones, CpusFrom::Zoneinfo),
        ];
        let known = |(cpus, from): (Option<u32>, CpusFrom)| Some((cpus.filter(|&cpus| cpus > 0)?, from));
        if dump.cpus_possible.is_empty() && dump.cpus_present.is_empty() && dump.cpus_online.is_empty() {
            dump.cpus_counted = counts.into_iter().find_map(known);
        }
        let named = |(path, cgroup): (String, Cgroup)| Cgroup { path, ..cgroup };
        dump.owners.cgroups = self.cgroups.into_iter().map(named).collect();
        dump.page_size = page_size(&dump);
        Ok(dump)
    }
}

fn check_size(path: &str, size: u64) -> Result<(), BundleError> {
    let limit = wanted::limit(path);
    if size > limit { Err(BundleError::TooLarge { path: path.to_string(), size, limit }) } else { Ok(()) }
}

fn too_many(path: &str, what: &'static str, limit: usize) -> BundleError {
    BundleError::TooMany { path: path.to_string(), what, limit }
}

fn ids(content: &[u8]) -> Result<Vec<u32>, LineError> {
    let text = utf8(content)?;
    id_list(text).ok_or_else(|| LineError::new(1, "a list such as `0-3,8`", text))
}
