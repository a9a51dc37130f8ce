//! The C library's `errno`, which the program must not see the runtime change.

use core::ffi::c_int;

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Keeps `errno` as it is while the runtime works: dropping it puts the old value back.
pub struct Errno(c_int);

impl Errno {
    /// What the program sees.
    pub fn get() -> c_int {
        // SAFETY: the pointer is valid, and no other thread uses this thread's `errno`.
        unsafe { __errno_location().read() }
    }

    /// Remembers the current value.
    pub fn keep() -> Errno {
        Errno(Errno::get())
    }

    /// Sets what the program sees.
    pub fn set(error: c_int) {
        // SAFETY: the pointer is valid, and no other thread uses this thread's `errno`.
        unsafe { __errno_location().write(error) };
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        Errno::set(self.0);
    }
}
