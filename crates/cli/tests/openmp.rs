//! What users see of programs with OpenMP: its threads are observed, but not controlled.

mod common;

use common::{Project, json, stderr, stdout};

const COMPILERS: [&str; 2] = ["--selvedge-compiler=gcc", "--selvedge-compiler=clang-19"];
const BUDGET: [&str; 4] = ["--schedules", "20", "--", "./program"];

fn reason(text: &str) -> bool {
    text.contains("the program starts threads of OpenMP, which Selvedge cannot control")
        && text.contains("`selvedge run` observes them")
}

#[test]
fn a_program_that_starts_a_team_is_not_controlled() {
    for compiler in COMPILERS {
        for twin in ["-DBROKEN", "-DFIXED"] {
            let project = Project::new("openmp-refused");
            project.build("openmp.c", &[compiler, "-fopenmp", twin]);
            for command in ["test", "explore"] {
                let output = project.selvedge(&[&[command][..], &BUDGET].concat());
                assert_eq!(output.status.code(), Some(3), "{output:?}");
                assert!(reason(&stderr(&output)), "{}", stderr(&output));
                assert_eq!(stdout(&output), "");
            }
            let kept = json(&project.selvedge(&["report", "--format", "json"]));
            assert_eq!(kept["findings"].as_array().map(Vec::len), Some(0), "{kept}");
        }
    }
}

#[test]
fn a_program_that_never_starts_a_team_is_controlled() {
    for compiler in COMPILERS {
        let project = Project::new("openmp-alone");
        project.build("openmp.c", &[compiler, "-fopenmp"]);
        let selvedge = |args: &[&str], threads: &str| {
            let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), args);
            command.env("OMP_THREAD_LIMIT", threads).output().unwrap()
        };
        let alone = selvedge(&[&["test", "--format", "json"][..], &BUDGET].concat(), "1");
        assert_eq!(alone.status.code(), Some(1), "{alone:?}");
        let document = json(&alone);
        let found = document["findings"].as_array().unwrap();
        assert!(found.iter().all(|f| f["kind"] == "data-race"), "{document}");
        let confirmed = found.iter().find(|f| f["status"] == "confirmed").unwrap();
        let id = confirmed["id"].as_str().unwrap();
        assert_eq!(selvedge(&["replay", id], "1").status.code(), Some(1));
        let refused = selvedge(&["replay", id], "2");
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        assert!(reason(&stderr(&refused)), "{}", stderr(&refused));
    }
}

#[test]
fn a_team_is_observed() {
    for compiler in COMPILERS {
        let project = Project::new("openmp-run");
        project.build("openmp.c", &[compiler, "-fopenmp", "-DFIXED"]);
        let output = project.selvedge(&["run", "--", "./program"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stderr(&output).contains("nothing found"), "{}", stderr(&output));
    }
}

/// Our functions are in the place of the library's, so a linker that drops unused libraries drops it.
#[test]
fn a_library_that_the_linker_dropped_is_found() {
    let project = Project::new("openmp-dropped");
    project.build("openmp_alone.c", &[COMPILERS[0], "-fopenmp", "-Wl,--as-needed", "-DFIXED"]);
    let needed = project.command("readelf", &["-d", "program"]).output().unwrap();
    assert!(!stdout(&needed).contains("libgomp"), "{}", stdout(&needed));
    let output = project.selvedge(&["run", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    project.build("openmp_alone.c", &[COMPILERS[0], "-fopenmp", "-Wl,--as-needed"]);
    let output = project.selvedge(&["run", "--", "./program"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn teams_that_cannot_be_followed_are_refused() {
    let project = Project::new("openmp-old");
    project.build("openmp_old.c", &[COMPILERS[0], "-fopenmp"]);
    let output = project.selvedge(&["run", "--", "./program"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("as gcc before 4.9 does"), "{}", stderr(&output));
}
