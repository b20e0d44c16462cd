//! Ordered queues of tasks without allocation: search trees whose nodes are one for each task.
//!
//! A [`Forest`] holds a node for each task number, and as many trees as its owner keeps roots for. A task is
//! in one tree of a forest at most. The trees are treaps: a node's priority is a mix of its number, so that
//! the shape is random, and still the same in each run. All operations take O(log n) steps.
//!
//! Each node carries a second value, and each subtree its least second value: [`Forest::first_below`] finds
//! the first task in order whose value is small enough. EEVDF needs it (docs/theory/scheduler.md 7.1).

/// No node.
const NONE: u32 = u32::MAX;

/// The root of one tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root(u32);

impl Default for Root {
    fn default() -> Root {
        Root(NONE)
    }
}

/// The order of a tree: by `key`, then by `tie`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) key: i64,
    pub(super) tie: u64,
}

/// The second value of a node: the tree keeps the least `virtual_time` and the least `slice` of each subtree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value {
    pub(super) virtual_time: i64,
    pub(super) slice: u64,
}

impl Value {
    fn least(self, other: Value) -> Value {
        Value { virtual_time: self.virtual_time.min(other.virtual_time), slice: self.slice.min(other.slice) }
    }
}

#[derive(Clone, Copy, Default)]
struct Node {
    key: Key,
    value: Value,
    least: Value,
    left: u32,
    right: u32,
    priority: u32,
}

/// The nodes of all tasks.
#[derive(Default)]
pub(super) struct Forest {
    nodes: Vec<Node>,
}

impl Forest {
    /// Makes nodes for all task numbers up to `task`.
    pub(super) fn grow(&mut self, task: u32) {
        while self.nodes.len() <= task as usize {
            let mixed = (self.nodes.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            self.nodes.push(Node { priority: (mixed >> 32) as u32, ..Node::default() });
        }
    }

    /// Puts `task` into the tree of `root`.
    pub(super) fn insert(&mut self, root: &mut Root, task: u32, key: Key, value: Value) {
        let priority = self.nodes[task as usize].priority;
        self.nodes[task as usize] = Node { key, value, least: value, left: NONE, right: NONE, priority };
        root.0 = self.insert_at(root.0, task);
    }

    fn insert_at(&mut self, at: u32, task: u32) -> u32 {
        if at == NONE {
            return task;
        }
        let key = self.nodes[task as usize].key;
        if self.nodes[task as usize].priority > self.nodes[at as usize].priority {
            let (left, right) = self.split(at, key);
            self.nodes[task as usize].left = left;
            self.nodes[task as usize].right = right;
            self.refresh(task);
            return task;
        }
        if key < self.nodes[at as usize].key {
            let left = self.insert_at(self.nodes[at as usize].left, task);
            self.nodes[at as usize].left = left;
        } else {
            let right = self.insert_at(self.nodes[at as usize].right, task);
            self.nodes[at as usize].right = right;
        }
        self.refresh(at);
        at
    }

    /// Takes `task` out of the tree of `root`.
    pub(super) fn remove(&mut self, root: &mut Root, task: u32) {
        root.0 = self.remove_at(root.0, task);
    }

    fn remove_at(&mut self, at: u32, task: u32) -> u32 {
        debug_assert_ne!(at, NONE, "task {task} is not in this tree");
        let node = self.nodes[at as usize];
        if at == task {
            return self.merge(node.left, node.right);
        }
        if self.nodes[task as usize].key < node.key {
            let left = self.remove_at(node.left, task);
            self.nodes[at as usize].left = left;
        } else {
            let right = self.remove_at(node.right, task);
            self.nodes[at as usize].right = right;
        }
        self.refresh(at);
        at
    }

    /// The first task of a tree.
    pub(super) fn first(&self, root: Root) -> Option<u32> {
        let mut at = root.0;
        if at == NONE {
            return None;
        }
        while self.nodes[at as usize].left != NONE {
            at = self.nodes[at as usize].left;
        }
        Some(at)
    }

    /// The first task of a tree whose key is `key` or more.
    pub(super) fn first_from(&self, root: Root, key: i64) -> Option<u32> {
        let (mut at, mut found) = (root.0, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key.key >= key {
                found = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        found
    }

    /// The first task of a tree whose virtual time is `limit` or less.
    pub(super) fn first_below(&self, root: Root, limit: i64) -> Option<u32> {
        let mut at = root.0;
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.least.virtual_time > limit {
                return None;
            }
            if node.left != NONE && self.nodes[node.left as usize].least.virtual_time <= limit {
                at = node.left;
            } else if node.value.virtual_time <= limit {
                return Some(at);
            } else {
                at = node.right;
            }
        }
        None
    }

    /// The shortest slice in a tree.
    pub(super) fn shortest_slice(&self, root: Root) -> Option<u64> {
        (root.0 != NONE).then(|| self.nodes[root.0 as usize].least.slice)
    }

    /// Appends the first `count` tasks of a tree to `found`, in order.
    pub(super) fn list(&self, root: Root, count: usize, found: &mut Vec<u32>) {
        self.list_at(root.0, count, found);
    }

    fn list_at(&self, at: u32, count: usize, found: &mut Vec<u32>) {
        if at != NONE && found.len() < count {
            let node = self.nodes[at as usize];
            self.list_at(node.left, count, found);
            if found.len() < count {
                found.push(at);
                self.list_at(node.right, count, found);
            }
        }
    }

    fn refresh(&mut self, at: u32) {
        let node = self.nodes[at as usize];
        let mut least = node.value;
        for child in [node.left, node.right].into_iter().filter(|child| *child != NONE) {
            least = least.least(self.nodes[child as usize].least);
        }
        self.nodes[at as usize].least = least;
    }

    /// Splits a subtree into the nodes before `key` and the others.
    fn split(&mut self, at: u32, key: Key) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let node = self.nodes[at as usize];
        if node.key < key {
            let (left, right) = self.split(node.right, key);
            self.nodes[at as usize].right = left;
            self.refresh(at);
            (at, right)
        } else {
            let (left, right) = self.split(node.left, key);
            self.nodes[at as usize].left = right;
            self.refresh(at);
            (left, at)
        }
    }

    /// Joins two subtrees; every key of `left` is less than every key of `right`.
    fn merge(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        let (a, b) = (self.nodes[left as usize], self.nodes[right as usize]);
        if a.priority > b.priority {
            let joined = self.merge(a.right, right);
            self.nodes[left as usize].right = joined;
            self.refresh(left);
            left
        } else {
            let joined = self.merge(left, b.left);
            self.nodes[right as usize].left = joined;
            self.refresh(right);
            right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Random operations on a tree and on a `BTreeMap`: every query has the answer of a search through the
    /// map.
    #[test]
    fn trees_answer_as_a_sorted_map_does() {
        let (mut forest, mut root, mut map) = (Forest::default(), Root::default(), BTreeMap::new());
        forest.grow(199);
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for step in 0..20_000u64 {
            let task = random(200) as u32;
            if map.values().any(|(held, _): &(u32, Value)| *held == task) {
                let key = forest.nodes[task as usize].key;
                forest.remove(&mut root, task);
                map.remove(&key);
            } else {
                let key = Key { key: random(50) as i64, tie: step };
                let value = Value { virtual_time: random(50) as i64, slice: 1 + random(9) };
                forest.insert(&mut root, task, key, value);
                map.insert(key, (task, value));
            }
            let limit = random(50) as i64;
            let first = |pass: &dyn Fn(&Key, &Value) -> bool| {
                map.iter().find(|(key, (_, value))| pass(key, value)).map(|(_, (task, _))| *task)
            };
            assert_eq!(forest.first(root), first(&|_, _| true));
            assert_eq!(forest.first_below(root, limit), first(&|_, value| value.virtual_time <= limit));
            assert_eq!(forest.first_from(root, limit), first(&|key, _| key.key >= limit));
            assert_eq!(forest.shortest_slice(root), map.values().map(|(_, value)| value.slice).min());
            let mut listed = Vec::new();
            forest.list(root, 5, &mut listed);
            assert_eq!(listed, map.values().take(5).map(|(task, _)| *task).collect::<Vec<_>>());
        }
    }
}
