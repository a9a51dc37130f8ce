// The twin of pi.c: a point is two draws of one generator, and between them another thread may draw.
use std::sync::{Arc, Mutex};

const POINTS: u64 = 6;
const THREADS: u64 = 3;

fn draw(generator: &Mutex<u64>) -> f64 {
    let mut state = generator.lock().unwrap();
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as f64 / 2147483648.0
}

fn main() {
    let generator = Arc::new(Mutex::new(7));
    let mut inside = 0;
    selvedge::deterministic("pi", || {
        selvedge::assume("points", &POINTS);
        let sample = |_| {
            let generator = Arc::clone(&generator);
            std::thread::spawn(move || {
                let inside = |_: &u64| {
                    let (x, y) = (draw(&generator), draw(&generator));
                    x * x + y * y < 1.0
                };
                (0..POINTS / THREADS).filter(inside).count()
            })
        };
        let threads: Vec<_> = (0..THREADS).map(sample).collect();
        inside = threads.into_iter().map(|t| t.join().unwrap()).sum();
        selvedge::ensure("inside", &inside);
    });
    println!("pi {:.6}", 4.0 * inside as f64 / POINTS as f64);
}
