//! Limits: a process near the memory that it may use gives back what it keeps.

/// A process is near its limit when this part of it is left.
const NEAR_FRACTION: u64 = 16;
/// Near the limit, caches give back all that they keep again after so long,
const PURGE_EVERY_NS: u64 = 1_000_000_000;
/// or when the process uses this part of the limit more than they left.
const PURGE_FRACTION: u64 = 64;
/// Less idle memory is not worth a purge, in bytes.
const WORTH_BYTES: u64 = 1 << 20;
/// Tasks wait for memory if some did for this part of the time.
const WAITS_FRACTION: u64 = 50;

/// What a process with a limit uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::shared) struct Limited {
    pub(in crate::shared) limit: u64,
    /// With the request that is at hand.
    pub(in crate::shared) used: u64,
    /// What the process keeps for later.
    pub(in crate::shared) idle: u64,
    /// What was used after the last purge, and how long ago that was.
    pub(in crate::shared) left: u64,
    pub(in crate::shared) since_ns: u64,
    /// Whether tasks of the cgroup wait for memory.
    pub(in crate::shared) waits: bool,
}

/// Whether a process is near its limit.
pub(in crate::shared) fn is_near(of: &Limited) -> bool {
    of.used >= of.limit - of.limit / NEAR_FRACTION
}

/// Whether a process gives back all that it keeps.
pub(in crate::shared) fn purges(of: &Limited) -> bool {
    let again = of.since_ns >= PURGE_EVERY_NS || of.used >= of.left + of.limit / PURGE_FRACTION;
    (is_near(of) || of.waits) && of.idle >= WORTH_BYTES && again
}

/// Whether tasks that waited so long for memory, in so much time, count as waiting.
pub(in crate::shared) fn waits(waited_us: u64, elapsed_ns: u64) -> bool {
    waited_us.saturating_mul(1000 * WAITS_FRACTION) > elapsed_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::decide::tables::check_numbers;

    #[test]
    fn a_process_near_its_limit_purges_as_the_page_says() {
        let head = "| limit | used | idle | left by the last purge | seconds since | waits | purge |";
        check_numbers(head, |facts| {
            let [limit, used, idle, left, seconds, waits] = facts[..] else { panic!("{facts:?}") };
            let [limit, used, idle, left] = [limit, used, idle, left].map(|mib| mib << 20);
            let since_ns = seconds * PURGE_EVERY_NS;
            let of = Limited { limit, used, idle, left, since_ns, waits: waits == 1 };
            vec![if purges(&of) { "yes" } else { "no" }.to_owned()]
        });
        assert!(waits(401, 20_000_000) && !waits(400, 20_000_000) && !waits(0, 0));
    }
}
