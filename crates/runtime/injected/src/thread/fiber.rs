//! Threads that are left and resumed, as fibers are.

use super::{Thread, set_current, set_hot, set_innermost, set_stack_top, with_slots};
use crate::layout;

impl Thread {
    /// Where its call stack begins.
    pub fn stack_base(&self) -> usize {
        layout::THREADS + self.index as usize * layout::THREAD_LEN
    }

    /// Makes this fiber the current thread, where it was left.
    pub fn resume(&mut self) {
        set_current(self);
        set_stack_top(self.saved_top);
        set_innermost(0);
        set_hot(self.epoch | 0xff);
    }

    /// Gives back what others may have from now on.
    pub fn retire(&mut self) {
        let (slot, tick) = (self.slot as usize, self.tick);
        if !self.shares_slot {
            with_slots(|s| {
                s.list[slot].last = tick;
                s.list[slot].taken = false;
            });
        }
        self.fence_released.release();
        self.fence_acquired.release();
    }
}
