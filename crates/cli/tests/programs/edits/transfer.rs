// EDIT: above
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

static ORDER: AtomicU32 = AtomicU32::new(0);

// EDIT: function

fn note(who: u32) {
    ORDER.store(ORDER.load(SeqCst).wrapping_mul(4) + who, SeqCst);
}

fn main() {
    let (from, to) = (Arc::new(Mutex::new(100)), Arc::new(Mutex::new(0)));
    let (other_from, other_to) = (from.clone(), to.clone());
    let payer = std::thread::spawn(move || {
        for _ in 0..3 {
            *other_from.lock().unwrap() -= 1;
            note(1);
            *other_to.lock().unwrap() += 1;
            note(2);
        }
    });
    for _ in 0..3 {
        let sum = *from.lock().unwrap() + *to.lock().unwrap();
        note(u32::from(sum == 99));
    }
    payer.join().unwrap();
    println!("{:x}", ORDER.load(SeqCst));
}
