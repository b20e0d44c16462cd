"""A stand-in for drgn, for the test of scripts/vmcore.py: one kernel with two caches, one of them merged."""


class Object:
    def __init__(self, value):
        self.value = value

    def __int__(self):
        return self.value

    def string_(self):
        return self.value


class Cache:
    """struct kmem_cache of a kernel without sheaves."""

    def __init__(self, name, size, object_size, flags, usage, per_slab, order):
        self.name, self.size, self.object_size = Object(name), Object(size), Object(object_size)
        self.flags, self.align, self.usersize = Object(flags), Object(8), Object(0)
        self.min_partial, self.cpu_partial = Object(5), Object(120)
        self.usage, self.per_slab, self.order = usage, per_slab, order


class Program(dict):
    def constant(self, name):
        raise LookupError(name)


def get_default_prog():
    return Program(
        UTS_RELEASE=Object(b"6.1.0-50-amd64"), PAGE_SIZE=Object(4096), saved_command_line=Object(b"quiet nokaslr")
    )
