//! The edge to C: how functions are exported, and the pointers that C passes as types, each with what C says
//! of it. `unsafe`: here what C says becomes what Rust asks for.

use libc::{ENOMEM, c_char, c_int, c_void, size_t};
use slablab_malloc::{self as malloc, api};
use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

/// Defines functions under names that C programs call.
///
/// SAFETY of `no_mangle`: each name is one that C, C++'s ABI, POSIX or glibc gives to a function with these
/// arguments and this result. The library is there to define it in the C library's place, and no crate in it
/// defines the name twice.
macro_rules! exports {
    ($abi:literal: $($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?
        $body:block)*) => {
        $($(#[$meta])*
        #[expect(unsafe_code, reason = "C's name")]
        #[unsafe(no_mangle)]
        pub(crate) extern $abi fn $name($($argument: $type),*) $(-> $result)? $body)*
    };
}

// SAFETY: glibc's signature, a reference in place of the pointer: this thread's word, for as long as the
// thread runs. A `Cell` stays in its thread.
unsafe extern "C" {
    safe fn __errno_location() -> &'static Cell<c_int>;
}

pub(crate) fn set_errno(error: c_int) {
    __errno_location().set(error);
}

/// More than this is refused, as everywhere: differences of addresses are signed.
pub(crate) const MOST: usize = isize::MAX as usize;

/// What `at` says, and `ENOMEM` if it is null.
pub(crate) fn or_enomem(at: *mut u8) -> *mut c_void {
    if at.is_null() {
        set_errno(ENOMEM);
    }
    at.cast()
}

/// An address that the program hands over.
///
/// Invariant: only C and C++ make one, as an argument of a function here. Their standards say that it is null
/// or was allocated, and that the program does not use the memory any more, nor while `realloc` runs. Any
/// address is looked up and checked; it is this use of the memory that no check can find.
#[repr(transparent)]
pub(crate) struct Given(*mut c_void);

impl Given {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.cast_const().cast()
    }

    /// The address, given up to the allocator.
    #[inline(always)]
    pub(crate) fn give_up(self) -> malloc::Given {
        // SAFETY: the invariant of `Given`.
        unsafe { malloc::Given::new(self.0.cast()) }
    }

    #[inline(always)]
    pub(crate) fn free(self) {
        api::free(self.give_up());
    }

    /// `align` counts as 1 where it is no power of two.
    #[inline(always)]
    pub(crate) fn free_sized(self, bytes: Option<size_t>, align: size_t) {
        let align = if align.is_power_of_two() { align } else { 1 };
        api::free_sized_any(self.give_up(), bytes, align);
    }

    pub(crate) fn realloc(self, bytes: size_t) -> *mut u8 {
        api::realloc(self.give_up(), bytes, 1)
    }
}

/// Where the program wants a result.
///
/// Invariant: only C makes one, as an argument of a function here, which says that it can be written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) fn put(self, value: T) {
        // SAFETY: the invariant of `Out`.
        unsafe { self.0.write(value) }
    }
}

/// A stream of the program's.
///
/// Invariant: only C makes one, as an argument of a function here, which says that it is open.
#[repr(transparent)]
pub(crate) struct Stream(*mut libc::FILE);

impl Stream {
    /// Whether all of `text` was written.
    pub(crate) fn write(self, text: &[u8]) -> bool {
        // SAFETY: the invariant of `Stream`; `text` has so many bytes.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), self.0) == text.len() }
    }
}

/// A pointer to a `T` that a function here gave to C as a box, or null where a function says so.
///
/// Invariant: only C makes one, as an argument of a function here. A function returned the pointer, and the
/// program did not give the box back.
#[repr(transparent)]
pub(crate) struct Lent<T>(*mut T);

impl<T> Lent<T> {
    #[inline(always)]
    pub(crate) fn get<'a>(self) -> &'a T {
        // SAFETY: the invariant of `Lent`, of a function whose argument is not null.
        unsafe { &*self.0 }
    }

    pub(crate) fn any<'a>(self) -> Option<&'a T> {
        // SAFETY: the invariant of `Lent`.
        unsafe { self.0.as_ref() }
    }

    /// The box, of which the program says that no thread uses it; `None` for null.
    pub(crate) fn last(self) -> Option<Box<T>> {
        // SAFETY: the invariant of `Lent`: a function gave a box away.
        (!self.0.is_null()).then(|| unsafe { Box::from_raw(self.0) })
    }
}

/// A text of C's, or null.
///
/// Invariant: only C makes one, as an argument of a function here, or [`Text::NULL`]. It ends with 0.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub(crate) const NULL: Text = Text(ptr::null());

    pub(crate) fn get(&self) -> Option<&CStr> {
        // SAFETY: the invariant of `Text`; the text can be read during the call that it is an argument of.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// Addresses of objects, one after another.
///
/// Invariant: only C makes one, as an argument of a function here with a count: the places can be read and
/// written.
#[repr(transparent)]
pub(crate) struct Objects(*mut *mut c_void);

impl Objects {
    /// The places as ones to be written.
    pub(crate) fn room<'a>(self, count: size_t) -> &'a mut [MaybeUninit<*mut c_void>] {
        // SAFETY: the invariant of `Objects`; the places may hold anything.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), count) }
    }

    /// The addresses, of objects that the program gives up.
    pub(crate) fn give_up<'a>(self, count: size_t) -> &'a [malloc::Given] {
        // SAFETY: the invariant of `Objects`: there are `count` addresses, and a `malloc::Given` is the
        // address alone. The program gives each up, which is what `malloc::Given::new` asks for.
        unsafe { std::slice::from_raw_parts(self.0.cast::<malloc::Given>(), count) }
    }
}

/// A shrinker's function.
///
/// Invariant: only C makes one, as an argument of `kmem_register_shrinker`: any thread may call it, several
/// at once, with the argument that comes with it, until `kmem_unregister_shrinker` returned.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Ask(unsafe extern "C" fn(size_t, *mut c_void) -> size_t);

/// A shrinker's function and its argument. It lives no longer than its registration.
pub(crate) struct Asked(pub(crate) Ask, pub(crate) *mut c_void);

// SAFETY: the invariant of `Ask`: any thread may call the function with the argument.
unsafe impl Send for Asked {}
// SAFETY: the invariant of `Ask`: several threads may call the function at once.
unsafe impl Sync for Asked {}

impl Asked {
    pub(crate) fn call(&self, count: u64) -> u64 {
        // SAFETY: the invariant of `Ask`: `kmem_unregister_shrinker` drops the `Shrinker` that this is called
        // for before it returns.
        unsafe { (self.0.0)(count as size_t, self.1) as u64 }
    }
}

/// A new-handler of C++.
type Handler = Option<extern "C-unwind" fn()>;

/// A function of the program's C++ library.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with 0.
    let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

/// The program's new-handler.
pub(crate) fn new_handler() -> Handler {
    let get = symbol(c"_ZSt15get_new_handlerv")?;
    // SAFETY: the symbol is `std::new_handler std::get_new_handler() noexcept`.
    let get: extern "C" fn() -> Handler = unsafe { std::mem::transmute(get) };
    get()
}

/// Throws `std::bad_alloc` through the program's C++ library.
pub(crate) fn throw_bad_alloc() -> ! {
    if let Some(throw) = symbol(c"_ZSt17__throw_bad_allocv") {
        // SAFETY: the symbol is `void std::__throw_bad_alloc()`.
        let throw: extern "C-unwind" fn() -> ! = unsafe { std::mem::transmute(throw) };
        throw()
    }
    std::process::abort()
}
