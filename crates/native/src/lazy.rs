//! Values made when first asked for, per node and per CPU. `unsafe`: the values live in lumps.

use crate::area;
use crate::boot_memory;
use crate::system;
use crate::topology;
use slablab_platform::{CpuId, CpuShared, NodeId, PerNode};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::*};

/// A row of values, each made when first asked for.
#[derive(Debug)]
struct Row<T> {
    /// As many pointers as there can be values: null until made.
    places: NonNull<AtomicPtr<T>>,
    count: usize,
    values: PhantomData<T>,
}

// SAFETY: values are shared by reference and dropped by whoever owns the row.
unsafe impl<T: Send + Sync> Sync for Row<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Row<T> {}

impl<T: Default> Row<T> {
    fn new(count: usize) -> Self {
        let Some(places) = boot_memory::take(count * size_of::<AtomicPtr<T>>()) else { no_room() };
        Row { places: places.cast(), count, values: PhantomData }
    }

    #[inline]
    fn place(&self, index: u16) -> &AtomicPtr<T> {
        assert!((index as usize) < self.count, "value {index} of {}", self.count);
        // SAFETY: there are `count` of them, and zeros are null pointers.
        unsafe { self.places.add(index as usize).as_ref() }
    }

    #[inline]
    fn peek(&self, index: u16) -> Option<&T> {
        // Acquire: pairs with the exchange in `make`, after the value was written.
        // SAFETY: a pointer that is not null is to a value that lives as long as the row.
        NonNull::new(self.place(index).load(Acquire)).map(|value| unsafe { value.as_ref() })
    }

    #[inline]
    fn get(&self, index: u16) -> &T {
        self.peek(index).unwrap_or_else(|| self.make(index))
    }

    #[cold]
    fn make(&self, index: u16) -> &T {
        const { assert!(align_of::<T>() <= 64) };
        let Some(lump) = boot_memory::take(size_of::<T>()) else { no_room() };
        let value = lump.cast::<T>();
        // SAFETY: the lump is ours, and large enough.
        unsafe { value.write(T::default()) };
        let published = self.place(index).compare_exchange(ptr::null_mut(), value.as_ptr(), AcqRel, Acquire);
        if published.is_err() {
            // Another thread was first. SAFETY: nobody saw ours.
            unsafe {
                value.drop_in_place();
                boot_memory::give(lump, size_of::<T>());
            }
        }
        self.peek(index).expect("somebody made it")
    }
}

impl<T> Drop for Row<T> {
    fn drop(&mut self) {
        for index in 0..self.count {
            // SAFETY: whoever drops the row is alone with it and its values.
            unsafe {
                if let Some(value) = NonNull::new(self.places.add(index).as_ref().load(Relaxed)) {
                    value.drop_in_place();
                    boot_memory::give(value.cast(), size_of::<T>());
                }
            }
        }
        // SAFETY: as above.
        unsafe { boot_memory::give(self.places.cast(), self.count * size_of::<AtomicPtr<T>>()) };
    }
}

/// The address space for the world's own values is used up: caches were made without end.
#[cold]
fn no_room() -> ! {
    system::die("slablab: no address space for another cache\n")
}

/// One value per node.
#[derive(Debug)]
pub struct Nodes<T>(Row<T>);

impl<T: Default> PerNode<T> for Nodes<T> {
    fn new() -> Self {
        Nodes(Row::new(topology::nodes() as usize))
    }
    #[inline]
    fn get(&self, node: NodeId) -> &T {
        self.0.get(node.0)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.0.peek(node.0)
    }
}

/// One value per slot.
#[derive(Debug)]
pub struct Cpus<T>(Row<T>);

impl<T: Default> CpuShared<T> for Cpus<T> {
    fn new() -> Self {
        Cpus(Row::new(area::room()))
    }
    #[inline]
    fn get(&self, cpu: CpuId) -> &T {
        self.0.get(cpu.0)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.0.peek(cpu.0)
    }
}
