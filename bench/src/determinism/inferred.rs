//! What is inferred of the same programs, beside table 4.1 of the paper: two inputs, five and ten threads, twenty
//! executions, and every global as a location.
//!
//! A condition is as strong as the one written by hand if it has a conjunct for all the locations that the latter is
//! about, or leaves one out because it holds for every two executions.

use std::process::Command;

use serde_json::Value;

use crate::place::{Place, source};

/// A program: what a condition written by hand is about, and the paper's numbers of conjuncts, by hand and inferred.
struct Program {
    name: &'static str,
    folder: &'static str,
    define: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
    paper: [(u32, u32); 2],
}

const fn grande(
    name: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
    paper: [(u32, u32); 2],
) -> Program {
    Program { name, folder: "noninterference", define: "-DGRANDE", before, after, paper }
}

const fn other(
    name: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
    paper: [(u32, u32); 2],
) -> Program {
    Program { folder: "determinism", define: "-DFIXED", ..grande(name, before, after, paper) }
}

const PROGRAMS: [Program; 13] = [
    grande("sor", &["grid", "iterations", "omega"], &["grid"], [(3, 2), (1, 7)]),
    grande("sparse", &["rows", "columns", "values", "x"], &["y"], [(4, 4), (1, 2)]),
    grande("series", &["wanted"], &["coefficients"], [(1, 3), (1, 1)]),
    grande("crypt", &["plain"], &["coded", "back"], [(1, 5), (2, 2)]),
    grande("moldyn", &["shared.at"], &["shared.at", "shared.speed"], [(2, 14), (3, 7)]),
    grande(
        "lufact",
        &["shared.a", "shared.b"],
        &["shared.a", "shared.pivots", "shared.x"],
        [(4, 9), (3, 3)],
    ),
    grande("raytracer", &["spheres"], &["checksums"], [(2, 3), (1, 1)]),
    grande("montecarlo", &["seed"], &["results"], [(1, 2), (1, 1)]),
    other("pi", &["generator"], &["total"], [(2, 3), (1, 1)]),
    other("keysearch", &["plain", "coded"], &["key"], [(3, 5), (1, 3)]),
    other("mandelbrot", &["depth"], &["picture"], [(7, 11), (1, 5)]),
    other("phylogeny", &["dna"], &["score"], [(3, 5), (2, 11)]),
    other("tsp", &["distances"], &["best"], [(1, 3), (1, 2)]),
];

/// Prints the table, and returns what is not as it should be.
pub(super) fn table(place: &Place, names: &[&str]) -> Result<Vec<String>, String> {
    println!("\nconjuncts by hand/inferred; as strong: what the one by hand says is implied\n");
    println!("{:12} | {:^17} | {:^44}", "", "paper", "ours");
    println!(
        "{:12} | {:>8} {:>8} | {:>8} {:>13} {:>8} {:>12}",
        "program", "pre", "post", "pre", "as strong", "post", "as strong"
    );
    let mut wrong = Vec::new();
    let mut remarks = Vec::new();
    for program in PROGRAMS.iter().filter(|p| names.is_empty() || names.contains(&p.name)) {
        let block = program.infer(place, ["1", "2"])?;
        let lacks = [
            missing(&block, "precondition", program.before),
            missing(&block, "postcondition", program.after),
        ];
        let pair =
            |by_hand: usize, condition: &str| format!("{by_hand}/{}", len(&block, condition));
        let strong = |lacks: &[&str]| if lacks.is_empty() { "yes" } else { "no" };
        for (condition, lacks) in ["precondition", "postcondition"].into_iter().zip(&lacks) {
            remarks.extend(lacks.iter().map(|location| {
                let why = why_not(&block, condition, location);
                format!("{}: the {condition} lacks {location}: {why}", program.name)
            }));
        }
        let [pre, post] = program.paper.map(|(by_hand, inferred)| format!("{by_hand}/{inferred}"));
        println!(
            "{:12} | {pre:>8} {post:>8} | {:>8} {:>13} {:>8} {:>12}",
            program.name,
            pair(program.before.len(), "precondition"),
            strong(&lacks[0]),
            pair(program.after.len(), "postcondition"),
            strong(&lacks[1]),
        );
        wrong.extend(program.check(place, &block, &lacks)?);
    }
    println!();
    remarks.iter().for_each(|remark| println!("{remark}"));
    Ok(wrong)
}

impl Program {
    /// The inferred specification of the program's block, of two inputs with five and ten threads each.
    fn infer(&self, place: &Place, inputs: [&str; 2]) -> Result<Value, String> {
        let options = ["-O1", "-DBLOCKS", "-DTINY", "-DINFER", self.define];
        let built = place.ours(&source(self.folder, self.name), "gcc", &options)?;
        let mut command = Command::new(&place.selvedge);
        command.args(["infer", "determinism", "--globals", "--format", "json", "--runs", "5"]);
        for input in inputs {
            for threads in ["5", "10"] {
                command.arg("--input").arg(format!("{threads} {input}"));
            }
        }
        let output = command.arg("--").arg(built).output().map_err(|e| e.to_string())?;
        let document: Value = serde_json::from_slice(&output.stdout).map_err(|e| {
            format!("{}: {e}: {}", self.name, String::from_utf8_lossy(&output.stderr))
        })?;
        Ok(document["blocks"][0].clone())
    }

    /// What the paper says of single programs.
    fn check(
        &self,
        place: &Place,
        block: &Value,
        [before, after]: &[Vec<&'static str>; 2],
    ) -> Result<Vec<String>, String> {
        let name = self.name;
        let mut wrong = Vec::new();
        let mut expect = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{name}: {what}"));
            }
        };
        match name {
            "lufact" => {
                expect(*after == ["shared.x"], "the postcondition has everything but x");
                expect(has(block, "postcondition", "shared.b"), "the postcondition has b");
            }
            _ => expect(after.is_empty(), "the postcondition is as strong"),
        }
        match name {
            "sor" => {
                expect(*before == ["iterations", "omega"], "only what never varies is missing");
                let remarks = block["remarks"].to_string();
                expect(remarks.contains("iterations"), "a remark says what never varies");
            }
            "keysearch" => {
                expect(has(block, "precondition", "partialkey"), "the precondition has partialkey");
            }
            "tsp" => {
                expect(has(block, "postcondition", "tour"), "the tour is claimed");
                let several = self.infer(place, ["1", "3"])?;
                expect(!has(&several, "postcondition", "tour"), "the tour is refuted by an input");
                expect(has(&several, "postcondition", "best"), "the length is not refuted");
            }
            _ => {}
        }
        Ok(wrong)
    }
}

fn conjuncts<'a>(block: &'a Value, condition: &str) -> impl Iterator<Item = &'a str> {
    let list = block[condition].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|c| c["name"].as_str())
}

fn len(block: &Value, condition: &str) -> usize {
    conjuncts(block, condition).count()
}

/// Whether a condition is about a location, or about parts of it.
fn has(block: &Value, condition: &str, location: &str) -> bool {
    let is_part = |name: &str| {
        name.strip_prefix(location).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    conjuncts(block, condition).any(is_part)
}

/// Why a location is not in a condition.
fn why_not(block: &Value, condition: &str, location: &str) -> &'static str {
    let dropped = block["dropped"].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = dropped.iter().find(|d| d["condition"] == condition && d["name"] == location);
    match entry.and_then(|d| d["why"].as_str()) {
        Some("always-holds") => "no two executions differed in it",
        Some("never-changed") => "the block never changed it",
        _ => "no execution requires it",
    }
}

/// The locations that a condition by hand is about and the inferred one is not.
fn missing(
    block: &Value,
    condition: &'static str,
    by_hand: &'static [&'static str],
) -> Vec<&'static str> {
    let dropped = block["dropped"].as_array().map(Vec::as_slice).unwrap_or_default();
    let holds = |location: &str| {
        dropped.iter().any(|d| {
            let of = d["condition"] == condition && d["name"] == location;
            // A precondition that never varied is unknown, and not implied.
            of && (d["why"] == "implied"
                || d["why"] == "always-holds" && condition != "precondition")
        })
    };
    let lacks = |location: &&&str| !has(block, condition, location) && !holds(location);
    by_hand.iter().filter(lacks).copied().collect()
}
