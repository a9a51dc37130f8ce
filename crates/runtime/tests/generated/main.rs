//! Nothing is lost by fewer hooks: random C programs, in which the same threads always run in the same order, have races on the
//! same variables whether all hooks are there or those that tell nothing new are left out, and on all the variables on which
//! they have races with clang's hooks. Clang has no hooks for wide vectors, which it makes of small loops at any level.
//!
//! The test compares 100 random cases. `GENERATED=10000 cargo test -p selvedge-runtime --test generated` compares more.

#[path = "../common/mod.rs"]
mod common;
mod program;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Built, Compiler, observe_with, workspace};
use selvedge_model::{Event, Symbols};
use selvedge_runtime::{Form, Options};

/// Cases of one program.
const CASES: usize = 25;

/// How much clang optimises, in turn: hooks are decided about what comes out of that.
const LEVELS: [&str; 3] = ["-O2", "-O1", "-O3"];

/// Where a variable is: its name, its first byte and the first behind it.
struct Place {
    name: String,
    bytes: std::ops::Range<u64>,
}

fn places(text: &str) -> Vec<Place> {
    let place = |line: &str| {
        let [name, start, len] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not a place: {line}");
        };
        let [start, len] = [start, len].map(|n| u64::from_str_radix(n, 16).expect("a number"));
        Place { name: name.to_owned(), bytes: start..start + len }
    };
    text.lines().map(place).collect()
}

/// The variables that race, and how many there are.
fn racing(source: &Path, compiler: Compiler) -> Result<(BTreeSet<String>, usize), String> {
    let built = Built::new(source, compiler, false, &workspace("generated"))?;
    let list = built.program.with_extension("places");
    let mut command = Command::new(&built.program);
    command.arg(&list).stdout(Stdio::null());
    let nothing = &mut |_: &Event, _: &Symbols| {};
    let seen = observe_with(command, Form::Linked, Options::default(), nothing)?;
    if !seen.status.success() {
        return Err(format!("{}: {}", built.program.display(), seen.status));
    }
    let text = std::fs::read_to_string(&list).map_err(|e| e.to_string())?;
    let places = places(&text);
    let mut racing = BTreeSet::new();
    for race in &seen.races {
        let at = race.later.range.start;
        let place = places.iter().find(|p| p.bytes.contains(&at));
        let place = place.ok_or_else(|| format!("a race at no variable: {race:x?}"))?;
        racing.insert(place.name.clone());
    }
    Ok((racing, places.len()))
}

#[test]
fn fewer_hooks_tell_of_races_on_the_same_variables() {
    let cases = match std::env::var("GENERATED").map(|n| n.parse::<usize>()) {
        Ok(Ok(cases)) => cases,
        Ok(Err(_)) => panic!("GENERATED must be a number of cases"),
        Err(_) => 4 * CASES,
    };
    let folder = workspace("generated");
    let (mut raced, mut all, mut wide) = (0, 0, 0);
    for number in 0..cases.div_ceil(CASES) {
        let source = folder.join(format!("case{number}.c"));
        let text = format!(
            "// options: {}\n{}",
            LEVELS[number % 3],
            program::source(number as u64, CASES)
        );
        std::fs::write(&source, text).expect("target is writable");
        let (theirs, variables) = racing(&source, Compiler::Clang).unwrap();
        let (complete, _) = racing(&source, Compiler::AllHooks).unwrap();
        let (ours, _) = racing(&source, Compiler::Own).unwrap();
        assert_eq!(complete, ours, "{}", source.display());
        assert!(theirs.is_subset(&ours), "{}: {theirs:?} {ours:?}", source.display());
        wide += ours.len() - theirs.len();
        raced += ours.len();
        all += variables;
    }
    println!(
        "{raced} of {all} variables race, {wide} of them by accesses without a hook of clang's"
    );
    assert!(raced * 10 > all && raced * 10 < all * 9, "{raced} of {all} variables race");
}
