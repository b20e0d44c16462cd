//! Where the fields are that a snapshot reads, by the kernel's own types. What a release may lack is `None`.

use super::btf::{Btf, Field};

/// All of them.
pub(super) struct Layout {
    pub(super) cache: CacheLayout,
    pub(super) cpu: Option<CpuLayout>,
    pub(super) node: NodeLayout,
    pub(super) slab: SlabLayout,
    pub(super) sheaves: Option<SheafLayout>,
    pub(super) entry: EntryLayout,
}

/// `struct kmem_cache`.
pub(super) struct CacheLayout {
    pub(super) name: u64,
    pub(super) list: u64,
    pub(super) size: u64,
    pub(super) object_size: u64,
    /// Where the link of a free object is in it.
    pub(super) link: u64,
    /// The secret of its links, of kernels that harden them.
    pub(super) random: Option<u64>,
    /// Bytes in front of each object when it is debugged.
    pub(super) pad: Option<u64>,
    pub(super) cpu_slab: Option<u64>,
    pub(super) sheaves: Option<u64>,
    pub(super) nodes: NodesLayout,
    pub(super) bytes: u64,
}

/// What a cache has of each node: an array in it, of pointers to `struct kmem_cache_node`, or since 7.2 of
/// `struct kmem_cache_per_node_ptrs`.
pub(super) struct NodesLayout {
    pub(super) array: u64,
    /// Bytes of an element; where the pointers are in it.
    pub(super) step: u64,
    pub(super) node: u64,
    pub(super) barn: Option<u64>,
}

/// `struct kmem_cache_cpu`.
pub(super) struct CpuLayout {
    pub(super) freelist: u64,
    pub(super) tid: u64,
    pub(super) slab: u64,
    pub(super) partial: Option<u64>,
    pub(super) bytes: u64,
}

/// `struct kmem_cache_node`.
pub(super) struct NodeLayout {
    pub(super) partial: u64,
    pub(super) slabs: Option<u64>,
    pub(super) barn: Option<u64>,
}

/// `struct slab`, which is a `struct page`.
pub(super) struct SlabLayout {
    pub(super) cache: u64,
    pub(super) list: u64,
    /// The next one of a CPU's list, of kernels with such lists.
    pub(super) next: Option<u64>,
    pub(super) freelist: u64,
    pub(super) inuse: Field,
    pub(super) objects: Field,
    /// Where its type is, and which it is: of kernels that have types of pages.
    pub(super) kind: Option<(u64, u8)>,
    pub(super) bytes: u64,
}

/// `struct slub_percpu_sheaves`, `struct slab_sheaf`, `struct node_barn`.
pub(super) struct SheafLayout {
    pub(super) main: u64,
    pub(super) spare: u64,
    pub(super) rcu: Option<u64>,
    pub(super) size: u64,
    pub(super) objects: u64,
    pub(super) in_barn: u64,
    pub(super) full: u64,
}

/// The way from the running task to a cache: by a socket's protocol.
pub(super) struct EntryLayout {
    /// Fields of pointers, from the task on to the table of open files.
    pub(super) to_files: [u64; 3],
    /// From an open file on to its cache.
    pub(super) to_cache: [u64; 4],
    /// The word of a map of elements for each CPU that places them.
    pub(super) percpu: u64,
}

impl Layout {
    /// The fields of a kernel.
    ///
    /// # Errors
    /// The field that this kernel lacks, in a sentence.
    pub(super) fn of(btf: &Btf) -> Result<Layout, String> {
        let fields = Fields(btf);
        Ok(Layout {
            cache: fields.cache()?,
            cpu: btf.size("kmem_cache_cpu").map(|_| fields.cpu()).transpose()?,
            node: fields.node()?,
            slab: fields.slab()?,
            sheaves: btf.size("slub_percpu_sheaves").map(|_| fields.sheaves()).transpose()?,
            entry: fields.entry()?,
        })
    }
}

struct Fields<'a>(&'a Btf);

impl Fields<'_> {
    fn may(&self, of: &str, name: &str) -> Option<u64> {
        self.0.field(of, name).map(Field::byte)
    }

    fn field(&self, of: &str, name: &str) -> Result<Field, String> {
        let lacking = || format!("this kernel's struct {of} has no field `{name}`, which a snapshot needs");
        self.0.field(of, name).ok_or_else(lacking)
    }

    fn must(&self, of: &str, name: &str) -> Result<u64, String> {
        self.field(of, name).map(Field::byte)
    }

    fn bytes(&self, of: &str) -> Result<u64, String> {
        self.0.size(of).ok_or_else(|| format!("this kernel has no struct {of}, which a snapshot needs"))
    }

    fn cache(&self) -> Result<CacheLayout, String> {
        let must = |name| self.must("kmem_cache", name);
        let may = |name| self.may("kmem_cache", name);
        Ok(CacheLayout {
            name: must("name")?,
            list: must("list")?,
            size: must("size")?,
            object_size: must("object_size")?,
            link: must("offset")?,
            random: may("random"),
            pad: may("red_left_pad"),
            cpu_slab: may("cpu_slab"),
            sheaves: may("cpu_sheaves"),
            nodes: self.nodes()?,
            bytes: self.bytes("kmem_cache")?,
        })
    }

    fn nodes(&self) -> Result<NodesLayout, String> {
        const EACH: &str = "kmem_cache_per_node_ptrs";
        let Some(array) = self.may("kmem_cache", "per_node") else {
            return Ok(NodesLayout { array: self.must("kmem_cache", "node")?, step: 8, node: 0, barn: None });
        };
        let (step, node) = (self.bytes(EACH)?, self.must(EACH, "node")?);
        Ok(NodesLayout { array, step, node, barn: self.may(EACH, "barn") })
    }

    fn cpu(&self) -> Result<CpuLayout, String> {
        let must = |name| self.must("kmem_cache_cpu", name);
        Ok(CpuLayout {
            freelist: must("freelist")?,
            tid: must("tid")?,
            slab: must("slab")?,
            partial: self.may("kmem_cache_cpu", "partial"),
            bytes: self.bytes("kmem_cache_cpu")?,
        })
    }

    fn node(&self) -> Result<NodeLayout, String> {
        Ok(NodeLayout {
            partial: self.must("kmem_cache_node", "partial")?,
            slabs: self.may("kmem_cache_node", "nr_slabs"),
            barn: self.may("kmem_cache_node", "barn"),
        })
    }

    fn slab(&self) -> Result<SlabLayout, String> {
        let must = |name| self.must("slab", name);
        let kind = self.may("slab", "__page_type").zip(self.0.value("PGTY_slab"));
        Ok(SlabLayout {
            cache: must("slab_cache")?,
            list: must("slab_list")?,
            next: self.may("slab", "next"),
            freelist: must("freelist")?,
            inuse: self.field("slab", "inuse")?,
            objects: self.field("slab", "objects")?,
            // The type is the word's upper byte.
            kind: kind.map(|(at, kind)| (at + 3, kind as u8)),
            bytes: self.bytes("page")?,
        })
    }

    fn sheaves(&self) -> Result<SheafLayout, String> {
        Ok(SheafLayout {
            main: self.must("slub_percpu_sheaves", "main")?,
            spare: self.must("slub_percpu_sheaves", "spare")?,
            rcu: self.may("slub_percpu_sheaves", "rcu_free"),
            size: self.must("slab_sheaf", "size")?,
            objects: self.must("slab_sheaf", "objects")?,
            in_barn: self.must("slab_sheaf", "barn_list")?,
            full: self.must("node_barn", "sheaves_full")?,
        })
    }

    fn entry(&self) -> Result<EntryLayout, String> {
        let must = |of, name| self.must(of, name);
        Ok(EntryLayout {
            to_files: [must("task_struct", "files")?, must("files_struct", "fdt")?, must("fdtable", "fd")?],
            to_cache: [
                must("file", "private_data")?,
                must("socket", "sk")?,
                must("sock", "__sk_common")? + must("sock_common", "skc_prot")?,
                must("proto", "slab")?,
            ],
            percpu: must("bpf_array", "pptrs")?,
        })
    }
}
