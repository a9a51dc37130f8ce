//! The figures of the source, and each with its other verdict.

use super::read;

#[test]
fn figure_6_2_is_serializable_with_its_star() {
    let read = read(include_str!("figure_6_2.std"));
    assert!(read.check.conforms());
    assert_eq!(read.order(), ["2", "1", "3"]);
    let irrelevant = read.irrelevant();
    for event in ["e1", "e2", "e3", "e4"] {
        assert!(irrelevant.contains(&event.to_owned()), "{event} of {irrelevant:?}");
    }
    for event in ["e9", "e10", "e11", "e12", "e13", "e14", "e15", "e16", "e17", "e18", "e20", "e21"]
    {
        assert!(!irrelevant.contains(&event.to_owned()), "{event} of {irrelevant:?}");
    }
    assert_eq!(read.strict(), 1, "strict serializability gives a false alarm");
}

#[test]
fn figure_6_2_without_its_star_is_a_violation() {
    let read = read(include_str!("figure_6_2_no_star.std"));
    assert!(!read.check.conforms());
    let finding = read.findings.iter().next().unwrap();
    let sites: Vec<String> =
        finding.places.iter().map(|p| read.symbols.site(p.site).to_string()).collect();
    assert_eq!(sites, ["e2", "e12", "e12", "e15"]);
}

#[test]
fn figure_6_6_may_repeat_its_attempt() {
    let read = read(include_str!("figure_6_6.std"));
    assert!(read.check.conforms());
    assert_eq!(read.irrelevant(), ["e3", "e4", "e13", "e14"]);
    assert_eq!(read.order(), ["2", "1"]);
}

#[test]
fn figure_7_3_has_no_star_and_is_a_violation() {
    assert!(!read(include_str!("figure_7_3.std")).check.conforms());
}

#[test]
fn the_stack_of_figure_6_7_conforms() {
    let with_stars = include_str!("figure_6_7.std");
    assert!(read(with_stars).check.conforms());
    let without: String = with_stars
        .lines()
        .filter(|l| !l.contains("star:"))
        .fold(String::new(), |text, line| text + line + "\n");
    assert!(!read(&without).check.conforms());
}

#[test]
fn the_search_of_figure_6_9b_conforms_because_its_updates_commute() {
    assert!(read(include_str!("figure_6_9b.std")).check.conforms());
    assert!(!read(include_str!("figure_6_9b_plain.std")).check.conforms());
}

#[test]
fn a_check_that_is_repeated_under_a_lock_may_be_skipped() {
    assert!(read(include_str!("lazy_check.std")).check.conforms());
    assert!(!read(include_str!("lazy_check_no_star.std")).check.conforms());
}

#[test]
fn a_lazy_initialisation_belongs_to_no_task() {
    assert!(read(include_str!("lazy_init.std")).check.conforms());
    assert!(!read(include_str!("lazy_init_plain.std")).check.conforms());
}

#[test]
fn a_lost_update_is_a_violation_and_one_under_a_lock_is_not() {
    assert!(!read(include_str!("lost_update.std")).check.conforms());
    assert!(read(include_str!("locked_update.std")).check.conforms());
}
