// A cache of the values used last behind a Mutex, and a log behind a RwLock. With an argument, the length of the log
// is read without the lock.
use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

struct Log(RwLock<()>, UnsafeCell<Vec<u32>>);
// SAFETY: the lock protects the list, unless the program is asked to race.
unsafe impl Sync for Log {}

#[derive(Default)]
struct Cache {
    values: HashMap<u32, String>,
    order: VecDeque<u32>,
    hits: u64,
}

impl Cache {
    fn get(&mut self, key: u32) -> Option<String> {
        let value = self.values.get(&key).cloned();
        if value.is_some() {
            self.hits += 1;
            self.order.retain(|&other| other != key);
            self.order.push_back(key);
        }
        value
    }

    fn put(&mut self, key: u32, value: String) {
        if self.values.len() >= 2
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        self.order.push_back(key);
        self.values.insert(key, value);
    }
}

fn main() {
    let racy = std::env::args().len() > 1;
    let cache = Arc::new(Mutex::new(Cache::default()));
    let log = Arc::new(Log(RwLock::new(()), UnsafeCell::new(Vec::with_capacity(64))));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (cache, log) = (Arc::clone(&cache), Arc::clone(&log));
            thread::spawn(move || {
                for i in 0..2 {
                    let key = (thread + i) % 3;
                    let known = cache.lock().unwrap().get(key);
                    if known.is_none() {
                        cache.lock().unwrap().put(key, format!("value {key}"));
                    }
                    {
                        let _writes = log.0.write().unwrap();
                        // SAFETY: no other thread has the lock.
                        unsafe { (*log.1.get()).push(key) };
                    }
                    let _reads = (!racy).then(|| log.0.read().unwrap());
                    // SAFETY: no thread writes while the lock is held for reading.
                    assert!(unsafe { (*log.1.get()).len() } <= 6);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
