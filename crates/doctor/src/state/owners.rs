//! Memory cgroups of the running machine, and the names of containers, which become a small table, so that a
//! saved dump has them too.

use super::folder::{Folder, content};
use slablab_readers::bundle::cgroup_file;
use slablab_readers::cgroups::{self, Cgroup, Owners};
use slablab_report::error::{At, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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

/// The path of the memory cgroup in /proc/PID/cgroup: that of version 1 if there is one, else of version 2.
pub(super) fn memory_cgroup(text: &[u8]) -> String {
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
}
