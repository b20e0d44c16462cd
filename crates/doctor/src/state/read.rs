//! Reads a state, from whatever has one.

use super::folder::Folder;
use super::input::Input;
use super::join::{self, Joined};
use super::machine::{Missing, REST, State};
use super::missing::{self, Origin};
use super::{holders, owners, pasted, sane};
use slablab_readers::bundle::{BundleError, CpusFrom, Dump, DumpBuilder, Form, PageSizeFrom};
use slablab_readers::recording::Moment;
use slablab_report::error::{At, Error, Result};
use slablab_slabs::Release;
use slablab_slabs::order::CpuCounts;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What was read, and what was not.
pub(super) struct Gathered {
    dump: Dump,
    origin: Origin,
    missing: Vec<Missing>,
}

/// Reads the state of a machine.
///
/// # Errors
/// What is no state of a machine, is damaged, or does not tell the page size while the user does not either.
pub fn read(input: &Input) -> Result<State> {
    read_at(input, Moment::After)
}

/// Reads the state of a machine as [`read`] does; of a recording with two states it takes that of `moment`,
/// where [`read`] takes the one after it.
///
/// # Errors
/// As [`read`].
pub fn read_at(input: &Input, moment: Moment) -> Result<State> {
    let path = input.path.clone().unwrap_or_else(|| PathBuf::from("/"));
    sane::asked(input, &path)?;
    state(input, path.clone(), gather(&path, moment)?)
}

/// What was gathered, as a state.
pub(super) fn state(input: &Input, path: PathBuf, gathered: Gathered) -> Result<State> {
    let Gathered { dump, origin, missing } = gathered;
    let mut assumed = Vec::new();
    let page_size = page_size(input, &dump, &mut assumed);
    let page_size = page_size.or_else(|| pasted::page_size(&dump, &mut assumed));
    let page_size = page_size.ok_or_else(|| {
        Error::new(&path, "does not tell the page size; say it with --page-size, as 4K or 64K")
    })?;
    let cpus = cpus(input, &dump, &mut assumed);
    let mut joined = join::join(&dump);
    joined.caches.extend(pasted::sized(&dump, page_size));
    sane::caches(&joined.caches, page_size).at(&path)?;
    assumed.extend(on_caches(&dump, &joined));
    assumed.extend(pasted::assumed(&dump));
    Ok(State {
        caches: joined.caches,
        page_size,
        cpus,
        release: dump.release.as_deref().and_then(Release::parse),
        taken_s: taken(&dump, origin, &mut assumed),
        up_s: dump.up_s,
        missing,
        assumed,
        dump,
        path,
    })
}

/// What was assumed about which cache is which.
fn on_caches(dump: &Dump, joined: &Joined) -> Vec<String> {
    let mut assumed = Vec::new();
    if dump.slabinfo.is_none() && dump.pasted.is_none() {
        assumed.push(
            "Without /proc/slabinfo the counts are those of /sys/kernel/slab, whose reading adds slabs."
                .into(),
        );
    }
    if dump.cgroup_caches || joined.of_cgroups > 0 {
        assumed.push("Caches of cgroups are counted with the cache they belong to, as slabinfo does.".into());
    }
    if joined.by_numbers > 0 {
        let (found, by_order) = (joined.by_numbers, joined.by_order);
        assumed.push(format!(
            "The links of /sys/kernel/slab are not in the input: {found} merged caches were found by their \
             numbers, {by_order} of them among several with the same, whose directories may be each other's."
        ));
    }
    if joined.left_out > 0 {
        assumed.push(format!(
            "{} merged directories of /sys/kernel/slab belong to a row of /proc/slabinfo that could not be \
             told, and are left out.",
            joined.left_out
        ));
    }
    assumed
}

fn gather(path: &Path, moment: Moment) -> Result<Gathered> {
    if path == Path::new("/") {
        return live();
    }
    if path.is_dir() {
        let mut folder = Folder::list(path, &[]);
        let builder = folder.take(path)?;
        let (dump, origin) = (folder.finish(path, builder)?, Origin::Directory);
        return Ok(Gathered { missing: lacking(&dump, origin, &folder.refused), dump, origin });
    }
    let mut builder = DumpBuilder::of(moment).with_slabs();
    let (form, cut_off) = match path == Path::new("-") {
        true => builder.input(io::stdin().lock()).map_err(unread).at(Path::new("standard input"))?,
        false => builder.input(slablab_report::files::open(path).at(path)?).map_err(unread).at(path)?,
    };
    if let Some(cut_off) = cut_off.as_ref().filter(|_| !builder.has_slabs()) {
        return Err(Error::new(path, cut_off));
    }
    let dump = builder.finish().at(path)?;
    let origin = match form {
        Form::Tar => Origin::Bundle,
        Form::Text => Origin::Text,
        Form::Slabinfo | Form::SlabinfoCsv => Origin::Slabinfo,
        Form::Pasted => Origin::Pasted,
    };
    let mut missing = lacking(&dump, origin, &[]);
    if let Some(cut_off) = cut_off {
        missing.insert(
            0,
            Missing {
                file: REST.into(),
                why: format!("it is cut off: {cut_off}"),
                costs: "whatever was in it".into(),
                command: None,
            },
        );
    }
    Ok(Gathered { dump, origin, missing })
}

/// What the files do not tell. A text is asked by its own rules.
fn lacking(dump: &Dump, origin: Origin, refused: &[(String, io::Error)]) -> Vec<Missing> {
    match &dump.pasted {
        Some(pasted) => pasted::missing(dump, pasted),
        None => missing::missing(dump, origin, refused),
    }
}

/// Why an input could not be read. The doctor reads texts too, which other readers of dumps do not.
fn unread(error: BundleError) -> String {
    match error {
        BundleError::Unknown => "expected a tar of the kernel's files or a support bundle, the output of `grep -r . \
                                 /proc/slabinfo /sys/kernel/slab`, or a text with /proc/slabinfo, slabtop's list, \
                                 `vmstat -m`, /proc/meminfo or a message of the kernel about slabs: begins like none \
                                 of them"
            .into(),
        BundleError::Recording(_) => format!("{error}; `slablab replay` reads a recording"),
        error => error.to_string(),
    }
}

/// The running machine. Files that cost the kernel much and say little here are left alone.
fn live() -> Result<Gathered> {
    let mut folder = Folder::list(Path::new("/"), &["proc/pagetypeinfo", "proc/cpuinfo"]);
    live_from(&mut folder).or_else(|error| of_any_user(Path::new("/")).ok_or(error))
}

/// What every user may read of the running machine: the sums, as a text that has them. `None` if they are not
/// there.
fn of_any_user(root: &Path) -> Option<Gathered> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    let text = format!(
        "{}\ndentry-state: {}\n{}",
        read("proc/version"),
        read("proc/sys/fs/dentry-state"),
        read("proc/meminfo")
    );
    let mut builder = DumpBuilder::of(Moment::After);
    builder.input(text.as_bytes()).ok()?;
    let mut dump = builder.finish().ok()?;
    dump.page_size = own_page_size().map(|bytes| (bytes, PageSizeFrom::Kernel));
    dump.boot_id =
        Some(read("proc/sys/kernel/random/boot_id").trim().to_string()).filter(|id| !id.is_empty());
    dump.up_s = read("proc/uptime").split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let is_denied = std::fs::File::open(root.join("proc/slabinfo")).err().as_ref().is_some_and(denied);
    let missing = vec![Missing {
        file: "/proc/slabinfo".into(),
        why: if is_denied { "no permission" } else { Origin::Live.without() }.into(),
        costs: "which caches hold the memory, and who holds their objects".into(),
        command: Some("sudo slablab doctor".into()),
    }];
    Some(Gathered { dump, origin: Origin::Live, missing })
}

pub(super) fn live_from(folder: &mut Folder) -> Result<Gathered> {
    let root = Path::new("/");
    let mut builder = folder.take(root)?;
    let owners = [("containers", owners::containers(root)), ("holders", holders::table(Path::new("/proc")))];
    for (name, text) in owners {
        folder.one(&mut builder, root, format!("slablab/{name}"), Ok(text.into_bytes()))?;
    }
    let mut dump = folder.finish(root, builder)?;
    dump.page_size = own_page_size().map(|bytes| (bytes, PageSizeFrom::Kernel)).or(dump.page_size);
    dump.date_s = SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|now| now.as_secs());
    let missing = lacking(&dump, Origin::Live, &folder.refused);
    Ok(Gathered { missing, dump, origin: Origin::Live })
}

/// The page size that the kernel told this process: pairs of words in /proc/self/auxv, 6 being AT_PAGESZ
/// (getauxval(3)).
fn own_page_size() -> Option<u64> {
    const AT_PAGESZ: u64 = 6;
    let auxv = std::fs::read("/proc/self/auxv").ok()?;
    let (words, _) = auxv.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let page_size = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PAGESZ);
    page_size.map(|[_, bytes]| u64::from_ne_bytes(*bytes)).filter(|bytes| bytes.is_power_of_two())
}

fn page_size(input: &Input, dump: &Dump, assumed: &mut Vec<String>) -> Option<u64> {
    match (input.page_size, dump.page_size) {
        (Some(said), Some((found, _))) if said != found => {
            assumed.push(format!("A page has {said} bytes, as said; the input looks like {found}."));
            Some(said)
        }
        (Some(said), _) => Some(said),
        (None, Some((found, from))) => {
            match from {
                PageSizeFrom::Kernel => {}
                PageSizeFrom::Memory => {
                    assumed.push(format!("A page has {found} bytes: MemTotal over the pages of all zones."));
                }
                PageSizeFrom::Slabs => {
                    assumed.push(format!(
                        "A page has {found} bytes: what most slabs fit. --page-size says another."
                    ));
                }
            }
            Some(found)
        }
        (None, None) => None,
    }
}

fn cpus(input: &Input, dump: &Dump, assumed: &mut Vec<String>) -> Option<CpuCounts> {
    let all = |cpus| Some(CpuCounts { possible: cpus, present: cpus, online: cpus });
    if let Some(cpus) = input.cpus {
        return all(cpus);
    }
    counted(dump).or_else(|| {
        let Some((cpus, from)) = dump.cpus_counted else {
            assumed.push("The input does not tell how many CPUs there are; --cpus says it.".into());
            return None;
        };
        let from = match from {
            CpusFrom::Nodes => "the nodes' lists",
            CpusFrom::Lscpu => "lscpu",
            CpusFrom::Cpuinfo => "/proc/cpuinfo",
            CpusFrom::Zoneinfo => "/proc/zoneinfo",
        };
        assumed.push(format!("{cpus} CPUs, by {from}: the kernel's own lists are not in the input."));
        all(cpus)
    })
}

/// When a dump was taken: by a date in it, else by the time of its files, if that can be.
fn taken(dump: &Dump, origin: Origin, assumed: &mut Vec<String>) -> Option<u64> {
    // 2007-01-01: the year SLUB came.
    const FIRST: u64 = 1_167_609_600;
    if let Some(date) = dump.date_s {
        return Some(date);
    }
    let changed = dump.changed_s.filter(|&changed| changed >= FIRST && origin != Origin::Live)?;
    assumed.push("It was taken when its files were written, as their times say.".into());
    Some(changed)
}

/// CPUs as a dump lists them.
pub(super) fn counted(dump: &Dump) -> Option<CpuCounts> {
    let lists = [&dump.cpus_possible, &dump.cpus_present, &dump.cpus_online];
    let possible = lists.iter().find_map(|list| list.iter().max())? + 1;
    let or_possible = |cpus: &[u32]| if cpus.is_empty() { possible } else { cpus.len() as u32 };
    Some(CpuCounts {
        possible,
        present: or_possible(&dump.cpus_present),
        online: or_possible(&dump.cpus_online),
    })
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_reads_the_sums() {
        let root = std::env::temp_dir().join(format!("slablab-any-user-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("proc/version", "Linux version 6.18.15 (a@b) #1 SMP\n");
        assert!(of_any_user(&root).is_none(), "without meminfo there is nothing of slabs");
        write("proc/sys/fs/dentry-state", "500\t400\t45\t0\t300\t0\n");
        write("proc/meminfo", "MemTotal: 1000 kB\nSlab: 90 kB\nSReclaimable: 80 kB\nSUnreclaim: 10 kB\n");
        let Gathered { dump, missing, .. } = of_any_user(&root).expect("sums");
        assert_eq!((dump.release.as_deref(), dump.meminfo.get("Slab")), (Some("6.18.15"), Some(&90)));
        let dentries = dump.pasted.and_then(|pasted| pasted.dentry_state).expect("dentry-state");
        assert_eq!((dentries.all, dentries.unused, dentries.negative), (500, 400, 300));
        assert_eq!(missing.len(), 1, "{missing:?}");
        std::fs::remove_dir_all(root).expect("the folder");
    }
}
