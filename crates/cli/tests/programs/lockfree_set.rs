//! Two threads remove one element. With the argument `wrong` the mark is stored, and both removes may succeed; otherwise it
//! is exchanged.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

static MARKED: AtomicU32 = AtomicU32::new(0);

fn remove(wrong: bool) -> bool {
    if MARKED.load(SeqCst) != 0 {
        return false;
    }
    if wrong {
        MARKED.store(1, SeqCst);
        return true;
    }
    MARKED.compare_exchange(0, 1, SeqCst, SeqCst).is_ok()
}

fn main() {
    let wrong = std::env::args().nth(1).is_some_and(|how| how == "wrong");
    let work = move || {
        let removed = selvedge::atomic("remove", || remove(wrong));
        selvedge::observe("removed", &removed);
    };
    let threads = [std::thread::spawn(work), std::thread::spawn(work)];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
