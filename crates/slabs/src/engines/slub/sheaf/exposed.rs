//! Where a viewer in another process finds what sheaves and barns hold. Nothing is read here: addresses of
//! fields are compared.

use super::{BarnLock, Stock};
use crate::engine::{Exposed, address};
use crate::engines::slub::{CpuState, Slub};
use slablab_platform::{Pfn, Platform};

impl<P: Platform> Slub<P> {
    pub(in crate::engines::slub) fn exposed_places(&self) -> Exposed {
        let mut exposed =
            Exposed { geometry: address(&self.geometry), slots: address(&self.slots), ..Exposed::default() };
        if self.sheaf_capacity == 0 {
            return exposed;
        }
        exposed.sheaf_capacity = address(&self.sheaf_capacity);
        // A spare sheaf that only says where its fields are.
        let mut state = CpuState::<P>::default();
        let spare = state.sheaves.spare.get_mut().insert(Stock { sheaf: P::address(Pfn(0), 0), size: 0 });
        let (sheaf, size) = (address(&spare.sheaf), address(&spare.size));
        (exposed.spare, exposed.spare_size) = (sheaf - address(&state), size - address(&state));
        let barn = BarnLock::<P>::default();
        exposed.barns = address(&self.barns);
        exposed.full_sheaves = barn.full_at() - address(&barn);
        exposed
    }
}
