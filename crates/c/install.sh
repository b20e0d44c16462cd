#!/bin/sh
# Installs the library, its header and its pkg-config file: crates/c/install.sh [PREFIX], /usr/local if none is
# named. DESTDIR is put before it; BUILT says where the library was built, target/dist by default.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-/usr/local}
built=${BUILT:-$here/../../target/dist}
to=${DESTDIR:-}$prefix
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)
install -d "$to/lib/pkgconfig" "$to/include"
install -m 755 "$built/libslablab.so" "$to/lib/libslablab.so.$version"
ln -sf "libslablab.so.$version" "$to/lib/libslablab.so.0"
ln -sf libslablab.so.0 "$to/lib/libslablab.so"
if [ -e "$built/libslablab.a" ]; then
    install -m 644 "$built/libslablab.a" "$to/lib/libslablab.a"
fi
install -m 644 "$here/include/slablab.h" "$to/include/slablab.h"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/slablab.pc.in" > "$to/lib/pkgconfig/slablab.pc"
