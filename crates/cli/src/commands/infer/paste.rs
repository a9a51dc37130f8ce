//! A specification as assertions, ready for the source.

use std::fmt::Write as _;

use selvedge_specs::determin::{Conjunct, Specification, Supported, Table};
use selvedge_specs::{Predicate, Value};

use crate::args::Language;

/// The block with its assertions.
pub(super) fn pasted(specification: &Specification, table: &Table, language: Language) -> String {
    let block = &specification.block;
    let assertions = |word: &str, conjuncts: &[Supported]| {
        conjuncts.iter().fold(String::new(), |mut text, s| {
            let line = match language {
                Language::C => c(word, &s.conjunct, &table.values(&s.conjunct.name)),
                Language::Rust => rust(word, &s.conjunct),
            };
            let _ = writeln!(text, "{line}");
            text
        })
    };
    let (begin, comment, end) = match language {
        Language::C => (
            format!("SELVEDGE_DETERMINISTIC_BEGIN({block:?});"),
            "/* … the block … */",
            "SELVEDGE_REGION_END();\n",
        ),
        Language::Rust => (
            format!("let block = selvedge::DeterministicBlock::enter({block:?});"),
            "// … the block …",
            "drop(block);\n",
        ),
    };
    let (assume, ensure) = match language {
        Language::C => ("ASSUME", "ENSURE"),
        Language::Rust => ("assume", "ensure"),
    };
    let before = assertions(assume, &specification.precondition);
    let after = assertions(ensure, &specification.postcondition);
    format!("{begin}\n{before}{comment}\n{after}{end}")
}

fn c(word: &str, conjunct: &Conjunct, values: &[&Value]) -> String {
    let Conjunct { name, predicate } = conjunct;
    let by = match predicate {
        Predicate::Exact => None,
        Predicate::Within(e) => Some(format!("SELVEDGE_WITHIN({e:?})")),
        Predicate::Relative(e) => Some(format!("SELVEDGE_RELATIVE({e:?})")),
        Predicate::Ulps(n) => Some(format!("SELVEDGE_ULPS({n})")),
        Predicate::Set => Some("SELVEDGE_SET".to_owned()),
        Predicate::Multiset | Predicate::Rows => Some("SELVEDGE_MULTISET".to_owned()),
        Predicate::Callback(f) => Some(format!("SELVEDGE_SAME({f})")),
    };
    let (form, more) = match values.first() {
        Some(Value::Text(_)) => ("_STRING", String::new()),
        Some(Value::Bytes(_)) => ("_BYTES", format!(", sizeof {name}")),
        Some(Value::List(items)) if items.iter().all(|i| i.number().is_some()) => {
            ("_ARRAY", format!(", {}", length(name, values)))
        }
        Some(Value::List(_) | Value::Map(_) | Value::Record(_)) => {
            ("_BYTES", format!(", sizeof {name}"))
        }
        _ => ("", String::new()),
    };
    let (suffix, by) = by.map_or(("", String::new()), |by| ("_BY", format!(", {by}")));
    format!("SELVEDGE_{word}{form}{suffix}({name:?}, {name}{more}{by});")
}

/// How many elements an array has: a number if that never varies.
fn length(name: &str, values: &[&Value]) -> String {
    let length = |value: &Value| match value {
        Value::List(items) => Some(items.len()),
        _ => None,
    };
    match values.first().and_then(|v| length(v)) {
        Some(first) if values.iter().all(|v| length(v) == Some(first)) => first.to_string(),
        _ => format!("sizeof {name} / sizeof *{name}"),
    }
}

fn rust(word: &str, conjunct: &Conjunct) -> String {
    let Conjunct { name, predicate } = conjunct;
    let same = match predicate {
        Predicate::Exact => return format!("selvedge::{word}({name:?}, &{name});"),
        Predicate::Within(e) => format!("within({e:?})"),
        Predicate::Relative(e) => format!("relative({e:?})"),
        Predicate::Ulps(n) => format!("ulps({n})"),
        Predicate::Set => "set()".to_owned(),
        Predicate::Multiset => "multiset()".to_owned(),
        Predicate::Rows => "rows()".to_owned(),
        Predicate::Callback(f) => format!("by({f})"),
    };
    format!("selvedge::{word}_by({name:?}, &{name}, selvedge::same::{same});")
}
