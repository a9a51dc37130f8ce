//! What it costs to look at loads and stores, and what sampling saves: the benchmarks of table 8.2 of the thesis, with 16
//! ranks.
//!
//! The kernels are those of table 8.1, small forms of the benchmarks, so ratios of single rows do not compare with the
//! thesis'. The alternatives run in turn, and a figure is the ratio of the best of the kernel's own times to the best
//! time of the program as it is. `races` are the pairs of statements that any round has found.

use std::collections::BTreeSet;
use std::path::Path;

use selvedge_spmd::findings;

use super::{Form, Observed, build, kernel, launch, took};
use crate::measure::Runs;
use crate::place::Place;

const RANKS: u32 = 16;

/// An alternative: how the thesis calls it, how the program is built, and what ranks are told.
struct Alternative {
    name: &'static str,
    form: Form,
    variables: &'static [(&'static str, &'static str)],
}

const SAMPLE: &str = "SELVEDGE_SPMD_SAMPLE";
const ALIAS_ONCE: (&str, &str) = ("SELVEDGE_SPMD_ALIAS_ONCE", "1");

const ALTERNATIVES: [Alternative; 6] = [
    Alternative { name: "NL", form: Form::Native, variables: &[] },
    Alternative {
        name: "HA.5",
        form: Form::Ours,
        variables: &[(SAMPLE, "hierarchical:0.5"), ALIAS_ONCE],
    },
    Alternative {
        name: "IA",
        form: Form::Ours,
        variables: &[(SAMPLE, "instruction:0.9"), ALIAS_ONCE],
    },
    Alternative { name: "FA0", form: Form::Ours, variables: &[(SAMPLE, "function:0"), ALIAS_ONCE] },
    Alternative { name: "I", form: Form::Ours, variables: &[(SAMPLE, "instruction:0.9")] },
    Alternative { name: "all", form: Form::Ours, variables: &[] },
];

/// A kernel, how much work is measured, and the overheads of the thesis in percent: NL, HA.5, IA, FA0 and I.
type Row = (&'static str, u32, &'static str);

const TABLE: [Row; 10] = [
    ("guppie", 5, "55 54 54 – 75"),
    ("psearch", 1, "2 11 666 8 6490"),
    ("bt", 5, "1 1 78 – –"),
    ("cg", 20, "1 28 58 – 2579"),
    ("ep", 1_000, "-1 1 2 5 111"),
    ("ft_lock", 100, "1 30 121 – 2744"),
    ("is", 5, "0 119 159 – 1201"),
    ("lu", 20, "0 – 76 – –"),
    ("mg", 20, "0 176 632 – 2020"),
    ("sp", 5, "0 1 29 – –"),
];

/// The pairs of places that an execution has found.
fn races(lines: &Path) -> Result<BTreeSet<[u64; 2]>, String> {
    let told = findings::read(&[lines]).map_err(|e| e.to_string())?;
    let pair = |race: &findings::Race| {
        let mut pair = race.sides.each_ref().map(|side| side.place.offset);
        pair.sort_unstable();
        pair
    };
    Ok(told.races.iter().map(pair).collect())
}

/// `spmd [ROUNDS] --sampling [KERNEL…]`.
pub(super) fn measure(
    rounds: usize,
    names: &[&str],
    place: &Place,
    here: &Path,
    library: &Path,
) -> Result<(), String> {
    println!(
        "{RANKS} ranks; time over that of the program as it is, and races found; the thesis' overheads in percent"
    );
    print!("{:<9} {:>8}", "kernel", "native");
    ALTERNATIVES.iter().for_each(|a| print!(" {:>11}", a.name));
    println!("  (thesis: NL HA.5 IA FA0 I)");
    let mut sums = [0.0; ALTERNATIVES.len()];
    let (mut native_sum, mut missed) = (0.0, Vec::new());
    for &(name, scale, thesis) in
        TABLE.iter().filter(|row| names.is_empty() || names.contains(&row.0))
    {
        let programs =
            [Form::Native, Form::Ours].map(|form| build(place, here, &kernel(name), form));
        let [native, ours] = [programs[0].clone()?, programs[1].clone()?];
        let observed = Observed { ranks: RANKS, scale, library, here };
        let mut base = Runs::default();
        let mut times: [Runs; ALTERNATIVES.len()] = Default::default();
        let mut found: [BTreeSet<[u64; 2]>; ALTERNATIVES.len()] = Default::default();
        for _ in 0..rounds {
            base.add((took(&mut launch(&native, RANKS, scale))?, 0.0));
            for (i, alternative) in ALTERNATIVES.iter().enumerate() {
                let program = if alternative.form == Form::Native { &native } else { &ours };
                times[i].add((observed.run(program, alternative.variables)?, 0.0));
                found[i].extend(races(&observed.lines())?);
            }
        }
        print!("{name:<9} {:>6.2} s", base.best());
        for ((runs, found), sum) in times.iter().zip(&found).zip(&mut sums) {
            print!(" {:>6.2} ({:>2})", runs.best() / base.best(), found.len());
            *sum += runs.best();
        }
        println!("  ({thesis})");
        native_sum += base.best();
        if !found[5].is_subset(&found[1]) {
            missed.push(name);
        }
    }
    print!("{:<9} {native_sum:>6.2} s", "weighted");
    sums.iter().for_each(|sum| print!(" {:>6.2}     ", sum / native_sum));
    println!("  (thesis: 11.9% for HA.5)");
    match missed.as_slice() {
        [] => println!("HA.5 has found every race that was found without sampling"),
        missed => println!("HA.5 has missed races of {}", missed.join(", ")),
    }
    Ok(())
}
