//! Kernel objects by era: the caches they come from, and their sizes.
//!
//! Sizes are those of x86_64. A row holds from a release until the next row of the object.

use crate::heap::Named;
use crate::kernel::era::Era;
use slablab_model::Addr;
use slablab_slabs::{CacheFlags, CacheSpec, Release};

/// A kind of kernel object with a cache of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Object {
    /// The head of a socket buffer.
    SkBuff = 0,
    /// An open file.
    File,
    /// A name in a folder; sockets and pipes have one.
    Dentry,
    /// A socket's inode.
    SocketInode,
    /// A UNIX socket.
    UnixSock,
    /// An inode of a pipe.
    PipeInode,
    /// A task.
    Task,
    /// The signals of a process.
    Signal,
    /// The signal handlers of a process.
    Sighand,
    /// The open files of a process.
    Files,
    /// The root and working folders of a process.
    Fs,
    /// An address space.
    Mm,
    /// A mapping.
    Vma,
    /// The anonymous pages of mappings.
    AnonVma,
    /// A link between a mapping and its anonymous pages; from 2.6.34.
    AnonVmaChain,
    /// A process number.
    Pid,
    /// The rights of a task; from 2.6.29.
    Cred,
    /// A path while a system call looks it up.
    Name,
    /// An inode of the file system: ext3, from 3.0 on ext4.
    FileInode,
    /// What security modules keep of an open file; from 5.1.
    FileSecurity,
    /// A node of the tree of mappings; from 6.1.
    MapleNode,
    /// A piece of block I/O.
    Bio,
    /// A request to a block device; until 4.20.
    Request,
    /// A command to a disk; until 4.20.
    ScsiCommand,
    /// The pieces of memory of such a command.
    ScatterList,
    /// A block of a page in the page cache.
    BufferHead,
    /// A node of the page cache's tree.
    TreeNode,
    /// A change of the file system that its journal holds together.
    JournalHandle,
    /// The head of a socket buffer with room for a clone.
    SkBuffClones,
    /// A small buffer of socket data; from 6.3.
    SmallHead,
    /// A TCP socket.
    TcpSock,
    /// An asynchronous read or write.
    Kiocb,
    /// A direct read or write of a file or device; from 2.6.33, before that from kmalloc.
    Dio,
    /// A kernel stack, where a page is larger than one.
    Stack,
    /// A table of ppc64's page tables that covers 512 GiB, on pages of 64 KiB.
    PageDirectory,
}

/// An allocated object.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Held {
    /// Where it is.
    pub address: Addr,
    /// Its cache, or [`Held::PAGES`] or [`Held::PASSED_ON`] for pages.
    pub(crate) cache: u16,
    /// The CPU that allocated it.
    pub(crate) cpu: u16,
    /// The allocation's number.
    pub(crate) born: u32,
}

impl Held {
    /// In place of a cache: the object is a block of pages.
    pub(crate) const PAGES: u16 = u16::MAX;
    /// In place of a cache: a block of pages that kmalloc was asked for.
    pub(crate) const PASSED_ON: u16 = u16::MAX - 1;

    /// Whether this is a block of pages, and no object of a cache.
    pub(crate) fn is_pages(&self) -> bool {
        matches!(self.cache, Held::PAGES | Held::PASSED_ON)
    }
}

/// The size of an object from a release on.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The object.
    pub object: Object,
    /// The cache's name.
    pub name: &'static str,
    /// Bytes, as the cache was asked for them.
    pub bytes: u32,
    /// Whether the cache aligns its objects to cache lines.
    pub aligned: bool,
    /// The first release.
    pub from: (u16, u16, u16),
    /// Where the size is from.
    pub source: &'static str,
}

const OLD: &str = "slabinfo of 2.6.29";
const DUMP_6_1: &str = "slabinfo of 6.1.176";
const DUMP_6_18: &str = "slabinfo of 6.18.44";
const DUMP: &str = "slabinfo of 6.1.176 and 6.18.44";
const DUMP_PPC64: &str = "slabinfo of 6.1.176 on ppc64le with pages of 64 KiB";
const ASSUMED: &str = "assumed";

/// In place of bytes: from this release on there is no such object.
const GONE: u32 = 0;

/// A row of the table below.
const fn row(
    object: Object,
    name: &'static str,
    bytes: u32,
    aligned: bool,
    from: (u16, u16, u16),
    source: &'static str,
) -> Row {
    Row { object, name, bytes, aligned, from, source }
}

/// All rows: by object, then by release.
pub const ROWS: &[Row] = &[
    row(Object::SkBuff, "skbuff_head_cache", 160, true, (2, 4, 0), ASSUMED),
    row(Object::SkBuff, "skbuff_head_cache", 232, true, (2, 6, 20), DUMP),
    row(Object::File, "filp", 192, true, (2, 4, 0), OLD),
    row(Object::File, "filp", 256, true, (2, 6, 36), DUMP_6_1),
    row(Object::File, "filp", 184, true, (6, 13, 0), DUMP_6_18),
    row(Object::Dentry, "dentry", 208, false, (2, 4, 0), OLD),
    row(Object::Dentry, "dentry", 192, false, (2, 6, 38), DUMP),
    row(Object::SocketInode, "sock_inode_cache", 640, true, (2, 4, 0), ASSUMED),
    row(Object::SocketInode, "sock_inode_cache", 832, true, (3, 0, 0), DUMP),
    row(Object::UnixSock, "UNIX", 704, true, (2, 4, 0), ASSUMED),
    row(Object::UnixSock, "UNIX", 1_088, true, (3, 0, 0), ASSUMED),
    row(Object::PipeInode, "inode_cache", 480, false, (2, 4, 0), ASSUMED),
    row(Object::PipeInode, "inode_cache", 592, false, (2, 6, 0), ASSUMED),
    row(Object::PipeInode, "inode_cache", 640, false, (3, 0, 0), DUMP_6_1),
    row(Object::PipeInode, "inode_cache", 624, false, (6, 6, 0), DUMP_6_18),
    row(Object::Task, "task_struct", 5_000, true, (2, 4, 0), ASSUMED),
    row(Object::Task, "task_struct", 7_000, true, (3, 0, 0), ASSUMED),
    row(Object::Task, "task_struct", 8_448, true, (6, 1, 0), DUMP_6_1),
    row(Object::Task, "task_struct", 5_888, true, (6, 16, 0), DUMP_6_18),
    row(Object::Signal, "signal_cache", 896, true, (2, 4, 0), ASSUMED),
    row(Object::Signal, "signal_cache", 1_152, true, (3, 0, 0), DUMP),
    row(Object::Sighand, "sighand_cache", 2_112, true, (2, 4, 0), DUMP),
    row(Object::Files, "files_cache", 704, true, (2, 4, 0), DUMP),
    row(Object::Fs, "fs_cache", 56, true, (2, 4, 0), ASSUMED),
    row(Object::Mm, "mm_struct", 832, true, (2, 4, 0), ASSUMED),
    row(Object::Mm, "mm_struct", 1_152, true, (3, 0, 0), DUMP_6_1),
    row(Object::Mm, "mm_struct", 1_600, true, (6, 12, 0), DUMP_6_18),
    row(Object::Vma, "vm_area_struct", 168, false, (2, 4, 0), OLD),
    row(Object::Vma, "vm_area_struct", 200, false, (2, 6, 34), ASSUMED),
    row(Object::Vma, "vm_area_struct", 152, false, (6, 1, 0), DUMP_6_1),
    row(Object::Vma, "vm_area_struct", 192, true, (6, 13, 0), DUMP_6_18),
    row(Object::AnonVma, "anon_vma", 32, false, (2, 4, 0), ASSUMED),
    row(Object::AnonVma, "anon_vma", 104, false, (3, 0, 0), DUMP),
    row(Object::AnonVmaChain, "anon_vma_chain", 64, false, (2, 6, 34), DUMP),
    row(Object::Pid, "pid", 128, true, (2, 4, 0), DUMP_6_1),
    row(Object::Pid, "pid", 192, true, (6, 9, 0), DUMP_6_18),
    row(Object::Cred, "cred_jar", 128, true, (2, 6, 29), ASSUMED),
    row(Object::Cred, "cred_jar", 192, true, (3, 0, 0), DUMP_6_1),
    row(Object::Name, "names_cache", 4_096, true, (2, 4, 0), OLD),
    row(Object::FileInode, "ext3_inode_cache", 760, false, (2, 4, 0), ASSUMED),
    row(Object::FileInode, "ext4_inode_cache", 1_128, false, (3, 0, 0), DUMP_6_18),
    row(Object::JournalHandle, "journal_handle", 24, false, (2, 4, 0), OLD),
    row(Object::JournalHandle, "jbd2_journal_handle", 48, false, (3, 0, 0), ASSUMED),
    row(Object::BufferHead, "buffer_head", 96, false, (2, 4, 0), ASSUMED),
    row(Object::BufferHead, "buffer_head", 104, false, (2, 6, 0), OLD),
    row(Object::FileSecurity, "lsm_file_cache", 24, false, (5, 1, 0), DUMP),
    row(Object::MapleNode, "maple_node", 256, true, (6, 1, 0), DUMP),
    row(Object::Bio, "bio", 128, true, (2, 4, 0), ASSUMED),
    row(Object::Bio, "bio-0", 192, true, (2, 6, 29), ASSUMED),
    row(Object::Bio, "bio-184", 184, true, (5, 0, 0), DUMP_6_18),
    row(Object::Request, "blkdev_requests", 304, false, (2, 4, 0), ASSUMED),
    row(Object::Request, "", GONE, false, (5, 0, 0), ASSUMED),
    row(Object::ScsiCommand, "scsi_cmd_cache", 320, true, (2, 4, 0), ASSUMED),
    row(Object::ScsiCommand, "", GONE, false, (5, 0, 0), ASSUMED),
    row(Object::ScatterList, "sgpool-8", 256, true, (2, 4, 0), ASSUMED),
    row(Object::ScatterList, "", GONE, false, (5, 0, 0), ASSUMED),
    row(Object::TreeNode, "radix_tree_node", 560, false, (2, 4, 0), ASSUMED),
    row(Object::TreeNode, "radix_tree_node", 584, false, (4, 20, 0), DUMP_6_18),
    row(Object::SkBuffClones, "skbuff_fclone_cache", 464, true, (2, 4, 0), ASSUMED),
    row(Object::SkBuffClones, "skbuff_fclone_cache", 512, true, (3, 0, 0), DUMP),
    row(Object::SmallHead, "skbuff_small_head", 704, true, (6, 3, 0), "slabinfo of 6.12"),
    row(Object::SmallHead, "skbuff_small_head", 576, true, (6, 18, 0), DUMP_6_18),
    row(Object::TcpSock, "TCP", 1_600, true, (2, 4, 0), ASSUMED),
    row(Object::TcpSock, "TCP", 2_432, true, (3, 0, 0), "slabinfo of 6.12"),
    row(Object::Kiocb, "kiocb", 240, true, (2, 4, 0), ASSUMED),
    row(Object::Kiocb, "aio_kiocb", 192, true, (4, 1, 0), ASSUMED),
    row(Object::Dio, "dio", 640, true, (2, 6, 33), ASSUMED),
    row(Object::Stack, "thread_stack", 16_384, false, (2, 4, 0), DUMP_PPC64),
    row(Object::PageDirectory, "pgtable-2^9", 4_096, false, (2, 4, 0), DUMP_PPC64),
];

impl Object {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Object; 35] = [
        Object::SkBuff,
        Object::File,
        Object::Dentry,
        Object::SocketInode,
        Object::UnixSock,
        Object::PipeInode,
        Object::Task,
        Object::Signal,
        Object::Sighand,
        Object::Files,
        Object::Fs,
        Object::Mm,
        Object::Vma,
        Object::AnonVma,
        Object::AnonVmaChain,
        Object::Pid,
        Object::Cred,
        Object::Name,
        Object::FileInode,
        Object::FileSecurity,
        Object::MapleNode,
        Object::Bio,
        Object::Request,
        Object::ScsiCommand,
        Object::ScatterList,
        Object::BufferHead,
        Object::TreeNode,
        Object::JournalHandle,
        Object::SkBuffClones,
        Object::SmallHead,
        Object::TcpSock,
        Object::Kiocb,
        Object::Dio,
        Object::Stack,
        Object::PageDirectory,
    ];

    /// The object's row of an era; none if the era has no such object.
    pub fn row(self, era: Era) -> Option<&'static Row> {
        let holds = |row: &&Row| {
            row.object == self && Release::new(row.from.0, row.from.1, row.from.2) <= era.release
        };
        ROWS.iter().rev().find(holds).filter(|row| row.bytes != GONE)
    }

    /// Objects that a sheaf of its cache holds at least, under a release or policy whose caches ask for
    /// sheaves; 0: the cache does not ask (docs/theory/sheaves.md 2).
    fn sheaf_capacity(self) -> u32 {
        match self {
            Object::Vma | Object::MapleNode => 32,
            _ => 0,
        }
    }

    /// Whether reclaim can have its pages back: their migrate type is reclaimable then (from memory; buffer
    /// heads and tree nodes since 2.6.26, earlier by the flags of each request).
    const fn is_reclaimable(self) -> bool {
        use Object::{BufferHead, Dentry, FileInode, PipeInode, SocketInode, TreeNode};
        matches!(self, Dentry | FileInode | PipeInode | SocketInode | BufferHead | TreeNode)
    }

    /// Whether a kernel with pages of `1 << page_shift` bytes has such objects.
    const fn is_on(self, page_shift: u32) -> bool {
        page_shift == 16 || !matches!(self, Object::Stack | Object::PageDirectory)
    }

    /// The alignment that its cache asks for beside that of its flags; 0 for none.
    const fn align(self) -> u32 {
        match self {
            Object::Stack => 16_384,
            Object::PageDirectory => 4_096,
            _ => 0,
        }
    }

    /// The flags of its cache.
    fn flags(self, era: Era, row: &Row) -> CacheFlags {
        let is_looked_up_by_readers = self == Object::Vma && era.since(6, 15, 0);
        CacheFlags::NONE
            .with(CacheFlags::HWCACHE_ALIGN, row.aligned)
            .with(CacheFlags::RECLAIM_ACCOUNT, self.is_reclaimable())
            .with(CacheFlags::TYPESAFE_BY_RCU, is_looked_up_by_readers)
            .with(CacheFlags::CONSTRUCTOR, self == Object::PageDirectory)
    }
}

/// The caches of an era's objects on pages of `1 << page_shift` bytes: each object's number, and the caches
/// in order of their numbers.
pub fn caches(era: Era, page_shift: u32) -> (Vec<Option<u16>>, Vec<Named>) {
    let mut named: Vec<Named> = Vec::new();
    let number = |object: Object| {
        let row = object.row(era).filter(|_| object.is_on(page_shift))?;
        let (flags, sheaf_capacity) = (object.flags(era, row), object.sheaf_capacity());
        let align = object.align();
        let spec = CacheSpec { align, flags, sheaf_capacity, ..CacheSpec::of_size(row.bytes) };
        named.push(Named { name: row.name.into(), spec });
        Some(named.len() as u16 - 1)
    };
    (Object::ALL.into_iter().map(number).collect(), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_a_row_and_rows_ascend() {
        let era = Era { release: Release::new(6, 18, 0) };
        for (number, object) in Object::ALL.into_iter().enumerate() {
            assert_eq!(object as usize, number);
            let rows: Vec<_> = ROWS.iter().filter(|row| row.object == object).map(|row| row.from).collect();
            assert!(!rows.is_empty() && rows.is_sorted(), "{object:?}: {rows:?}");
        }
        assert!(Object::Request.row(era).is_none() && Object::Bio.row(era).is_some());
        assert!(Object::AnonVmaChain.row(Era { release: Release::new(2, 6, 29) }).is_none());
        assert!(Object::MapleNode.row(Era { release: Release::new(6, 0, 0) }).is_none());
    }

    /// Inodes, dentries, buffer heads and nodes of the page cache are freed on demand, and nothing else.
    #[test]
    fn caches_that_reclaim_can_shrink_say_so() {
        for release in [Release::new(2, 6, 29), Release::new(6, 1, 0), Release::new(6, 18, 0)] {
            let (_, caches) = caches(Era { release }, 12);
            let shrinks = |cache: &&Named| cache.spec.flags.has(CacheFlags::RECLAIM_ACCOUNT);
            let names: Vec<&str> = caches.iter().filter(shrinks).map(|cache| &*cache.name).collect();
            let file =
                if release == Release::new(2, 6, 29) { "ext3_inode_cache" } else { "ext4_inode_cache" };
            let expected =
                ["dentry", "sock_inode_cache", "inode_cache", file, "buffer_head", "radix_tree_node"];
            assert_eq!(names, expected, "{release:?}");
        }
    }
}
