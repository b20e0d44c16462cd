//! Sheaves that grow with their use: no kernel has them, so what they do is said here.

use super::*;

fn case(steps: &'static [Step], expected: &'static [Expected]) {
    check(&Case {
        name: "elastic",
        machine: one_node,
        presets: &["slub@7.1,elastic=4"],
        spec: SMALL,
        steps,
        expected,
    });
}

/// 64 bytes of objects of 64 bytes for each address: a young sheaf is filled whole.
#[test]
fn a_young_sheaf_grows_when_it_is_empty() {
    // The first of 4 is empty, so the next holds 12, and gets what the first held.
    case(
        &[Alloc(0, 1)],
        &[Counted(SheafAlloc, 2), Counted(SheafFree, 1), Counted(SheafRefill, 4), Parked(3)],
    );
    case(
        &[Alloc(0, 5)],
        &[Counted(SheafAlloc, 3), Counted(SheafFree, 2), Counted(SheafRefill, 4 + 12), Parked(11)],
    );
    // For 4, 12, 28 and 60, which is the capacity: from there on as the kernel's, which fills another one.
    case(&[Alloc(0, 4 + 12 + 28 + 1)], &[Counted(SheafAlloc, 5), Counted(SheafRefill, 44 + 60), Parked(59)]);
}

#[test]
fn a_young_sheaf_grows_when_it_is_full() {
    // 16 were got and are given back: 12 fit, then it has room for 28.
    case(&[Alloc(0, 16), Mark, Free(0, 16)], &[Counted(SheafAlloc, 0), Counted(SheafFlush, 0), Parked(16)]);
    case(&[Alloc(0, 44), Mark, Free(0, 44)], &[Counted(SheafAlloc, 0), Counted(FreeSlowpath, 0), Parked(44)]);
}

/// What exchanges main and spare with every call is the kernel's; here the first exchange leaves room on both sides.
#[test]
fn no_exchange_with_every_call() {
    const BORDER: &[Step] =
        &[Alloc(0, 300), Free(0, 300), Alloc(0, 60), Mark, Free(0, 2), Alloc(0, 2), Free(0, 2), Alloc(0, 2)];
    case(
        BORDER,
        &[Counted(AllocFastpath, 4), Counted(FreeFastpath, 4), Counted(SheafFlush, 0), Counted(BarnPut, 0)],
    );
}

/// A young sheaf that is done with where its memory cannot be given back waits for who can: nobody may take it for a full-grown
/// one. A sheaf that was lent is the spare here, and takes the young one's place on a call without memory for sheaves.
#[test]
fn an_outgrown_sheaf_is_not_used_again() {
    const STEPS: &[Step] =
        &[Alloc(0, 1), Lend(0, 1), Return(0), AllocBare(0, 4), Alloc(0, 300), Free(0, 305), Alloc(0, 300)];
    case(STEPS, &[Live(300)]);
}
