//! Atomic operations leave the program only if an analysis asks for them.

mod common;

use common::{Project, json, stderr};

#[test]
fn what_no_analysis_asks_for_stays_in_the_program() {
    let project = Project::new("atomics");
    project.build("spins.c", &[]);
    let events = |analyses: &[&str]| {
        let mut args = vec!["run", "--format", "json"];
        args.extend(analyses);
        args.extend(["--", "./program"]);
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)["stats"]["events"].as_u64().unwrap()
    };
    // Threads begin, end, start and join.
    assert!(events(&[]) < 20);
    assert!(events(&["--analyses", "hybrid"]) > 400, "each hand-over is two stores");
}
