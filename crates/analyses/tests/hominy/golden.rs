//! The examples of *Hominy Grits*.

use selvedge_model::trace::parse;
use selvedge_specs::discipline::Discipline;
use selvedge_specs::discipline::canon::close;

use selvedge_analyses::devices::Device;

/// The discipline of `x` in a text trace.
#[track_caller]
pub(crate) fn check(text: &str, expected: &str) {
    let (events, symbols) = parse(text).expect("a valid trace");
    let (instances, findings) = super::infer(&events);
    let name = |device: &Device| match *device {
        Device::Lock(id) => symbols.lock(id),
        Device::Atomic(addr) => {
            symbols.variables.at(addr).map_or(String::new(), |(n, _)| n.to_owned())
        }
        Device::Barrier(id) => symbols.barrier(id),
        Device::Semaphore(id) => symbols.semaphore(id),
    };
    let of_x = |addr: u64| symbols.variables.at(addr).is_some_and(|(name, _)| name == "x");
    let instance = instances.iter().find(|i| of_x(i.bytes.start)).expect("x is used");
    let closed = close(&instance.steps, |devices| devices[0]);
    let named: Vec<_> = closed.iter().map(|s| s.map(&mut |d: &Device| name(d))).collect();
    let shown = match instance.race {
        Some(_) => "race".to_owned(),
        None => Discipline::from(named).to_string(),
    };
    assert_eq!(shown, expected, "{text}");
    assert_eq!(instance.race.is_some(), !findings.is_empty());
}

#[test]
fn figure_3_3() {
    check(
        "t|w(x)|1\nt|fork(u)|2\nu|acq(m)|3\nu|r(x)|4\nu|rel(m)|5\nt|acq(m)|6\nt|w(x)|7\nt|rel(m)|8\n\
         u|acq(m)|9\nu|r(x)|10\nu|rel(m)|11\nt|join(u)|12\nt|r(x)|13\nt|w(x)|14",
        "thread-local; fork; guarded-by m; join",
    );
}

#[test]
fn figure_4_1_and_section_4_7() {
    check(
        "t|w(x)|1\nt|fork(u)|2\nu|acq(m)|3\nu|r(x)|4\nu|w(x)|5\nu|rel(m)|6\nt|acq(m)|7\nt|r(x)|8\nt|w(x)|9",
        "thread-local; fork; guarded-by m",
    );
    check(
        "t|w(x)|1\nt|fork(u)|2\nu|acq(m)|3\nu|r(x)|4\nu|rel(m)|5\nt|acq(m)|6\nt|w(x)|7\nt|rel(m)|8\n\
         u|acq(m)|9\nu|r(x)|10\nu|rel(m)|11",
        "thread-local; fork; guarded-by m",
    );
}

#[test]
fn section_4_7_1_a_fork_is_not_masked() {
    check(
        "t|w(x)|1\nt|fork(u)|2\nu|acq(m)|3\nu|r(x)|4\nu|rel(m)|5\nu|acq(m)|6\nu|w(x)|7\nu|rel(m)|8\n\
         u|acq(m)|9\nu|r(x)|10\nu|rel(m)|11",
        "thread-local; fork; guarded-by m",
    );
}

/// An EventSet also names `n`, because it forgets that `t` acquired it after `u` had released it.
#[test]
fn figure_6_1_names_m_alone() {
    check(
        "t|acq(m)|1\nw|acq(n)|2\nt|w(x)|3\nt|rel(m)|4\nw|rel(n)|5\nu|acq(n)|6\nu|acq(m)|7\nu|rel(m)|8\n\
         u|rel(n)|9\nt|acq(n)|10\nt|rel(n)|11\nu|w(x)|12",
        "guarded-by m; via lock m",
    );
}

#[test]
fn section_3_3_and_appendix_a() {
    check("t|w(x)|1\nt|r(x)|2\nt|acq(m)|3\nt|r(x)|4\nu|r(y)|5", "thread-local");
    check(
        "t|w(x)|1\nt|aw(y)|2\nu|ar(y)|3\nu|r(x)|4\nu|w(x)|5\nu|aw(y)|6\nw|ar(y)|7\nw|w(x)|8",
        "thread-local; via atomic y",
    );
    check(
        "t|w(x)|1\nt|fork(u)|2\nt|fork(w)|3\nt|r(x)|4\nu|r(x)|5\nw|r(x)|6\nw|r(x)|7",
        "thread-local; fork; read-shared",
    );
}

#[test]
fn a_handed_over_object_is_not_guarded() {
    check(
        "t|w(x)|1\nt|acq(q)|2\nt|rel(q)|3\nu|acq(q)|4\nu|rel(q)|5\nu|w(x)|6\nu|acq(q)|7\nu|rel(q)|8\n\
         t|acq(q)|9\nt|rel(q)|10\nt|w(x)|11",
        "thread-local; via lock q",
    );
}

#[test]
fn a_write_after_several_reads_needs_one_device_for_all_of_them() {
    let read = "t|w(x)|1\nt|fork(u)|2\nt|fork(v)|3\nu|r(x)|4\nv|r(x)|5\n";
    check(
        &format!("{read}t|join(u)|6\nt|join(v)|7\nt|w(x)|8"),
        "thread-local; fork; read-shared; join",
    );
    check(
        &format!("{read}u|post(s)|6\nt|wait(s)|7\nt|join(v)|8\nt|w(x)|9"),
        "thread-local; fork; read-shared; via semaphore s; join",
    );
    check(&format!("{read}u|post(s)|6\nt|wait(s)|7\nt|w(x)|8"), "race");
}

#[test]
fn rows_that_are_exchanged_at_a_barrier_repeat() {
    let round = |n: u32| {
        format!(
            "t|w(x)|1\nt|arrive(b,{0})|2\nu|arrive(b,{0})|3\nt|leave(b,{0})|4\nu|leave(b,{0})|5\nu|r(x)|6\n\
             t|arrive(b,{1})|7\nu|arrive(b,{1})|8\nt|leave(b,{1})|9\nu|leave(b,{1})|10\n",
            2 * n,
            2 * n + 1
        )
    };
    let rounds: String = (0..5).map(round).collect();
    check(&rounds, "thread-local; via barrier b");
    // Two readers make it a phase of its own.
    let rounds = rounds.replace("u|r(x)|6\n", "u|r(x)|6\nt|r(x)|6\n");
    check(&rounds, "thread-local; (via barrier b; read-shared)+");
}

/// Far more states of memory than are kept at a time.
#[test]
fn a_long_execution_is_inferred_like_a_short_one() {
    const ROUNDS: u64 = 40_000;
    let mut text = String::from("t|w(x)|1\nt|w(y)|2\nt|fork(u)|3\n");
    for round in 0..ROUNDS / 2 {
        let y = if round % 2 == 0 { "r(y)" } else { "w(y)" };
        for thread in ["t", "u"] {
            text +=
                &format!("{thread}|acq(m)|4\n{thread}|w(x)|5\n{thread}|{y}|6\n{thread}|rel(m)|7\n");
        }
    }
    check(&text, "thread-local; guarded-by m");
    let (events, _) = parse(&text).expect("a valid trace");
    let (instances, _) = super::infer(&events);
    let accesses: Vec<u64> = instances.iter().map(|i| i.accesses).collect();
    assert_eq!(accesses, [ROUNDS + 1, ROUNDS + 1]);
}

#[test]
fn a_race_touches_no_other_variable() {
    let (events, _) = parse("t|w(y)|1\nu|w(y)|2\nt|acq(m)|3\nt|w(x)|4\nt|rel(m)|5").unwrap();
    let (instances, findings) = super::infer(&events);
    let raced: Vec<bool> = instances.iter().map(|i| i.race.is_some()).collect();
    assert_eq!((raced.as_slice(), findings.len()), ([true, false].as_slice(), 1));
}
