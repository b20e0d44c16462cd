//! How much of a question is done. `unsafe`: the page's function has this type.

/// Says how much of a question is done; without a page, nobody listens.
pub(crate) fn progress(done: u64, all: u64) {
    #[cfg(target_family = "wasm")]
    page::progress(done as f64, all as f64);
    #[cfg(not(target_family = "wasm"))]
    let _ = (done, all);
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "a function of JavaScript")]
mod page {
    #[link(wasm_import_module = "page")]
    unsafe extern "C" {
        pub(super) safe fn progress(done: f64, all: f64);
    }
}
