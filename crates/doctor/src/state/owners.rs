//! Who holds kernel memory on the running machine: processes with many descriptors or threads, and the names
//! of containers. Both become small tables, so that a saved dump has them too.

use super::folder::{Folder, content};
use rayon::prelude::*;
use slablab_readers::bundle::cgroup_file;
use slablab_readers::cgroups::{self, Cgroup, Holder, Owners};
use slablab_report::error::{At, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The least descriptors of a kind, or threads, for which a process is listed.
const LEAST: u64 = 64;
/// Processes listed for each kind.
const EACH_KIND: usize = 20;

/// Descriptors of a process whose kinds are looked at. A look at one makes the kernel keep an inode and a
/// name in /proc for it, so that a look at all of a leak's would itself look like one.
const SAMPLED: u64 = 32;

/// Memory cgroups of the running machine, and the names of containers; without processes. A screen asks for
/// it repeatedly.
///
/// # Errors
/// A file that is not as the kernel writes it.
pub fn live_cgroups() -> Result<Owners> {
    let root = Path::new("/");
    let mut folder = Folder::default();
    folder.walk_cgroups(root);
    let mut found: BTreeMap<String, Cgroup> = BTreeMap::new();
    for (name, path) in &folder.machine {
        // A cgroup may be removed while it is read.
        if let (Some((cgroup, file)), Ok(content)) = (cgroup_file(name), content(name, path)) {
            cgroups::take(found.entry(cgroup).or_default(), file, &content).at(path)?;
        }
    }
    let counted = cgroups::counted(&fs::read("/proc/cgroups").unwrap_or_default());
    Ok(Owners {
        cgroups: found.into_iter().map(|(path, cgroup)| Cgroup { path, ..cgroup }).collect(),
        counted: counted.at(Path::new("/proc/cgroups"))?,
        containers: cgroups::containers(containers(root).as_bytes()).at(root)?,
        holders: Vec::new(),
    })
}

/// Processes below `proc` that hold many of a kind, most first. The kinds of descriptors are those of a
/// sample, in its proportions. A process that ends meanwhile, or whose descriptors this user may not see, is
/// left out.
pub(super) fn holders(proc: &Path) -> String {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let of = |pid: u32| of_process(&proc.join(pid.to_string()), pid);
    let mut found: Vec<Holder> = pids.into_par_iter().flat_map_iter(of).collect();
    found.sort_by(|a, b| b.count.cmp(&a.count).then(a.pid.cmp(&b.pid)).then_with(|| a.kind.cmp(&b.kind)));
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = String::new();
    for Holder { pid, kind, count, cgroup, comm } in found {
        let of_kind = listed.entry(kind.clone()).or_default();
        *of_kind += 1;
        if *of_kind <= EACH_KIND {
            writeln!(out, "{pid}\t{kind}\t{count}\t{cgroup}\t{comm}").expect("a string");
        }
    }
    out
}

fn of_process(folder: &Path, pid: u32) -> Vec<Holder> {
    let text =
        |name: &str| String::from_utf8_lossy(&fs::read(folder.join(name)).unwrap_or_default()).into_owned();
    let status = text("status");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let mut kinds = descriptors(folder, number("FDSize:"));
    kinds.insert("thread".into(), number("Threads:"));
    kinds.retain(|_, count| *count >= LEAST);
    if kinds.is_empty() {
        return Vec::new();
    }
    // One line, whatever the process calls itself.
    let line = |text: &str| text.trim_end().replace(['\n', '\t'], " ");
    let (comm, cgroup) = (line(&text("comm")), line(&memory_cgroup(text("cgroup").as_bytes())));
    let holder = |(kind, count)| Holder { pid, kind, count, cgroup: cgroup.clone(), comm: comm.clone() };
    kinds.into_iter().map(holder).collect()
}

/// Descriptors of a process by kind. Their number is the size of its directory since Linux 6.2; before, it is
/// at most `table`, the size of the process's table.
fn descriptors(folder: &Path, table: u64) -> BTreeMap<String, u64> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let size = fs::metadata(folder.join("fd")).map_or(0, |found| found.len());
    let count = if size > 0 { size } else { table };
    if count < LEAST {
        return kinds;
    }
    // Descriptors are numbered from 0 without large holes.
    let numbers = (0..SAMPLED).map(|at| (2 * at + 1) * count / (2 * SAMPLED));
    let links = numbers.filter_map(|number| fs::read_link(folder.join(format!("fd/{number}"))).ok());
    let mut seen = 0;
    for target in links {
        *kinds.entry(kind(&target.to_string_lossy())).or_default() += 1;
        seen += 1;
    }
    // A table may be far larger than its descriptors ever were at once since: a number that is missing is
    // none.
    let looked_at = if size > 0 { seen.max(1) } else { SAMPLED };
    let share = |hits: u64| u128::from(hits) * u128::from(count) / u128::from(looked_at);
    kinds.values_mut().for_each(|hits| *hits = share(*hits) as u64);
    kinds
}

/// The kind of an open file, of the text that its link in /proc/PID/fd has.
fn kind(target: &str) -> String {
    if target.starts_with("socket:") {
        return "socket".into();
    }
    if target.starts_with("pipe:") {
        return "pipe".into();
    }
    match target.strip_prefix("anon_inode:") {
        Some(name) => name.trim_matches(['[', ']']).replace(['\t', '\n'], " "),
        None => "file".into(),
    }
}

/// The path of the memory cgroup in /proc/PID/cgroup: that of version 1 if there is one, else of version 2.
fn memory_cgroup(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let path = |wanted: fn(&str) -> bool| {
        let mut rows = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        rows.find(|(controllers, _)| controllers.split(',').any(wanted)).map(|(_, path)| path.to_string())
    };
    path(|controller| controller == "memory").or_else(|| path(str::is_empty)).unwrap_or_default()
}

/// Names of the containers of Docker, Podman and Kubernetes below `root`, by their ids. Of their
/// configurations nothing but the name is kept, since they hold secrets.
pub(super) fn containers(root: &Path) -> String {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    // Docker: a folder of its own for each.
    let folders = fs::read_dir(root.join("var/lib/docker/containers")).into_iter().flatten().flatten();
    for folder in folders {
        let config = fs::read(folder.path().join("config.v2.json")).unwrap_or_default();
        let name = serde_json::from_slice(&config).ok().and_then(|config: serde_json::Value| {
            Some(config.get("Name")?.as_str()?.trim_start_matches('/').to_string())
        });
        names.extend(name.map(|name| (folder.file_name().to_string_lossy().into_owned(), name)));
    }
    // Podman: one list.
    let list = fs::read(root.join("var/lib/containers/storage/overlay-containers/containers.json"));
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list.unwrap_or_default()).unwrap_or_default();
    names.extend(list.iter().filter_map(|container| {
        let name = container.get("names")?.get(0)?.as_str()?;
        Some((container.get("id")?.as_str()?.to_string(), name.to_string()))
    }));
    // Kubernetes: `POD_NAMESPACE_CONTAINER-ID.log`.
    let logs = fs::read_dir(root.join("var/log/containers")).into_iter().flatten().flatten();
    names.extend(logs.filter_map(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let (name, id) = file.strip_suffix(".log")?.rsplit_once('-')?;
        Some((id.to_string(), name.replacen('_', "/", 2)))
    }));
    let line = |(id, name): (String, String)| format!("{id}\t{}\n", name.replace(['\n', '\t'], " "));
    names.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_descriptors() {
        for (target, expected) in [
            ("socket:[123]", "socket"),
            ("pipe:[7]", "pipe"),
            ("anon_inode:[eventpoll]", "eventpoll"),
            ("anon_inode:inotify", "inotify"),
            ("/dev/null", "file"),
            ("/memfd:x (deleted)", "file"),
        ] {
            assert_eq!(kind(target), expected, "{target}");
        }
    }

    #[test]
    fn memory_cgroups_of_both_versions() {
        for (text, expected) in [
            ("9:name=systemd:/\n4:memory:/docker/a\n0::/\n", "/docker/a"),
            ("4:cpu,memory:/b\n", "/b"),
            ("0::/system.slice/x.service\n", "/system.slice/x.service"),
            ("", ""),
        ] {
            assert_eq!(memory_cgroup(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn containers_have_names() {
        let root = std::env::temp_dir().join(format!("slablab-containers-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(
            "var/lib/docker/containers/d1/config.v2.json",
            r#"{"Name":"/web","Config":{"Env":["SECRET=1"]}}"#,
        );
        write("var/lib/docker/containers/d2/config.v2.json", "{");
        write(
            "var/lib/containers/storage/overlay-containers/containers.json",
            r#"[{"id":"p1","names":["mail"]},{"id":"p2"}]"#,
        );
        write("var/log/containers/pod-7_shop_cart-k1.log", "");
        let said = containers(&root);
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(said, "d1\tweb\nk1\tpod-7/shop/cart\np1\tmail\n");
    }

    /// This test's own sockets are counted.
    #[test]
    fn this_process_is_found() {
        let held: Vec<_> =
            (0..300).map(|_| std::os::unix::net::UnixDatagram::unbound().expect("a socket")).collect();
        let said = holders(Path::new("/proc"));
        let own = format!("{}\tsocket\t", std::process::id());
        let line = said.lines().find(|line| line.starts_with(&own)).expect("this process");
        let count: usize = line[own.len()..].split('\t').next().expect("a count").parse().expect("a number");
        assert!(count >= held.len() / 2 && count < 10 * held.len(), "{line}");
    }
}
