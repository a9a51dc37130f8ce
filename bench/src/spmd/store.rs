//! The interval store: insertions and searches, beside the crate `iset` in the same run.
//!
//! The orders are those of figure 8.4 of the thesis: sequential, reverse, strided, random, and that of MG's accesses.
//! Each is measured twice with our store. With *one place* all accesses are of one statement, and neighbouring ranges
//! become one fragment: that is what a loop over an array gives. With *places apart* no two neighbours are alike, so
//! that the store has as many entries as `iset`, which joins nothing.

use std::hint::black_box;
use std::time::Duration;

use iset::IntervalMap;
use selvedge_spmd_rank::rules::Bytes;
use selvedge_spmd_rank::store::Store;

use crate::measure::processor_seconds;

const SIZES: [usize; 2] = [20_000, 1_000_000];
const ROUNDS: usize = 5;

/// What is inserted, in that order.
struct Order {
    name: &'static str,
    /// The insertion and the search that the thesis measured for 20,000 ranges, in microseconds.
    thesis: Option<(f64, f64)>,
    ranges: fn(usize) -> Vec<Bytes>,
}

const ORDERS: [Order; 5] = [
    Order { name: "sequential", thesis: Some((114.0, 2.4)), ranges: sequential },
    Order { name: "reverse", thesis: None, ranges: |n| sequential(n).into_iter().rev().collect() },
    Order { name: "strided", thesis: None, ranges: strided },
    Order { name: "random", thesis: Some((12.0, 1.3)), ranges: random },
    Order { name: "MG", thesis: Some((45.0, 0.54)), ranges: multigrid },
];

const LEN: u64 = 8;

fn range(i: u64) -> Bytes {
    Bytes { start: LEN * i, len: LEN }
}

fn sequential(n: usize) -> Vec<Bytes> {
    (0..n as u64).map(range).collect()
}

/// The columns of a matrix that is stored by rows, as a transposition reads it.
fn strided(n: usize) -> Vec<Bytes> {
    let width = (n as f64).sqrt() as u64;
    let rows = n as u64 / width + 1;
    (0..width).flat_map(|x| (0..rows).map(move |y| range(y * width + x))).take(n).collect()
}

/// Numbers that look random: a generator of xorshift.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(88_172_645_463_325_252u64), |&x| {
        let x = x ^ (x << 13);
        let x = x ^ (x >> 7);
        Some(x ^ (x << 17))
    })
}

/// Elements of a table four times as large.
fn random(n: usize) -> Vec<Bytes> {
    numbers().map(|x| range((x >> 11) % (4 * n as u64))).take(n).collect()
}

/// The loads and stores of V-cycles over a grid, from the finest level to the coarsest: the loops of the kernel `mg`.
fn multigrid(n: usize) -> Vec<Bytes> {
    let cells = n as u64 / 16;
    let mut all = Vec::with_capacity(n);
    loop {
        for step in [1, 2, 4] {
            for i in (step..=cells).step_by(step as usize) {
                let after = if i + step <= cells { i + step } else { cells + 1 };
                for at in [i - step, i, after, i] {
                    if all.len() == n {
                        return all;
                    }
                    all.push(range(at));
                }
            }
        }
    }
}

/// Times of one alternative: the best of some rounds.
#[derive(Clone, Copy)]
struct Took {
    insert: Duration,
    search: Duration,
    entries: usize,
}

fn best(runs: &[Took]) -> Took {
    let least = |of: fn(&Took) -> Duration| runs.iter().map(of).min().unwrap_or_default();
    let entries = runs.first().map_or(0, |t| t.entries);
    Took { insert: least(|t| t.insert), search: least(|t| t.search), entries }
}

/// The processor time since then.
fn since(begun: f64) -> Duration {
    Duration::from_secs_f64(processor_seconds() - begun)
}

fn ours(ranges: &[Bytes], asked: &[Bytes], places: u32) -> Took {
    let begun = processor_seconds();
    let mut store = Store::default();
    for &bytes in ranges {
        // The address decides, so that neighbours are alike always or never.
        let id = (bytes.start / LEN) as u32 % places;
        black_box(store.insert(bytes, id, |_, _| false));
    }
    let insert = since(begun);
    let begun = processor_seconds();
    let found: usize = asked.iter().map(|&bytes| store.touching(bytes).count()).sum();
    black_box(found);
    Took { insert, search: since(begun), entries: store.len() }
}

fn theirs(ranges: &[Bytes], asked: &[Bytes]) -> Took {
    let begun = processor_seconds();
    let mut map = IntervalMap::new();
    for &bytes in ranges {
        black_box(map.insert(bytes.start..bytes.end(), 0u32));
    }
    let insert = since(begun);
    let begun = processor_seconds();
    let found: usize = asked.iter().map(|b| map.iter(b.start..b.end()).count()).sum();
    black_box(found);
    Took { insert, search: since(begun), entries: map.len() }
}

/// `spmd --store`.
pub(super) fn measure() -> Result<(), String> {
    println!(
        "nanoseconds of processor time for each insertion and search, the best of {ROUNDS} rounds in turn; in brackets the ratio to iset"
    );
    println!(
        "{:>9} {:<11} {:>8} {:>8} {:>17} {:>17} {:>17} {:>17}  {:>15}",
        "ranges", "order", "iset", "", "one place", "", "places apart", "", "(thesis, µs)"
    );
    println!(
        "{:>9} {:<11} {:>8} {:>8} {:>17} {:>17} {:>17} {:>17}",
        "", "", "insert", "search", "insert", "search", "insert", "search"
    );
    for n in SIZES {
        for order in &ORDERS {
            print(n, order);
        }
    }
    Ok(())
}

fn print(n: usize, order: &Order) {
    let ranges = (order.ranges)(n);
    let most = ranges.iter().map(|bytes| bytes.end()).max().unwrap_or(LEN);
    let asked: Vec<Bytes> = numbers().map(|x| range((x >> 11) % (most / LEN))).take(n).collect();
    let mut runs: [Vec<Took>; 3] = Default::default();
    for _ in 0..ROUNDS {
        runs[0].push(theirs(&ranges, &asked));
        runs[1].push(ours(&ranges, &asked, 1));
        runs[2].push(ours(&ranges, &asked, 2));
    }
    let [iset, one, apart] = runs.each_ref().map(|runs| best(runs));
    let each = |took: Duration| took.as_secs_f64() * 1e9 / n as f64;
    let beside = |took: Duration, other: Duration| {
        format!("{:.0} ({:.2})", each(took), took.as_secs_f64() / other.as_secs_f64())
    };
    let thesis = order.thesis.filter(|_| n == SIZES[0]);
    let thesis = thesis.map_or(String::new(), |(i, s)| format!("({i}, {s})"));
    println!(
        "{n:>9} {:<11} {:>8.0} {:>8.0} {:>17} {:>17} {:>17} {:>17}  {thesis:>15}",
        order.name,
        each(iset.insert),
        each(iset.search),
        beside(one.insert, iset.insert),
        beside(one.search, iset.search),
        beside(apart.insert, iset.insert),
        beside(apart.search, iset.search),
    );
    println!(
        "{:>9} {:<11} {:>17} {:>35} {:>35}",
        "", "entries", iset.entries, one.entries, apart.entries
    );
}
