//! Doubly linked lists of frames. A frame is in at most one list.
//!
//! The *head* is where pages enter, the *tail* where reclaim looks first.

use crate::ids::Frame;

/// One of the lists of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListId(pub u16);

/// A link is a frame's number plus one; 0 is the end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    head: u32,
    tail: u32,
    len: u32,
}

/// All lists of a machine.
#[derive(Debug, Default)]
pub struct Lists {
    /// The words of each frame.
    links: Vec<[u32; WORDS]>,
    ends: Vec<Ends>,
}

/// Words of a frame, together as in [`crate::frames`].
const WORDS: usize = 4;
/// Towards the tail.
const NEXT: usize = 0;
/// Towards the head.
const PREVIOUS: usize = 1;
/// The frame's list, plus one; 0: none.
const LIST: usize = 2;

impl Lists {
    /// `lists` empty lists of a machine of `frames` frames.
    pub fn new(frames: u32, lists: u16) -> Lists {
        Lists { links: vec![[0; WORDS]; frames as usize], ends: vec![Ends::default(); lists.into()] }
    }

    /// Pages in a list.
    #[inline]
    pub fn len(&self, list: ListId) -> u32 {
        self.ends[list.0 as usize].len
    }

    /// Whether a list has no page.
    pub fn is_empty(&self, list: ListId) -> bool {
        self.len(list) == 0
    }

    /// The number of lists.
    pub fn count(&self) -> u16 {
        self.ends.len() as u16
    }

    /// The list that a frame is in.
    #[inline]
    pub fn of(&self, frame: Frame) -> Option<ListId> {
        self.links[frame.0 as usize][LIST].checked_sub(1).map(|list| ListId(list as u16))
    }

    /// The frame at the tail.
    #[inline]
    pub fn tail(&self, list: ListId) -> Option<Frame> {
        self.ends[list.0 as usize].tail.checked_sub(1).map(Frame)
    }

    /// The frame at the head.
    pub fn head(&self, list: ListId) -> Option<Frame> {
        self.ends[list.0 as usize].head.checked_sub(1).map(Frame)
    }

    /// The frame before this one, one step from the tail to the head.
    #[inline]
    pub fn before(&self, frame: Frame) -> Option<Frame> {
        self.links[frame.0 as usize][PREVIOUS].checked_sub(1).map(Frame)
    }

    /// Puts a frame that is in no list at the head.
    pub fn push_head(&mut self, list: ListId, frame: Frame) {
        let (at, link) = (self.enter(list, frame), frame.0 + 1);
        let ends = &mut self.ends[list.0 as usize];
        let old = std::mem::replace(&mut ends.head, link);
        (self.links[at][NEXT], self.links[at][PREVIOUS]) = (old, 0);
        match old.checked_sub(1) {
            Some(old) => self.links[old as usize][PREVIOUS] = link,
            None => ends.tail = link,
        }
    }

    /// Puts a frame that is in no list at the tail.
    pub fn push_tail(&mut self, list: ListId, frame: Frame) {
        let (at, link) = (self.enter(list, frame), frame.0 + 1);
        let ends = &mut self.ends[list.0 as usize];
        let old = std::mem::replace(&mut ends.tail, link);
        (self.links[at][NEXT], self.links[at][PREVIOUS]) = (0, old);
        match old.checked_sub(1) {
            Some(old) => self.links[old as usize][NEXT] = link,
            None => ends.head = link,
        }
    }

    fn enter(&mut self, list: ListId, frame: Frame) -> usize {
        let at = frame.0 as usize;
        let entered = &mut self.links[at][LIST];
        assert!(*entered == 0, "frame {} is in list {}", frame.0, *entered - 1);
        *entered = u32::from(list.0) + 1;
        self.ends[list.0 as usize].len += 1;
        at
    }

    /// Takes a frame out of its list. Returns the list.
    pub fn remove(&mut self, frame: Frame) -> ListId {
        let at = frame.0 as usize;
        let list = self.of(frame).unwrap_or_else(|| panic!("frame {} is in no list", frame.0));
        let (next, previous) = (self.links[at][NEXT], self.links[at][PREVIOUS]);
        let ends = &mut self.ends[list.0 as usize];
        ends.len -= 1;
        match next.checked_sub(1) {
            Some(next) => self.links[next as usize][PREVIOUS] = previous,
            None => ends.tail = previous,
        }
        match previous.checked_sub(1) {
            Some(previous) => self.links[previous as usize][NEXT] = next,
            None => ends.head = next,
        }
        self.links[at][LIST] = 0;
        list
    }

    /// Takes the frame at the tail out of its list.
    pub fn pop_tail(&mut self, list: ListId) -> Option<Frame> {
        let tail = self.tail(list)?;
        self.remove(tail);
        Some(tail)
    }

    /// The frames of a list from the tail to the head.
    pub fn from_tail(&self, list: ListId) -> impl Iterator<Item = Frame> + '_ {
        std::iter::successors(self.tail(list), |frame| self.before(*frame))
    }
}
