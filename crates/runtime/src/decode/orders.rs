//! Memory orders of records.

use selvedge_model::{LoadOrder, StoreOrder, UpdateOrder};

use crate::wire::{ORDER, order};

pub(super) fn load_order(flags: u8) -> LoadOrder {
    match flags & ORDER {
        order::ACQUIRE | order::CONSUME | order::ACQ_REL => LoadOrder::Acquire,
        order::SEQ_CST => LoadOrder::SeqCst,
        _ => LoadOrder::Relaxed,
    }
}

pub(super) fn store_order(flags: u8) -> StoreOrder {
    match flags & ORDER {
        order::RELEASE | order::ACQ_REL => StoreOrder::Release,
        order::SEQ_CST => StoreOrder::SeqCst,
        _ => StoreOrder::Relaxed,
    }
}

pub(super) fn update_order(flags: u8) -> UpdateOrder {
    match flags & ORDER {
        order::ACQUIRE | order::CONSUME => UpdateOrder::Acquire,
        order::RELEASE => UpdateOrder::Release,
        order::ACQ_REL => UpdateOrder::AcqRel,
        order::SEQ_CST => UpdateOrder::SeqCst,
        _ => UpdateOrder::Relaxed,
    }
}
