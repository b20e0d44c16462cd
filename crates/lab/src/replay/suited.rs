//! Whether a dump and a machine suit a recording.

use super::Options;
use slablab_kernel::bundle::Dump;
use slablab_report::error::{Error, Result};
use slablab_slabs::Release;
use slablab_workloads::Metadata;
use std::path::Path;

/// Refuses a dump of another kernel than the recording's: another release, architecture or page size. What
/// one of the two does not tell is not compared.
///
/// # Errors
/// The first difference. [`Options::force`] makes all of them warnings, which are returned.
pub(super) fn check(metadata: &Metadata, options: &Options, recording: &Path) -> Result<Vec<String>> {
    let Some(before) = &options.before else { return Ok(Vec::new()) };
    let Some(dump) = &before.dump else { return Ok(Vec::new()) };
    let found = differences(metadata, dump, options.release);
    let Some(first) = found.first() else { return Ok(found) };
    if !options.force {
        let what = format!("{first} as {}; --force takes it all the same", recording.display());
        return Err(Error::new(&before.path, what));
    }
    Ok(found.iter().map(|what| format!("{}: {what} as the recording", before.path.display())).collect())
}

/// What the dump is and the recording is not.
fn differences(metadata: &Metadata, dump: &Dump, said: Option<Release>) -> Vec<String> {
    let release = |text: &Option<String>| text.as_deref().and_then(Release::parse);
    let mut found = Vec::new();
    if let (Some(recorded), Some(dumped)) = (said.or(release(&metadata.release)), release(&dump.release))
        && recorded != dumped
    {
        found.push(format!("a dump of release {dumped}, not of {recorded}"));
    }
    if let (Some(recorded), Some(dumped)) = (&metadata.architecture, &dump.arch)
        && family(recorded) != family(dumped)
    {
        found.push(format!("a dump of a machine of {dumped}, not of {recorded}"));
    }
    if let (Some(recorded), Some((dumped, _))) = (metadata.page_size_bytes, dump.page_size)
        && recorded != dumped
    {
        found.push(format!(
            "a dump of a machine with pages of {}K, not of {}K",
            dumped >> 10,
            recorded >> 10
        ));
    }
    found
}

/// The names of one architecture: `uname -m` and those of distributions.
fn family(arch: &str) -> &str {
    match arch {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        "i386" | "i486" | "i586" => "i686",
        other => other,
    }
}

/// Says that CPUs are idle if the machine has more than the recording.
pub(super) fn idle(metadata: &Metadata, cpus: usize) -> Option<String> {
    let online = metadata.topology.cpus_online.unwrap_or(0);
    let recorded = online.max(metadata.statistics.cpu_ids) as usize;
    (recorded > 0 && cpus > recorded).then(|| {
        format!(
            "the recording is of {recorded} CPUs, the machine has {cpus}: every row stays on its CPU, and the \
             other {} are idle; a recording does not tell what more CPUs would do",
            cpus - recorded
        )
    })
}
