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
    /// Towards the tail.
    next: Vec<u32>,
    /// Towards the head.
    previous: Vec<u32>,
    /// The frame's list, plus one; 0: none.
    list: Vec<u16>,
    ends: Vec<Ends>,
}

impl Lists {
    /// `lists` empty lists of a machine of `frames` frames.
    pub fn new(frames: u32, lists: u16) -> Lists {
        let frames = frames as usize;
        Lists {
            next: vec![0; frames],
            previous: vec![0; frames],
            list: vec![0; frames],
            ends: vec![Ends::default(); lists.into()],
        }
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
        self.list[frame.0 as usize].checked_sub(1).map(ListId)
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
        self.previous[frame.0 as usize].checked_sub(1).map(Frame)
    }

    /// Puts a frame that is in no list at the head.
    pub fn push_head(&mut self, list: ListId, frame: Frame) {
        let (at, link) = (self.enter(list, frame), frame.0 + 1);
        let ends = &mut self.ends[list.0 as usize];
        let old = std::mem::replace(&mut ends.head, link);
        (self.next[at], self.previous[at]) = (old, 0);
        match old.checked_sub(1) {
            Some(old) => self.previous[old as usize] = link,
            None => ends.tail = link,
        }
    }

    /// Puts a frame that is in no list at the tail.
    pub fn push_tail(&mut self, list: ListId, frame: Frame) {
        let (at, link) = (self.enter(list, frame), frame.0 + 1);
        let ends = &mut self.ends[list.0 as usize];
        let old = std::mem::replace(&mut ends.tail, link);
        (self.next[at], self.previous[at]) = (0, old);
        match old.checked_sub(1) {
            Some(old) => self.next[old as usize] = link,
            None => ends.head = link,
        }
    }

    fn enter(&mut self, list: ListId, frame: Frame) -> usize {
        let at = frame.0 as usize;
        assert!(self.list[at] == 0, "frame {} is in list {}", frame.0, self.list[at] - 1);
        self.list[at] = list.0 + 1;
        self.ends[list.0 as usize].len += 1;
        at
    }

    /// Takes a frame out of its list. Returns the list.
    pub fn remove(&mut self, frame: Frame) -> ListId {
        let at = frame.0 as usize;
        let list = self.of(frame).unwrap_or_else(|| panic!("frame {} is in no list", frame.0));
        let (next, previous) = (self.next[at], self.previous[at]);
        let ends = &mut self.ends[list.0 as usize];
        ends.len -= 1;
        match next.checked_sub(1) {
            Some(next) => self.previous[next as usize] = previous,
            None => ends.tail = previous,
        }
        match previous.checked_sub(1) {
            Some(previous) => self.next[previous as usize] = next,
            None => ends.head = next,
        }
        self.list[at] = 0;
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
