//! `selvedge infer`.

mod common;

use std::fs;

use common::{Project, json, stderr, stdout};

const BEST_TREE: &str = r#"{"block":"bestTree","pre":{"N":10,"dna":[1,2,3]},"post":{"score":140,"tree":[1,2]}}
{"block":"bestTree","pre":{"N":10,"dna":[1,2,3]},"post":{"score":140,"tree":[2,3]}}

{"block":"bestTree","pre":{"N":10,"dna":[3,1,2]},"post":{"score":175,"tree":[4]}}
{"block":"bestTree","pre":{"N":10,"dna":[3,1,2]},"post":{"score":175,"tree":[5]}}
{"block":"mean","pre":{"seed":1},"post":{"mean":0.3}}
{"block":"mean","pre":{"seed":1},"post":{"mean":0.30000000000000004}}
{"block":"mean","pre":{"seed":2},"post":{"mean":0.9}}
"#;

fn project(name: &str, executions: &str) -> Project {
    let project = Project::new(name);
    fs::write(project.0.join("executions"), executions).unwrap();
    project
}

const INFER: [&str; 4] = ["infer", "determinism", "--executions", "executions"];

#[test]
fn determinism_is_inferred_from_a_file_of_executions() {
    let project = project("infer-text", BEST_TREE);
    let output = project.selvedge(&INFER);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn determinism_in_json_has_the_documented_form() {
    let project = project("infer-json", BEST_TREE);
    let output =
        project.selvedge(&[&INFER[..], &["--block", "bestTree", "--format", "json"]].concat());
    let document = json(&output);
    assert_eq!((&document["version"], &document["tool"]), (&1.into(), &"selvedge".into()));
    let block = &document["blocks"][0];
    let keys: Vec<&str> = block.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "alternatives",
            "block",
            "dropped",
            "executions",
            "inputs",
            "postcondition",
            "precondition",
            "remarks"
        ]
    );
    assert_eq!(block["precondition"][0]["name"], "dna");
    assert_eq!(block["precondition"][0]["predicate"], "equal");
    assert_eq!(block["postcondition"][0]["name"], "score");
    assert_eq!(document["blocks"].as_array().unwrap().len(), 1);
}

#[test]
fn assertions_are_ready_to_paste() {
    let project = project("infer-paste", BEST_TREE);
    let pasted =
        |language| stdout(&project.selvedge(&[&INFER[..], &["--paste", language]].concat()));
    insta::assert_snapshot!(format!("{}\n{}", pasted("c"), pasted("rust")));
}

#[test]
fn any_weakest_precondition_has_alternatives() {
    let lines = [0, 0, 1, 1]
        .map(|n| format!(r#"{{"block":"sum","pre":{{"a":{n},"b":{n}}},"post":{{"sum":{n}}}}}"#));
    let project = project("infer-wlp", &lines.join("\n"));
    let of = |precondition| {
        let output = project.selvedge(
            &[&INFER[..], &["--precondition", precondition, "--format", "json"]].concat(),
        );
        let block = json(&output)["blocks"][0].clone();
        (
            block["precondition"].as_array().unwrap().len(),
            block["alternatives"].as_array().unwrap().len(),
        )
    };
    assert_eq!((of("wlop"), of("wlp")), ((2, 0), (1, 1)));
}

#[test]
fn nothing_is_inferred_if_no_input_was_run_twice() {
    let once = r#"{"block":"b","pre":{"n":1},"post":{"x":1}}"#;
    let project = project("infer-once", once);
    let output = project.selvedge(&INFER);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("no input was run twice"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn malformed_executions_are_refused_with_their_line() {
    let good = r#"{"block":"b","pre":{"n":1},"post":{"x":1}}"#;
    for (name, bad, word) in [
        ("names", r#"{"block":"b","pre":{"m":1},"post":{"x":1}}"#, "no value for \"n\""),
        ("more", r#"{"block":"b","pre":{"n":1},"post":{"x":1,"y":2}}"#, "a value for \"y\""),
        ("json", "{", "EOF"),
        ("field", r#"{"block":"b","pre":{"n":1}}"#, "missing field `post`"),
    ] {
        let project = project(&format!("infer-bad-{name}"), &format!("{good}\n{bad}\n"));
        let output = project.selvedge(&INFER);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let message = stderr(&output);
        assert!(message.contains("executions, line 2: ") && message.contains(word), "{message}");
    }
    for (name, executions, arguments) in
        [("empty", "\n", &[][..]), ("block", good, &["--block", "c"][..])]
    {
        let project = project(&format!("infer-{name}"), executions);
        let output = project.selvedge(&[&INFER[..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
}
