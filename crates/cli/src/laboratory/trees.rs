//! Engines of kernel trees in the grammar: `linux:NAME` and `linux:PATH`, once `slablab linux build` made
//! them.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use here::{check, find, unmet};

/// An image is code for x86-64.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn find(
    name: &str,
    _attributes: &str,
) -> Result<&'static slablab_slabs::registered::Registration, String> {
    Err(format!("{name}: expected a host of Linux on x86-64, for which the allocator of a tree is built"))
}

/// No engine of a tree ran.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn unmet() -> Result<(), String> {
    Ok(())
}

/// No engine of a tree was found to check.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn check(
    _effort: u64,
    _asked: Option<&slablab_slabs::registered::Registered>,
) -> Result<String, String> {
    find("linux:", "").map(|engine| engine.engine().to_string())
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod here {
    use slablab_check::{oracle, program::Beside};
    use slablab_engines::{Ended, until_ended};
    use slablab_experiment::Simulated;
    use slablab_linux::build;
    use slablab_linux::engine::{Attributes, Linux, LinuxFamily, LinuxPolicy, Tree};
    use slablab_replay::engines::Replayed;
    use slablab_report::text::counted;
    use slablab_slabs::Release;
    use slablab_slabs::knob::Policy;
    use slablab_slabs::registered::{Registered, Registration, Table};
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex, PoisonError};

    const REPLAYED: Replayed = Replayed::of::<LinuxFamily>();
    const SIMULATED: Simulated = Simulated::of::<LinuxFamily>();

    /// An engine that was asked for, by its name and the attributes of single caches.
    type Found = HashMap<(String, String), &'static Registration>;

    static FOUND: LazyLock<Mutex<Found>> = LazyLock::new(Mutex::default);

    /// The engine of a name of the grammar. A build that was found stays: its caches may outlive any value.
    pub(crate) fn find(name: &str, attributes: &str) -> Result<&'static Registration, String> {
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (name.to_string(), attributes.to_string());
        if let Some(known) = found.get(&asked) {
            return Ok(known);
        }
        let text = name.split_once(':').map_or(name, |(_, text)| text);
        if text.is_empty() {
            return Err("expected linux:NAME or linux:PATH; `slablab linux list` has the names".into());
        }
        let built = build::find(text).map_err(|error| error.to_string())?;
        let own = (format!("linux:{}", built.name), attributes.to_string());
        let registration = match found.get(&own) {
            Some(known) => *known,
            None => registration(&built, &own.0, attributes)?,
        };
        found.insert(own, registration);
        found.insert(asked, registration);
        Ok(registration)
    }

    /// That each attribute was of a cache of what ran.
    ///
    /// # Errors
    /// Caches were made, and none has the name.
    pub(crate) fn unmet() -> Result<(), String> {
        let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        for registration in found.values() {
            if let Some(unmet) = registration.table::<Tree>().and_then(|tree| tree.attributes.unmet()) {
                return Err(format!(
                    "{}: {unmet}: no cache of what ran has this name",
                    registration.engine()
                ));
            }
        }
        Ok(())
    }

    /// Random programs through a tree's allocator, beside a reference.
    pub(crate) fn check(effort: u64, asked: Option<&Registered>) -> Result<String, String> {
        let policy = asked.expect("a tree is asked for by its name").policy::<LinuxPolicy>();
        let release = policy.release();
        let kernel = (release.major.into(), release.minor.into(), release.patch.into());
        let beside = || Beside {
            fill: Linux::fill,
            differs: Linux::differs,
            kept: Linux::own_frames,
            counts_itself: true,
        };
        let ran = oracle::tree::<LinuxFamily>(&policy, kernel, 4 * effort, beside, |run| {
            until_ended(run).unwrap_or_else(|Ended(what)| Err(what))
        })?;
        Ok(format!("{}, {}", counted(ran.allocs, "allocation"), counted(ran.slabs, "slab")))
    }

    fn registration(
        built: &build::Built,
        engine: &str,
        attributes: &str,
    ) -> Result<&'static Registration, String> {
        let [major, minor, patch] = built.version.map(|part| part as u16);
        let release = Release::new(major, minor, patch);
        let tree: &'static Tree = Box::leak(Box::new(Tree {
            plain: built.plain(),
            instrumented: built.instrumented(),
            release,
            attributes: Attributes::parse(attributes)?,
        }));
        let tables: [&'static Table; 3] = [tree, &REPLAYED, &SIMULATED];
        let [engine, attributes] = [engine, attributes].map(|text| &*text.to_string().leak());
        let tables = Box::leak(Box::new(tables));
        let registration = Registration::named::<LinuxPolicy>(engine, release, attributes, tables);
        Ok(Box::leak(Box::new(registration)))
    }
}
