//! The assumptions that a change needs, as sentences.

use super::arrays;
use super::case::Case;
use super::percpu::Kernel;
use super::sheaves::known_releases;
use super::touch::{Cpus, THREADS_PER_CPU};

/// Caches that one sentence names.
const NAMED: usize = 5;

/// The assumptions of a prediction. `unexplained` are the caches whose order today is not what the rules
/// give.
pub(super) fn of(case: &Case, cpus: &Cpus, unexplained: &[String]) -> Vec<String> {
    let mut assumed: Vec<String> = case.holds_otherwise().map(String::from).into_iter().collect();
    if !case.has_sheaves_only() && !cpus.are_counted() {
        assumed.push(
            "The input does not count CPU slabs: each CPU is assumed to hold one, as far as a cache has slabs."
                .into(),
        );
    }
    assumed.extend(orders(case, unexplained));
    assumed.extend(objects(case));
    assumed.extend(arrays::assumed(case));
    if case.other_pages() {
        assumed.push(
            "Objects keep their sizes and caches stay: the largest kmalloc classes, and kernel stacks from \
             slab, exist on large pages only; caches whose objects hold page tables or arrays of pages change \
             size."
                .into(),
        );
    }
    if cpus.differ() {
        assumed.extend(other_cpus(case, cpus));
    }
    assumed.extend(names(case).map(String::from));
    assumed
}

/// Orders that the rules of today do not explain.
fn orders(case: &Case, unexplained: &[String]) -> Option<String> {
    let few: Vec<&str> = unexplained.iter().take(NAMED).map(String::as_str).collect();
    let more = if unexplained.len() > few.len() { ", ..." } else { "" };
    (!unexplained.is_empty()).then(|| {
        format!(
            "{} caches have an order or objects per slab today that the rule `{}` does not give; their \
             predicted orders may be wrong too: {}{more}.",
            unexplained.len(),
            case.rules.rule.name(),
            few.join(", ")
        )
    })
}

/// Objects of another release.
fn objects(case: &Case) -> Option<String> {
    let own = Kernel::of(case.state).release;
    let own = if own.is_empty() { "the kernel of the input".into() } else { own };
    if case.holders().is_some() && case.other_release().is_none() && case.change.cpus.is_some() {
        return Some(
            "Each CPU that comes refills a sheaf of each cache that CPUs have objects of, and each that goes \
             takes its own with it; barns stay."
                .into(),
        );
    }
    if case.holders().is_some() {
        return Some(format!(
            "{} Objects in use are as many as in {own}. Objects have other sizes where those of Debian's kernels \
             for amd64 ({}) have, and this kernel's sizes are those: {} caches. A cache that only one \
             release has is not predicted.",
            case.rules.differences(&case.rules_whatif),
            known_releases(),
            case.resized()
        ));
    }
    let release = case.other_release()?;
    Some(format!(
        "{} What {}.{} allocates is not known: objects, their sizes and their number are those of {own}.",
        case.rules.differences(&case.rules_whatif),
        release.major,
        release.minor,
    ))
}

/// Another number of CPUs.
fn other_cpus(case: &Case, cpus: &Cpus) -> [String; 3] {
    let allocated = match cpus.table() {
        Some(table) => table.assumed(&Kernel::of(case.state)),
        None => format!(
            "What the kernel allocates for each CPU is not known: {THREADS_PER_CPU} threads, and one object of \
             each cache with an object for each CPU, are assumed."
        ),
    };
    [
        "Objects keep their sizes; those with a field for each CPU or a mask of CPUs would change.".into(),
        allocated,
        format!(
            "The number of all other objects stays. Programs touch CPUs at random, no cache more often than \
             {:.0} times. Memory nodes stay: one that comes with CPUs has threads, partial slabs and objects \
             of its own, 1 % of slab memory on 8 CPUs.",
            cpus.most_touches()
        ),
    ]
}

/// Names that share slabs, or stop to.
fn names(case: &Case) -> Option<&'static str> {
    match (case.comes_apart(), case.change.merge) {
        (true, _) => Some(
            "How objects divide among merged names is not known: they stay with the first name, and each other \
             gets a slab; sizes are those of the merged cache.",
        ),
        (_, Some(true)) => Some(
            "Whether a cache's objects are accounted to a cgroup is not in sysfs: accounted and other caches \
             of one size are merged here, and are not by the kernel.",
        ),
        _ => None,
    }
}
