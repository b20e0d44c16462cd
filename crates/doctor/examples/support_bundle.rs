//! Creates a support bundle of any size from a real dump. Compares the time to read it with the time to
//! decompress it.
//!
//! ```text
//! support_bundle make DUMP MEGABYTES FILE.tar[.gz|.xz|.zst]     the dump's /proc between logs, as sos does
//! support_bundle time FILE...                                   seconds and peak memory of reading
//! ```
//!
//! Each reading is a process of its own, so that its peak memory is its own. Best of five, dev profile, on 2
//! CPUs that others used too, out of the dump `host_618`:
//!
//! | `make` | read | of the decompressor's speed | peak memory |
//! |---|---|---|---|
//! | 50 MB .tar.xz | 0.80 s | 0.98 | 11.6 MiB, 8 of them the dictionary |
//! | 50 MB .tar.gz | 0.12 s | 1.21 | 4.0 MiB |
//! | 50 MB .tar.zst | 0.08 s | 0.94 | 6.0 MiB |
//! | 1,001 MB .tar.zst | 1.67 s | 0.90 | 5.9 MiB |

use slablab_doctor::state::{self, Input};
use slablab_readers::compressed::Decompressed;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;
use tar::{Archive, Builder, EntryType, Header};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", dump, megabytes, file] => make(dump, megabytes.parse()?, file),
        ["time", ref files @ ..] if !files.is_empty() => files.iter().try_for_each(|file| time(file)),
        // What `time` starts.
        ["read", file] => report(|| {
            let state = state::read(&Input { path: Some(file.into()), ..Input::default() })?;
            Ok(state.caches.len() as u64)
        }),
        ["decompress", file] => report(|| {
            let mut reader = Decompressed::new(File::open(file)?)?;
            let mut buffer = vec![0; 128 << 10];
            let mut bytes = 0;
            loop {
                match reader.read(&mut buffer)? {
                    0 => return Ok(bytes),
                    read => bytes += read as u64,
                }
            }
        }),
        _ => Err("usage: support_bundle make DUMP MEGABYTES FILE | support_bundle time FILE...".into()),
    }
}

/// Runs `work`, and prints seconds, peak memory in KiB and what came out.
fn report(work: impl FnOnce() -> Result<u64>) -> Result<()> {
    let started = Instant::now();
    let out = work()?;
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("{seconds} {} {out}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}

/// The best of five of each way, in turn.
fn time(file: &str) -> Result<()> {
    let mut best = [f64::INFINITY; 2];
    let (mut peak, mut bytes, mut caches) = (0u64, 0u64, 0u64);
    for _ in 0..5 {
        for (way, best) in ["read", "decompress"].into_iter().zip(&mut best) {
            let output = std::process::Command::new(std::env::current_exe()?).args([way, file]).output()?;
            let text = String::from_utf8(output.stdout)?;
            let [seconds, kib, out] = text.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            };
            *best = seconds.parse::<f64>()?.min(*best);
            match way {
                "read" => (peak, caches) = (peak.max(kib.parse()?), out.parse()?),
                _ => bytes = out.parse()?,
            }
        }
    }
    let [read, decompress] = best;
    println!(
        "{file}: {:.1} MB, {caches} caches: read in {read:.3} s, decompressed in {decompress:.3} s: {:.2} \
         of its speed; \
         at most {:.1} MiB",
        bytes as f64 / 1e6,
        decompress / read,
        peak as f64 / 1024.0
    );
    Ok(())
}

/// Writes the bundle.
fn make(dump: &str, megabytes: u64, file: &str) -> Result<()> {
    let out = BufWriter::new(File::create(file)?);
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("gz") => {
            let encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            fill(encoder, dump, megabytes)?.finish()?.flush()?;
        }
        Some("zst") => fill(zstd::Encoder::new(out, 3)?, dump, megabytes)?.finish()?.flush()?,
        Some("xz") => fill(liblzma::write::XzEncoder::new(out, 6), dump, megabytes)?.finish()?.flush()?,
        _ => fill(out, dump, megabytes)?.flush()?,
    }
    Ok(())
}

/// Logs of a megabyte each, with a file of the dump behind every one until there are no more of these.
fn fill<W: Write>(out: W, dump: &str, megabytes: u64) -> Result<W> {
    let mut builder = Builder::new(out);
    let mut random = Random(1);
    let top = "sosreport-host-2026-11-20-abcdefg";
    let mut archive = Archive::new(Decompressed::new(File::open(dump)?)?);
    let mut entries = archive.entries()?;
    let mut listing = String::from("/sys/kernel/slab:\n");
    for number in 0..megabytes {
        let log = random.log(1_000_000);
        append(&mut builder, &format!("{top}/var/log/messages-{number}"), &log)?;
        for entry in entries.by_ref() {
            let mut entry = entry?;
            let path = entry.path()?.display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if let Some(target) = entry.link_name()? {
                let name = path.rsplit('/').next().unwrap_or("");
                listing += &format!("lrwxrwxrwx 1 0 0 0 Nov 20 10:00 {name} -> {}\n", target.display());
            } else if path.starts_with("proc/") && entry.header().entry_type() == EntryType::Regular {
                append(&mut builder, &format!("{top}/{path}"), &content)?;
                break;
            }
        }
    }
    append(
        &mut builder,
        &format!("{top}/sos_commands/memory/ls_-lanR_.sys.kernel.slab"),
        listing.as_bytes(),
    )?;
    Ok(builder.into_inner()?)
}

fn append(builder: &mut Builder<impl Write>, path: &str, content: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(1_795_168_800);
    Ok(builder.append_data(&mut header, path, content)?)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % limit
    }

    /// Lines as a system log has them: few kinds, with numbers in them.
    fn log(&mut self, bytes: usize) -> Vec<u8> {
        const KINDS: [&str; 6] = [
            "kernel: audit: type=1400 apparmor=\"STATUS\" operation=\"profile_load\" name=",
            "systemd[1]: Started Session",
            "sshd[911]: Accepted publickey for root from 10.0.0.7 port",
            "kubelet[2207]: I1120 reconciler_common.go:299] \"Volume detached\" uniqueName=",
            "NetworkManager[801]: <info> dhcp4 (eth0): state changed bound -> renew, lease",
            "postfix/smtpd[4711]: connect from unknown",
        ];
        let mut log = Vec::with_capacity(bytes + 200);
        let mut second = 0;
        while log.len() < bytes {
            second += self.below(3);
            let (minute, kind) = (second / 60 % 60, KINDS[self.below(6) as usize]);
            let line = format!(
                "Nov 20 {:02}:{minute:02}:{:02} host {kind} {} {:016x}\n",
                second / 3600 % 24,
                second % 60,
                self.below(100_000),
                self.below(u64::MAX)
            );
            log.extend(line.as_bytes());
        }
        log
    }
}
