#!/usr/bin/env python3
"""Makes leaks of kernel objects, one kind after the other, and prints what `slablab doctor` says of each.

    cargo build -p slablab
    sudo scripts/leaks.py                                # every kind, as a table
    sudo scripts/leaks.py epoll timer --slablab target/debug/slablab
    sudo scripts/leaks.py --keep crates/doctor/testdata/leaks    # and keep the snapshots, cut to what is read

A process of its own opens the objects and keeps them. Snapshots (`slablab doctor --save`) are taken before and
after. The table has the verdict, the group of caches that comes first, who holds it, and the first action. A kind
that this machine refuses is told with the error, and has no row. Everything is closed again at the end.

A kept snapshot is small: of the files of sysfs it has the sizes of objects and whether the kernel counts the
cache as reclaimable, and cgroups and processes of other work are left out.
"""

import argparse
import ctypes
import io
import json
import lzma
import os
import resource
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBC = ctypes.CDLL(None, use_errno=True)
# What must not be closed or collected while the leak is measured.
HELD = []
# Folders that are removed at the end.
FOLDERS = []


def called(result):
    """The result of a call of C, or its error."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def tcp(count):
    server = socket.create_server(("127.0.0.1", 0), backlog=4096)
    HELD.append(server)
    for _ in range(count // 2):
        one = socket.create_connection(server.getsockname())
        HELD.extend([one, server.accept()[0]])


def closed(count):
    """Connections whose other side closed, and that the program did not notice."""
    server = socket.create_server(("127.0.0.1", 0), backlog=4096)
    HELD.append(server)
    for _ in range(count):
        HELD.append(socket.create_connection(server.getsockname()))
        server.accept()[0].close()


def udp(count):
    for number in range(count):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Only bound ones are counted by protocol. An address has a limited number of ports.
        one.bind((f"127.{os.getpid() % 250 + 1}.{number // 10_000}.1", 0))
        HELD.append(one)


def unix(count):
    for _ in range(count // 2):
        HELD.extend(socket.socketpair())


def unread(count):
    """Datagrams that nobody reads: as many in each pair as it takes."""
    left = count
    while left > 0:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.setblocking(False)
        HELD.extend([one, other])
        try:
            while left > 0:
                one.send(bytes(1500))
                left -= 1
        except BlockingIOError:
            pass


def netlink(count):
    HELD.extend(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for _ in range(count))


def packet(count):
    HELD.extend(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(count))


def pipe(count):
    for _ in range(count):
        HELD.append(os.pipe())


def eventfd(count):
    HELD.extend(os.eventfd(0) for _ in range(count))


def epoll(count):
    for _ in range(count):
        HELD.append(called(LIBC.epoll_create1(0)))


def timerfd(count):
    for _ in range(count):
        HELD.append(called(LIBC.timerfd_create(1, 0)))


def signalfd(count):
    none = (ctypes.c_uint64 * 16)()
    for _ in range(count):
        HELD.append(called(LIBC.signalfd(-1, none, 0)))


def on_disk(count):
    """Paths of new files in a folder that goes with the leak. Not of tmpfs: there the files take slabs themselves."""
    folder = tempfile.TemporaryDirectory(dir="/var/tmp")
    FOLDERS.append(folder)
    for number in range(count):
        path = f"{folder.name}/{number}"
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        yield path


def file(count):
    """Files on disk: their inodes and names have a shrinker, which frees none that is open."""
    for path in on_disk(count):
        HELD.append(os.open(path, os.O_RDWR))


def memfd(count):
    HELD.extend(os.memfd_create("leak") for _ in range(count))


def mapping(count):
    """Shared mappings of one page each. Two neighbours differ in what is allowed, so that they stay two."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    for number in range(count):
        at = LIBC.mmap(None, 4096, 1 + number % 2 * 2, 0x21, -1, 0)
        if at in (None, ctypes.c_void_p(-1).value):
            called(-1)


def tmpfs(count):
    """Empty files on tmpfs, which no process holds."""
    folder = tempfile.TemporaryDirectory(dir="/dev/shm")
    FOLDERS.append(folder)
    for number in range(count):
        os.close(os.open(f"{folder.name}/{number}", os.O_CREAT | os.O_RDWR))


def sysv(count):
    for _ in range(count):
        HELD.append(called(LIBC.shmget(0, 4096, 0o1600)))


def sysv_end():
    for segment in HELD:
        LIBC.shmctl(segment, 0, None)


def thread(count):
    import threading

    threading.stack_size(64 << 10)
    stop = threading.Event()
    for _ in range(count):
        threading.Thread(target=stop.wait, daemon=True).start()


def zombie(count):
    """Children that ended and that their parent does not wait for."""
    for _ in range(count):
        if os.fork() == 0:
            os._exit(0)


def timer(count):
    class Event(ctypes.Structure):
        # SIGEV_NONE: no signal, so that no limit of queued signals ends it early.
        _fields_ = [
            ("value", ctypes.c_uint64),
            ("signo", ctypes.c_int),
            ("notify", ctypes.c_int),
            ("pad", ctypes.c_char * 48),
        ]

    event, number = Event(0, 0, 1), ctypes.c_int()
    create = {"x86_64": 222, "aarch64": 107}[os.uname().machine]
    for _ in range(count):
        called(LIBC.syscall(create, 1, ctypes.byref(event), ctypes.byref(number)))


def inotify(count):
    instance = called(LIBC.inotify_init1(0))
    for path in on_disk(count):
        called(LIBC.inotify_add_watch(instance, path.encode(), 2))


def namespaces(flag, name, count):
    """Namespaces that no process is in: an open file of /proc keeps each."""
    for _ in range(count):
        called(LIBC.unshare(flag))
        HELD.append(os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY))


def netns(count):
    namespaces(0x40000000, "net", count)


def mntns(count):
    namespaces(0x00020000, "mnt", count)


def lookup(count):
    """Names that do not exist: nobody holds them."""
    for number in range(count):
        try:
            os.stat(f"/var/tmp/leak-{os.getpid()}-{number}")
        except FileNotFoundError:
            pass


def lock(count):
    """Locks of single bytes of one file, with room between them so that they stay apart."""
    import fcntl

    handle = tempfile.TemporaryFile()
    HELD.append(handle)
    # From the end: the kernel looks for the place from the start of a sorted list.
    for number in reversed(range(count)):
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, 2 * number)


def key(count):
    add = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    for number in range(count):
        # In the ring of the process (-2), which goes with it.
        called(LIBC.syscall(add, b"user", b"%d" % number, b"x", 1, -2))


def nothing():
    pass


# Name: what opens it, how many, descriptors of each, what ends it where the end of the process does not.
KINDS = {
    "tcp": (tcp, 60_000, 1, nothing),
    "closed": (closed, 20_000, 1, nothing),
    "udp": (udp, 40_000, 1, nothing),
    "unix": (unix, 40_000, 1, nothing),
    "unread": (unread, 12_000, 0, nothing),
    "netlink": (netlink, 30_000, 1, nothing),
    "packet": (packet, 15_000, 1, nothing),
    "pipe": (pipe, 30_000, 2, nothing),
    "eventfd": (eventfd, 60_000, 1, nothing),
    "epoll": (epoll, 45_000, 1, nothing),
    "timerfd": (timerfd, 60_000, 1, nothing),
    "signalfd": (signalfd, 60_000, 1, nothing),
    "file": (file, 40_000, 1, nothing),
    "memfd": (memfd, 40_000, 1, nothing),
    "mapping": (mapping, 60_000, 0, nothing),
    "tmpfs": (tmpfs, 40_000, 0, nothing),
    "sysv": (sysv, 20_000, 0, sysv_end),
    "thread": (thread, 2_000, 0, nothing),
    "zombie": (zombie, 4_000, 0, nothing),
    "timer": (timer, 40_000, 0, nothing),
    "inotify": (inotify, 60_000, 0, nothing),
    "netns": (netns, 150, 1, nothing),
    "mntns": (mntns, 1_500, 1, nothing),
    "lookup": (lookup, 800_000, 0, nothing),
    "lock": (lock, 60_000, 0, nothing),
    "key": (key, 40_000, 0, nothing),
}
# Descriptors that a process has beside those of the leak.
OWN_DESCRIPTORS = 200
# Limits that some kinds are above: raised for the time of the leak.
LIMITS = {
    "sysv": "/proc/sys/kernel/shmmni",
    "inotify": "/proc/sys/fs/inotify/max_user_watches",
    "key": "/proc/sys/kernel/keys/root_maxkeys",
}


def most_descriptors():
    """The most descriptors that a process of this user may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most


def hold(kind, count):
    """Opens the objects at a line of standard input, and ends at the next."""
    opens, _, _, ends = KINDS[kind]
    most = most_descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    try:
        opens(count)
        print("held", flush=True)
    except (OSError, KeyError, AttributeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    sys.stdin.readline()
    ends()
    # Sockets and the like go with the process. Closed first: to remove a folder takes descriptors.
    os.closerange(3, most)
    for folder in FOLDERS:
        folder.cleanup()
    os._exit(0)


class Doctor:
    """`slablab doctor`, with the folder of the snapshots."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def snapshot(self, kind, moment):
        path = self.folder / f"{kind}.{moment}.tar.xz"
        subprocess.run([self.program, "doctor", "--save", path], check=True, stdout=subprocess.DEVNULL)
        return path

    def answer(self, before, after):
        command = [self.program, "doctor", after, "--since", before, "--format", "json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


class Holders:
    """Processes that hold objects of a kind: as many as the limit of descriptors makes it take."""

    def __init__(self, kind):
        _, count, descriptors, _ = KINDS[kind]
        processes = 1 + count * descriptors // (most_descriptors() - OWN_DESCRIPTORS)
        command = [sys.executable, __file__, "--hold", kind, "--count", str(count // processes)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.processes = [subprocess.Popen(command, **pipes) for _ in range(processes)]

    def heard(self):
        """The next line of each."""
        return [process.stdout.readline().strip() for process in self.processes]

    def told(self):
        """Has each go on."""
        for process in self.processes:
            process.stdin.write("\n")
            process.stdin.flush()

    def ended(self):
        """Has each end, whatever it waits for."""
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def leak(kind, doctor, settle):
    """Two snapshots around the leak; or the error that this machine gives."""
    limit = Path(LIMITS[kind]) if kind in LIMITS else None
    was = limit.read_text() if limit else ""
    enough = KINDS[kind][1] * 3 // 2
    if limit and int(was) < enough:
        limit.write_text(str(enough))
    holders = Holders(kind)
    try:
        holders.heard()
        before = doctor.snapshot(kind, "before")
        holders.told()
        said = next((said for said in holders.heard() if said != "held"), "held")
        time.sleep(settle)
        after = doctor.snapshot(kind, "after") if said == "held" else None
    finally:
        holders.ended()
        if limit:
            limit.write_text(was)
    return before, after, said


def row(answer):
    """Verdict, group, who and first action of an answer."""
    groups = answer["growth"]["groups"]
    found = next((one["text"] for one in answer["findings"]), "")
    who = found.split("Who: ", 1)[1] if "Who: " in found else "-"
    must = [action for action in answer["actions"] if not action.get("optional")]
    group = ", ".join(groups[0]["names"]) if groups else "-"
    return [answer["verdict"]["kind"], group, who, must[0]["command"] if must else "-"]


# Files of sysfs that a kept snapshot has.
ATTRIBUTES = {"object_size", "slab_size", "objs_per_slab", "order", "reclaim_account"}
# Files of the machine that tell nothing of a leak.
LEFT_OUT = {f"proc/{name}" for name in "cmdline zoneinfo buddyinfo vmstat cpuinfo cgroups config.gz".split()}


def cut(path, into):
    """Writes a snapshot without what no leak needs, and without other work on this machine."""
    out = io.BytesIO()
    with tarfile.open(path) as full, tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as small:
        for member in full:
            name = member.name
            of_cache = name.startswith("sys/kernel/slab/") and name.count("/") == 4
            if name in LEFT_OUT or name.startswith(("sys/fs/cgroup", "boot/", "sys/devices/system/node/node")):
                continue
            if of_cache and name.rsplit("/", 1)[1] not in ATTRIBUTES:
                continue
            content = full.extractfile(member).read() if member.isfile() else b""
            if name == "slablab/holders":
                # The holder is one of Python, and so is nothing else that matters here.
                own = (b"python3", b"user ", b"ended", b"mounts ", b"tmpfs at /dev/shm")
                rows = [line.split(b"\t") for line in content.splitlines(True)]
                mine = [row for row in rows if row[4].startswith(own) or row[1].startswith(b"TCP ")]
                rows = [row[:3] + [b"/leaks" if row[3] else b""] + row[4:] for row in mine]
                content = b"".join(b"\t".join(row) for row in rows)
            member.size = len(content)
            small.addfile(member, io.BytesIO(content) if member.isfile() else None)
    into.write_bytes(lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--slablab", default=str(ROOT / "target/debug/slablab"), help="the program")
    parser.add_argument("--settle", type=float, default=2.0, help="seconds from the leak to the second snapshot")
    parser.add_argument("--keep", type=Path, help="a folder for the snapshots")
    parser.add_argument("--hold", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hold:
        hold(options.hold, options.count)
        return 0
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"unknown kind {unknown[0]}; expected {', '.join(KINDS)}")
    if os.geteuid() != 0:
        parser.error("run it as root: /proc/slabinfo and other users' /proc/PID are for root only")
    with tempfile.TemporaryDirectory() as folder:
        doctor = Doctor(options.slablab, Path(folder))
        for kind in options.kinds or KINDS:
            before, after, said = leak(kind, doctor, options.settle)
            if after is None:
                print(f"{kind}: this machine refuses it: {said}", flush=True)
                continue
            verdict, group, who, action = row(doctor.answer(before, after))
            print(f"{kind}: {verdict}")
            for head, text in [("group", group), ("who", who), ("action", action)]:
                print(textwrap.indent(textwrap.fill(f"{head}: {text}", 108, subsequent_indent="  "), "  "), flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                for path in (before, after):
                    cut(path, options.keep / path.name)
            # What the kernel frees late (RCU, work queues) shall not be in the next snapshot.
            time.sleep(options.settle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
