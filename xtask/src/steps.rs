//! The steps, in the order in which they run.

/// A named group of commands.
pub(crate) struct Step {
    /// The name that `--only` takes.
    pub(crate) name: &'static str,
    /// The purpose of the step.
    pub(crate) about: &'static str,
    /// Whether `cargo xtask ci` without `--only` runs the step.
    pub(crate) in_ci: bool,
    /// The commands: environment, program and arguments, separated by spaces.
    pub(crate) commands: &'static [&'static str],
    /// The programs and targets that must be installed before the commands run.
    pub(crate) needs: &'static [Need],
}

/// A requirement of a step.
pub(crate) enum Need {
    /// A program. If it is missing and the user is root, apt-get installs it. If that fails, the commands
    /// report the missing program.
    Program {
        /// Names of the program. One of them must be on PATH.
        names: &'static [&'static str],
        /// An environment variable that can name another program.
        variable: &'static str,
        /// The Debian package.
        package: &'static str,
    },
    /// A program of crates.io. If it is missing, cargo builds it into `target/tools`. If that fails, the step
    /// does not run.
    Tool {
        /// The program and its package.
        name: &'static str,
        /// The version that is built.
        version: &'static str,
    },
    /// Rust's standard library for a target. If it is missing, rustup adds it. If that fails, the step does
    /// not run.
    Target(&'static str),
}

/// A C++ compiler. With it, CI never skips the tests of malloc's C++ functions.
const CXX: Need = Need::Program { names: &["c++"], variable: "CXX", package: "g++" };
/// A browser. With it, CI never skips the tests that open HTML pages.
const BROWSER: Need = Need::Program {
    names: &["chromium", "chromium-browser", "google-chrome"],
    variable: "SLABLAB_BROWSER",
    package: "chromium",
};

/// An emulator of a PC, which boots the kernel of examples/kernel.
const QEMU: Need =
    Need::Program { names: &["qemu-system-x86_64"], variable: "QEMU", package: "qemu-system-x86" };
/// A compiler of C for a browser, for the decoders of xz and zstd, and what collects its files.
const CLANG: Need =
    Need::Program { names: &["clang"], variable: "CC_wasm32_unknown_unknown", package: "clang" };
const LLVM_AR: Need =
    Need::Program { names: &["llvm-ar"], variable: "AR_wasm32_unknown_unknown", package: "llvm" };
/// Runs programs of aarch64.
const QEMU_USER: Need = Need::Program {
    names: &["qemu-aarch64-static"],
    variable: "SLABLAB_QEMU_AARCH64",
    package: "qemu-user-static",
};
const DENY: Need = Need::Tool { name: "cargo-deny", version: "0.20.2" };
const MDBOOK: Need = Need::Tool { name: "mdbook", version: "0.5.4" };
const CARGO_DEB: Need = Need::Tool { name: "cargo-deb", version: "3.8.0" };
const DEBOOTSTRAP: Need =
    Need::Program { names: &["debootstrap"], variable: "DEBOOTSTRAP", package: "debootstrap" };

/// Python with virtual environments, for the tests of the Python package. They need PyPI, too.
const PYTHON: Need =
    Need::Program { names: &["python3"], variable: "SLABLAB_PYTHON", package: "python3-venv" };

/// Every step.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "sources are formatted",
        in_ci: true,
        commands: &["cargo fmt --all --check"],
        needs: &[],
    },
    Step {
        name: "clippy",
        about: "no warning of the compiler or of clippy, of the small program either",
        in_ci: true,
        commands: &[
            "cargo clippy --workspace --all-targets --locked -- -D warnings",
            "cargo clippy -p slablab --no-default-features --locked -- -D warnings",
        ],
        needs: &[],
    },
    Step {
        name: "doc",
        about: "the documentation builds, and its links resolve",
        in_ci: true,
        commands: &["RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked --quiet"],
        needs: &[],
    },
    Step {
        name: "cross",
        about: "the libraries for programs compile for aarch64, with their assembler (needs that target of rustup)",
        in_ci: true,
        commands: &["cargo build --locked --quiet --target aarch64-unknown-linux-gnu -p slablab-objects"],
        needs: &[Need::Target("aarch64-unknown-linux-gnu")],
    },
    Step {
        name: "test",
        about: "all tests: the README's command",
        in_ci: true,
        commands: &["SLABLAB_BROWSER_REQUIRED=1 SLABLAB_CXX_REQUIRED=1 cargo test --workspace --locked"],
        needs: &[CXX, BROWSER],
    },
    Step {
        name: "kernel",
        about: "the example kernel boots in QEMU with 4 CPUs (needs the target x86_64-unknown-none of rustup)",
        in_ci: true,
        commands: &[
            "SLABLAB_QEMU_REQUIRED=1 cargo test --workspace --locked --test kernel",
            "cargo fmt --check --manifest-path examples/kernel/Cargo.toml",
            "cargo fmt --check --manifest-path examples/kernel/beside/Cargo.toml",
            "cargo check --release --locked --quiet --target x86_64-unknown-none --target-dir target/beside \
             --manifest-path examples/kernel/beside/Cargo.toml",
        ],
        needs: &[Need::Target("x86_64-unknown-none"), QEMU],
    },
    Step {
        name: "python",
        about: "the Python package: tests, types, notebooks (says so and is not run where PyPI cannot be reached)",
        in_ci: true,
        commands: &[".ci/python"],
        needs: &[PYTHON],
    },
    Step {
        name: "linux",
        about: "the allocator of Debian's Linux 6.1 builds and agrees with the preset (needs Debian's packages)",
        in_ci: true,
        commands: &["SLABLAB_LINUX_REQUIRED=1 .ci/linux"],
        needs: &[],
    },
    Step {
        name: "page",
        about: "slablab in a page gives the program's answers in a browser (needs the target wasm32-unknown-unknown)",
        in_ci: true,
        commands: &[
            "cargo xtask page",
            "cargo build --locked --workspace",
            "scripts/page.py target/page/slablab.html --program target/debug/slablab",
        ],
        needs: &[Need::Target("wasm32-unknown-unknown"), CLANG, LLVM_AR, BROWSER, PYTHON],
    },
    Step {
        name: "deny",
        about: "licences and sources of dependencies, when Cargo.lock changes (needs cargo-deny)",
        in_ci: false,
        commands: &["cargo deny --locked check --hide-inclusion-graph licenses bans sources"],
        needs: &[DENY],
    },
    Step {
        name: "book",
        about: "the documents as a book, and every link of it (needs mdbook)",
        in_ci: true,
        commands: &["cargo xtask book"],
        needs: &[MDBOOK],
    },
    Step {
        name: "deb",
        about: "the Debian packages of a debug build, installed into a clean root (not run without Debian's packages)",
        in_ci: true,
        commands: &["SLABLAB_DEB_PROFILE=dev .ci/deb"],
        needs: &[CARGO_DEB, DEBOOTSTRAP],
    },
    Step {
        name: "aarch64",
        about: "the small program for aarch64 answers as this machine's, by qemu-user (not run without PyPI)",
        in_ci: true,
        commands: &[
            "cargo build --locked --workspace",
            "SLABLAB_RELEASE_TARGETS=aarch64-unknown-linux-musl .ci/release --small target/debug/slablab",
        ],
        needs: &[PYTHON, QEMU_USER],
    },
    Step {
        name: "results",
        about: "the tables of docs/results that take less than a minute are what the program prints",
        in_ci: true,
        commands: &[
            "cargo build --locked --workspace",
            "cargo xtask results --check --program target/debug/slablab",
        ],
        needs: &[],
    },
    Step {
        name: "publish",
        about: "the packages for crates.io, without a build of each (needs crates.io, and no uncommitted change)",
        in_ci: false,
        commands: &["cargo publish --dry-run --workspace --no-verify"],
        needs: &[],
    },
    Step {
        name: "release",
        about: "what users install, built twice, each program run in an empty root (needs PyPI, rustup, qemu-user)",
        in_ci: false,
        commands: &["SLABLAB_RELEASE_REQUIRED=1 .ci/release --twice"],
        needs: &[PYTHON, QEMU_USER, CARGO_DEB],
    },
    Step {
        name: "advisories",
        about: "known defects of dependencies (needs cargo-deny, and git over the network)",
        in_ci: false,
        commands: &["cargo deny --locked check advisories"],
        needs: &[DENY],
    },
    Step {
        name: "msrv",
        about: "the workspace builds with the stated Rust version (needs rustup with that toolchain)",
        in_ci: false,
        commands: &["cargo +1.95.0 check --workspace --all-targets --locked"],
        needs: &[],
    },
    Step {
        name: "miri",
        about: "unit tests of code that needs no system call, in miri (needs a nightly toolchain with miri)",
        in_ci: false,
        commands: &["cargo +nightly miri test --locked -p slablab-objects -p xtask --lib --bins"],
        needs: &[],
    },
    Step {
        name: "long",
        about: "the tests that CI leaves out, and more random programs and schedules: an hour or more",
        in_ci: false,
        commands: &[".ci/long"],
        needs: &[CXX, BROWSER],
    },
];

/// The steps as text.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for step in STEPS {
        let when = if step.in_ci { "" } else { " (only by name)" };
        text += &format!("{:<12}{}{when}\n", step.name, step.about);
        for command in step.commands {
            text += &format!("            {command}\n");
        }
    }
    text
}
