//! What an explanation says in one sentence.

use super::{ends, rounded};
use crate::explain::{Explained, Explanation};
use slablab_report::html::number::{bytes, signed_bytes};

/// The change of slab memory, and the policy that carries most of it.
pub(super) fn of(explained: &Explained) -> String {
    let [from, to] = ends(explained);
    let items = explained.items.len();
    if items == 0 {
        return format!("{from} and {to} are the same here: nothing differs.");
    }
    let policies = if items == 1 { "one policy".to_string() } else { format!("{items} policies") };
    let moving = explained.measures.iter().filter(|one| one.moves()).count();
    if moving == 0 {
        return format!(
            "{from} and {to} differ in {policies}, and in nothing that happens here: no counter differs."
        );
    }
    let whose =
        explained.cache.as_ref().map_or("slab memory".to_string(), |cache| format!("{cache}'s slab memory"));
    let Some(memory) = explained.measures.iter().find(|one| is_memory(one)).filter(|one| one.change() != 0)
    else {
        return format!(
            "From {from} to {to} {whose} at the end stays the same; {policies} differ, and {moving} counters with them."
        );
    };
    format!(
        "From {from} to {to} {whose} at the end changes by {}, from {} to {}; {}.",
        signed_bytes(memory.change() as i64),
        bytes(memory.from),
        bytes(memory.to),
        carried(explained, memory)
    )
}

/// The policy that carries most of a change.
fn carried(explained: &Explained, memory: &Explanation) -> String {
    let parts = rounded(memory);
    let Some(most) = (0..parts.len()).max_by_key(|item| parts[*item].abs()) else { return String::new() };
    let name = &explained.items[most].name;
    let how = match (parts.len(), explained.sampled) {
        (1, _) => return format!("{name} is the only policy that differs"),
        (_, None) => String::new(),
        (_, Some(orders)) => format!(" (estimated along {orders} sampled orders)"),
    };
    let (part, change) = (parts[most] as i64, memory.change() as i64);
    if part.abs() > change.abs() {
        let rest = signed_bytes(change - part);
        return format!("{name} carries {}, the other policies together {rest}{how}", signed_bytes(part));
    }
    format!("most of that is carried by {name}: {}{how}", signed_bytes(part))
}

/// Whether it is slab memory at the end, of all caches or of one.
fn is_memory(one: &Explanation) -> bool {
    ["slab_end_bytes", "slab_bytes"].contains(&one.measure.name.as_str())
}
