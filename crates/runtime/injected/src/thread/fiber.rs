//! Threads that are left and resumed, as fibers are.

use super::{Thread, with_slots};
use crate::arch::words;
use crate::layout;

impl Thread {
    /// Where its call stack begins.
    pub fn stack_base(&self) -> usize {
        layout::THREADS + self.index as usize * layout::THREAD_LEN
    }

    /// Makes this fiber the current thread, where it was left.
    pub fn resume(&mut self) {
        words::set_thread(core::ptr::from_mut(self) as usize);
        words::set_stack_top(self.saved_top);
        words::set_innermost(0);
        words::set_filter(self.epoch | 0xff);
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
