//! `selvedge mcp`: a server of the Model Context Protocol over standard input and output, for agents and editors.
//!
//! Its tools are commands of Selvedge: each runs in a process of its own, as a user would start it, and its result
//! is structured content. Only programs below the directories of the command line are run ([`allowed`]).

mod allowed;
mod tools;

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use serde_json::Value;

use crate::args::Mcp;
use crate::exit::{Exit, Failure};
use allowed::Allowed;
use tools::TOOLS;

const INSTRUCTIONS: &str = "Finds concurrency bugs in a compiled program and makes them happen again. \
Build the program with `selvedge cc`, `selvedge c++` or `cargo selvedge build`. `test` finds bugs and gives each \
an id; `explain` shows how one happens, step by step; after an edit and a build, `fixed` says whether it is gone.";

/// Serves until the client closes the connection.
pub(crate) fn run(args: &Mcp) -> Result<Exit, Failure> {
    let server = Server { allowed: Arc::new(Allowed::new(&args.directories)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| e.to_string())?;
        running.waiting().await.map_err(|e| e.to_string())
    });
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    match served {
        Ok(_) => Ok(Exit::Clean),
        Err(why) => Err(Failure::Usage(format!("the client does not speak the protocol: {why}"))),
    }
}

#[derive(Clone)]
struct Server {
    allowed: Arc<Allowed>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("selvedge", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |t: &tools::Tool| Tool::new(t.name, t.about, Arc::new(t.schema()));
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|t| t.name == request.name) else {
            let why = format!("there is no tool `{}`", request.name);
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
        };
        let allowed = Arc::clone(&self.allowed);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        // The command may run for a minute; other requests are answered meanwhile.
        let result = tokio::task::spawn_blocking(move || (tool.run)(&allowed, &arguments)).await;
        let result = match result {
            Ok(Ok(value)) => CallToolResult::structured(value),
            Ok(Err(why)) => CallToolResult::error(vec![ContentBlock::text(why)]),
            Err(e) => CallToolResult::error(vec![ContentBlock::text(e.to_string())]),
        };
        Ok(result.into())
    }
}
