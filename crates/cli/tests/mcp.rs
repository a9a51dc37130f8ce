//! `selvedge mcp`, driven by the client of the protocol's own SDK.

mod common;

use common::Project;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService, ServiceExt};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;

async fn connect(project: &Project) -> Client {
    let mut server = tokio::process::Command::new(env!("CARGO_BIN_EXE_selvedge"));
    server.args(["mcp", "."]).current_dir(&project.0).env("NO_COLOR", "1");
    ().serve(TokioChildProcess::new(server).expect("the server starts")).await.expect("it answers")
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(request).await.expect("the tool answers")
}

/// The structured content of a call that succeeds.
async fn done(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
    result.structured_content.expect("structured content")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_client_tests_explains_edits_and_learns_that_it_is_fixed() {
    let project = Project::new("mcp-loop");
    project.build("lost_update.c", &[]);
    block_on(async {
        let client = connect(&project).await;
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["test", "explain", "replay", "margin", "fixed"]);

        let arguments = json!({ "program": "program", "schedules": 200 });
        let report = done(&client, "test", arguments).await;
        let findings = report["findings"].as_array().unwrap();
        let race = findings.iter().find(|f| f["kind"] == "data-race").expect("a race");
        assert_eq!(race["status"], "confirmed", "{report:#}");
        let id = race["id"].clone();

        let explained = done(&client, "explain", json!({ "id": id })).await;
        assert_eq!(explained["finding"]["id"], id);
        let text = explained["text"].as_str().unwrap();
        assert!(text.contains("write counter 1 → 1") && !text.contains('\u{1b}'), "{text}");

        let again = done(&client, "replay", json!({ "id": id, "times": 2 })).await;
        assert_eq!(again["happened"], true, "{again:#}");

        let margin = done(&client, "margin", json!({ "id": id, "samples": 5 })).await;
        let steps = margin["finding"]["interleaving"]["steps"].as_array().unwrap();
        assert!(steps.iter().any(|s| s["fails"]["percent"].is_u64()), "{margin:#}");

        let still = done(&client, "fixed", json!({ "id": id })).await;
        assert_eq!(still["still_there"], true, "{still:#}");
        project.build("lost_update.c", &["-DFIXED"]);
        let gone = done(&client, "fixed", json!({ "id": id, "executions": 100 })).await;
        assert_eq!(gone["still_there"], false, "{gone:#}");
        assert!(gone["text"].as_str().unwrap().contains("95% confidence"), "{gone:#}");
        client.cancel().await.unwrap();
    });
}

#[test]
fn only_programs_below_the_named_directories_are_run() {
    let project = Project::new("mcp-refused");
    project.build("lost_update.c", &[]);
    let outside = Project::new("mcp-outside");
    std::os::unix::fs::symlink("/bin/true", project.0.join("link")).unwrap();
    block_on(async {
        let client = connect(&project).await;
        for arguments in [
            json!({ "program": "/bin/true" }),
            json!({ "program": "link" }),
            json!({ "program": "../../bin/true" }),
            json!({ "program": "program", "directory": outside.0 }),
            json!({ "program": ["program"] }),
            json!({}),
        ] {
            let refused = call(&client, "test", arguments.clone()).await;
            assert_eq!(refused.is_error, Some(true), "{arguments}: {refused:?}");
        }
        let unknown = CallToolRequestParams::new("shell");
        assert!(client.call_tool(unknown).await.is_err());
        let missing = call(&client, "explain", json!({ "id": "data-race-0000000000" })).await;
        assert_eq!(missing.is_error, Some(true));
        client.cancel().await.unwrap();
    });
    assert!(!outside.0.join(".selvedge/store.db").exists(), "nothing was run there");
}
