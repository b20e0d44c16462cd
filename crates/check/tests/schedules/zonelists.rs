//! Two CPUs that request one node's zonelist at once, on a machine where all nodes are equally far from each
//! other. There `node_load` decides the order, and both CPUs must read one list.

use slablab_check::kit::{Job, Kit};
use slablab_check::{Checked, Limits, Loom, Shape, Shuttle, effort, explore};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, NodeId};
use std::rc::Rc;

/// Both CPUs of [`Shape::FLAT`] walk node 1's zonelist, in every schedule within the limits.
fn check<K: Kit>(limits: Limits) {
    let explored = explore::<K>(limits, || {
        Checked::<K>::enter(Shape::FLAT, || {
            let pages = Rc::new(Pages::<Checked<K>>::new(PagesPolicy::for_release(6, 1, 0)));
            let walk = |pages: Rc<Pages<Checked<K>>>| -> Job {
                Box::new(move || {
                    let nodes: Vec<u16> = pages.nearest(NodeId(1)).map(|node| node.0).collect();
                    // Nodes without CPUs come first. Node 2 is already first in node 0's list, so node 3
                    // comes before it here.
                    assert_eq!(nodes, [1, 3, 2, 0]);
                })
            };
            Checked::<K>::together(vec![(CpuId(0), walk(pages.clone())), (CpuId(1), walk(pages))]);
        });
    });
    let explored = explored.unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(explored.executions > 1, "only one schedule was explored");
}

#[test]
fn loom_zonelists() {
    check::<Loom>(Limits::QUICK);
}

#[test]
fn shuttle_zonelists() {
    check::<Shuttle>(Limits { executions: effort(1_000) as usize, ..Limits::QUICK });
}
