//! Pageblocks: what compaction asks the page allocator.

use slablab_pages::MigrateType;
use slablab_vm::Block;

/// A migrate type as the room `vm` names it.
pub(super) fn block_of(ty: MigrateType) -> Block {
    match ty {
        MigrateType::Unmovable => Block::Unmovable,
        MigrateType::Reclaimable => Block::Reclaimable,
        MigrateType::Movable => Block::Movable,
        _ => Block::Reserved,
    }
}

/// A pageblock's type as the page allocator names it.
pub(super) fn type_of(block: Block) -> MigrateType {
    match block {
        Block::Unmovable => MigrateType::Unmovable,
        Block::Reclaimable => MigrateType::Reclaimable,
        Block::Movable => MigrateType::Movable,
        Block::Reserved => MigrateType::Reserve,
    }
}
