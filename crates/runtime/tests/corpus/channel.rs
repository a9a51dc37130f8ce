use std::sync::mpsc;
use std::thread;
struct Raw(*mut u64);
unsafe impl Send for Raw {}
fn main() {
    let (send, receive) = mpsc::channel::<Box<u64>>();
    let (bounded, bounded_receive) = mpsc::sync_channel::<Raw>(0);
    let consumer = thread::spawn(move || {
        let mut sum = 0;
        for mut item in receive {
            *item += 1;
            sum += *item;
        }
        for raw in bounded_receive {
            unsafe { *raw.0 += 1 }; // race(raw)
        }
        sum
    });
    for i in 0..1000 {
        send.send(Box::new(i)).unwrap();
    }
    drop(send);
    let place = Box::into_raw(Box::new(0u64));
    for _ in 0..20 {
        bounded.send(Raw(place)).unwrap();
    }
    #[cfg(not(fixed))]
    unsafe {
        *place += 1; // race(raw)
    }
    drop(bounded);
    println!("{} {}", consumer.join().unwrap(), unsafe { *place } > 0);
}
