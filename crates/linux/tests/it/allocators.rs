//! The allocators of a real tree, each built once for all tests that run them.

use super::folder;
use super::tree::build;
use slablab_linux::build::{Allocator, Built, Request, Store};
use slablab_linux::engine::{Attributes, LinuxPolicy, Tree};
use slablab_slabs::registered::{Registration, Table};
use slablab_slabs::{Preset, Release};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The build of an allocator; `None` without a tree, or if the tree has no such allocator.
pub(super) fn built(allocator: Allocator) -> Option<Built> {
    static STORE: LazyLock<Mutex<Store>> = LazyLock::new(|| Mutex::new(Store::at(folder("allocators"))));
    let tree = PathBuf::from(std::env::var_os("SLABLAB_LINUX_TREE")?);
    tree.join(format!("mm/{}.c", allocator.word())).exists().then(|| {
        let mut request = Request::of(&tree);
        (request.allocator, request.name) = (Some(allocator), Some(allocator.word().into()));
        let built = build(&STORE.lock().unwrap_or_else(PoisonError::into_inner), &request);
        assert_eq!(built.allocator, allocator);
        built
    })
}

/// The policies of a build, as the grammar makes them.
pub(super) fn policy(built: &Built) -> LinuxPolicy {
    policy_with(built, "", "")
}

/// As [`policy`], with knobs and with attributes of single caches, a comma before each.
pub(super) fn policy_with(built: &Built, knobs: &str, attributes: &'static str) -> LinuxPolicy {
    let [major, minor, patch] = built.version.map(|part| part as u16);
    let tree: &'static Tree = Box::leak(Box::new(Tree {
        plain: built.plain(),
        instrumented: built.instrumented(),
        release: Release::new(major, minor, patch),
        attributes: Attributes::parse(attributes).expect("attributes"),
    }));
    let tables: &'static [&'static Table] = Box::leak(Box::new([tree as &'static Table]));
    let registration = Registration::named::<LinuxPolicy>("linux:tree", tree.release, attributes, tables);
    match Preset::parse_among(&format!("linux:tree{knobs}"), &[Box::leak(Box::new(registration))]) {
        Ok(Preset::Registered(own)) => own.policy(),
        other => panic!("the engine is registered: {other:?}"),
    }
}
