//! One cache of the running machine: its row, its directory, and the caches merged with it. A screen asks for
//! it repeatedly, so nothing of the other caches is read.

use super::join;
use super::machine::{Missing, State};
use super::read::counted;
use slablab_readers::bundle::{Dump, Node, PageSizeFrom};
use slablab_readers::slabinfo::{Slabinfo, SlabinfoRow};
use slablab_readers::sysfs::SlabAttrs;
use slablab_readers::text::id_list;
use slablab_report::error::{At, Result};
use slablab_slabs::Release;
use std::io;
use std::path::Path;

const DIRECTORY: &str = "/sys/kernel/slab";

/// The state of the running machine, as far as it is about the cache of this row of /proc/slabinfo: one
/// cache. What may not be read is among [`State::missing`].
///
/// # Errors
/// An attribute that is not as the kernel writes it.
pub fn one_cache(row: &SlabinfoRow, page_size: u64) -> Result<State> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = |list: &str| id_list(&text(&format!("/sys/devices/system/cpu/{list}"))).unwrap_or_default();
    let release = text("/proc/sys/kernel/osrelease").trim().to_string();
    let mut dump = Dump {
        release: Some(release).filter(|release| !release.is_empty()),
        page_size: Some((page_size, PageSizeFrom::Slabs)),
        cpus_possible: cpus("possible"),
        cpus_present: cpus("present"),
        cpus_online: cpus("online"),
        slabinfo: Some(Slabinfo { version: (2, 1), rows: vec![row.clone()] }),
        ..Dump::default()
    };
    let with_memory = id_list(&text("/sys/devices/system/node/has_memory")).unwrap_or_default();
    dump.nodes = with_memory.into_iter().map(|id| Node { id, has_memory: true, ..Node::default() }).collect();
    let mut missing = Vec::new();
    let mut refused = None;
    // Of several caches with one name, sysfs has the directory of the first at most.
    if row.ordinal == 0 {
        let directory = directory_of(&row.name);
        let path = Path::new(DIRECTORY).join(&directory);
        let aliases = aliases(&directory);
        let mut attrs = SlabAttrs { name: directory, aliases, ..SlabAttrs::default() };
        refused = read_attributes(&path, &mut attrs)?;
        dump.caches.push(attrs);
        missing.extend(refused.as_ref().map(|error| Missing {
            file: path.display().to_string(),
            why: error.kind().to_string(),
            costs: "how this cache's memory splits".into(),
            command: Some("sudo slablab doctor --watch".into()),
        }));
    }
    let mut caches = join::join(&dump).caches;
    if refused.is_some() {
        // Every user may read the names. The values are unknown, which is not zero.
        caches.iter_mut().for_each(|cache| cache.attrs = None);
    }
    Ok(State {
        path: "/".into(),
        caches,
        page_size,
        cpus: counted(&dump),
        release: dump.release.as_deref().and_then(Release::parse),
        taken_s: None,
        up_s: None,
        missing,
        assumed: Vec::new(),
        dump,
    })
}

/// A merged cache is a link to a directory that is called `:0000192` or so.
fn directory_of(name: &str) -> String {
    let target = std::fs::read_link(Path::new(DIRECTORY).join(name)).ok();
    let target = target.and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()));
    target.unwrap_or_else(|| name.to_string())
}

/// The names of all links to a directory, ascending.
fn aliases(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let names = links.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| directory_of(name) == directory).collect();
    names.sort();
    names
}

/// Reads every attribute, and says why one could not be read.
fn read_attributes(path: &Path, attrs: &mut SlabAttrs) -> Result<Option<io::Error>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten(),
        Err(error) => return Ok(Some(error)),
    };
    let mut refused = None;
    for name in entries.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let file = path.join(&name);
        match std::fs::read_to_string(&file) {
            Ok(content) => attrs.set(&name, &content).at(&file)?,
            // Some attributes exist on every kernel but work only with debugging on.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused = refused.or(Some(error))
            }
            Err(_) => {}
        }
    }
    Ok(refused)
}
