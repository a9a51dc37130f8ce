//! `selvedge history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use selvedge_specs::Value;
use selvedge_specs::history::{MODELS, ModelKind};

use super::{InferFormat, duration};

#[derive(Args, Debug)]
#[command(after_long_help = "\
An operation is one line: {\"process\": WHO, \"op\": NAME, \"arg\": VALUE, \"key\": KEY, \"ret\": VALUE, \"call\": TIME, \
\"return\": TIME}; times are integers. Without `return` the operation is pending. Operations:
  register  read, write, cas (arg [expected, new]; returns whether it did)
  counter   add, get
  queue     enq, deq
  stack     push, pop
  set       add, remove, contains (return whether it changed, or was there)
  map       get, put, remove, by key (return the value before)
  mutex     lock, unlock
An object that has nothing gives null. Operations with different keys are checked apart. Exit codes: 0 \
linearizable; 1 not; 2 malformed; 3 not decided within --memory or --time.")]
pub(crate) struct History {
    /// The kind of object
    #[arg(long, value_parser = model())]
    pub(crate) model: ModelKind,
    /// The state in which the object begins
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) initial: Option<Value>,
    /// How much memory the search may take
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,
    /// How long the search may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) time: Duration,
    /// How to print the verdict
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InferFormat,
    /// Histories, one JSON object a line; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

fn model() -> impl TypedValueParser<Value = ModelKind> {
    let names = MODELS.iter().map(|(_, name, _)| PossibleValue::new(*name));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<ModelKind>())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// `500M`, `1G`; a number alone means bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || format!("`{text}` is not a size such as 500M or 2G");
    let factor: usize = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(wrong()),
    };
    digits.parse::<usize>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(wrong)
}
