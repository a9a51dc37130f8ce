// A list whose order depends on the schedule, compared by what the first argument says.
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;

use selvedge::same;

fn main() {
    let by = std::env::args().nth(1).unwrap_or_default();
    let list = Arc::new(Mutex::new(Vec::new()));
    selvedge::deterministic("fill", || {
        selvedge::assume("by", &by);
        let push = |n: i32| {
            let list = Arc::clone(&list);
            thread::spawn(move || list.lock().unwrap().push(n))
        };
        let threads = [1, 2].map(push);
        threads.into_iter().for_each(|t| t.join().unwrap());
        let list: Vec<i32> = list.lock().unwrap().clone();
        let factor = list.len() as i32;
        let sum = move |list: &Vec<i32>| list.iter().map(|n| n * factor).sum::<i32>();
        match &*by {
            "order" => selvedge::ensure("list", &list),
            "set" => selvedge::ensure("set", &list.into_iter().collect::<HashSet<i32>>()),
            "multiset" => selvedge::ensure_by("list", &list, same::multiset()),
            "sum" => selvedge::ensure_by("list", &list, same::by(move |a, b| sum(a) == sum(b))),
            "first" => selvedge::ensure_by("list", &list, same::on(|list: &Vec<i32>| list[0])),
            "nothing" => selvedge::ensure_by("list", &list, same::by(|_: &Vec<i32>, _| false)),
            _ => selvedge::ensure_by("list", &list, same::by(|_: &Vec<i32>, _| panic!("no"))),
        }
    });
}
