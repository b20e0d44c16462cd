//! The list of workloads and allocators.

use crate::own;
use crate::patterns::Group;
use crate::rig::MEMORY;
use slablab_report::Answer;
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_report::text::counted;

/// A workload or an allocator that can be named.
pub struct Listed {
    kind: &'static str,
    name: &'static str,
    /// The group of a workload, the role of an allocator.
    group: &'static str,
    about: &'static str,
}

/// The workloads in the order of their groups, then the allocators.
pub fn listed() -> Vec<Listed> {
    let all = own::workloads();
    let of_group = |group: Group| {
        let workloads = all.iter().filter(move |one| one.group == group);
        workloads.map(move |one| Listed {
            kind: "workload",
            name: one.name,
            group: group.name(),
            about: one.about,
        })
    };
    let mut rows: Vec<Listed> = Group::ALL.into_iter().flat_map(of_group).collect();
    let about = "resident memory of a process per allocator: threads, live blocks, after frees";
    rows.push(Listed { kind: "workload", name: MEMORY, group: MEMORY, about });
    for one in all.iter().flat_map(|one| &one.contestants) {
        let is_listed = |row: &Listed| row.kind == "allocator" && row.name == one.name;
        if !rows.iter().any(is_listed) {
            let (name, group, about) = (one.name, one.role.name(), one.evidence);
            rows.push(Listed { kind: "allocator", name, group, about });
        }
    }
    rows
}

/// The columns of the list.
pub fn list_columns() -> Columns<Listed> {
    Columns::default()
        .key("kind", |row: &Listed| Cell::Text(row.kind.into()))
        .described("workload or allocator")
        .key("name", |row| Cell::Text(row.name.into()))
        .key("group", |row| Cell::Text(row.group.into()))
        .described("The group of a workload; the role of an allocator: ours, peer, twin or floor")
        .key("about", |row| Cell::Text(row.about.into()))
        .described("What a workload does; how an allocator is proved to serve it")
}

/// How many workloads and allocators the list has.
pub fn list_sentence(rows: &[Listed]) -> String {
    let of = |kind: &str| rows.iter().filter(|row| row.kind == kind).count() as u64;
    let (workloads, allocators) =
        (counted(of("workload"), "workload"), counted(of("allocator"), "allocator"));
    format!("{workloads} (--workloads) and {allocators} (--allocators) can be named.")
}

/// The text of the list: workloads by group, then allocators, each with its proof.
pub fn list_text(answer: Answer, rows: &[Listed]) -> Answer {
    let (workloads, allocators): (Vec<&Listed>, Vec<&Listed>) =
        rows.iter().partition(|row| row.kind == "workload");
    let groups = workloads.chunk_by(|one, next| one.group == next.group);
    let answer = groups.fold(answer, |answer, group| {
        let items = group.iter().map(|row| format!("{}: {}", row.name, row.about));
        answer.heading(group[0].group).list(items)
    });
    let items = allocators.iter().map(|row| format!("{} ({}), proof: {}", row.name, row.group, row.about));
    answer.heading("allocators").list(items)
}
