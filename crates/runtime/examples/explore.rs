//! Runs a program under many schedules and tells how they end.
//!
//! ```text
//! cargo run --example explore -- [--strategy NAME] [--seed N] [--schedules N]
//!     [--form linked|replaced|preloaded] [--exec] [--replay SCHEDULE] [--events] PROGRAM [ARGUMENT…]
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use selvedge_explore::{Budget, Plan};
use selvedge_runtime::control::Outcome;
use selvedge_runtime::{Controlled, Execution, Form, Libraries, Settings};

fn main() -> ExitCode {
    match explore(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("explore: {message}");
            ExitCode::from(2)
        }
    }
}

struct Wanted {
    plan: Plan,
    seed: u64,
    schedules: u64,
    settings: Settings,
    replay: Option<String>,
    events: bool,
    program: Vec<String>,
}

fn understand(arguments: Vec<String>) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        plan: Plan::from("random"),
        seed: 0,
        schedules: 100,
        settings: Settings::default(),
        replay: None,
        events: false,
        program: Vec::new(),
    };
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match argument.as_str() {
            "--strategy" => wanted.plan = value()?.parse().map_err(|e| format!("{e}"))?,
            "--seed" => wanted.seed = number(value()?)?,
            "--schedules" => wanted.schedules = number(value()?)?,
            "--replay" => wanted.replay = Some(value()?),
            "--exec" => wanted.settings.fork = false,
            "--events" => wanted.events = true,
            "--form" => {
                wanted.settings.form = match value()?.as_str() {
                    "linked" => Form::Linked,
                    "replaced" => Form::Replaced,
                    "preloaded" => Form::Preloaded,
                    other => return Err(format!("no form `{other}`")),
                }
            }
            _ => {
                wanted.program = std::iter::once(argument).chain(rest.by_ref()).collect();
            }
        }
    }
    if wanted.program.is_empty() { Err("which program?".into()) } else { Ok(wanted) }
}

fn explore(arguments: Vec<String>) -> Result<(), String> {
    let wanted = understand(arguments)?;
    let folder = std::env::temp_dir().join("selvedge-explore");
    let libraries = Libraries::install(&folder).map_err(|e| e.to_string())?;
    let (program, arguments) = (&wanted.program[0], &wanted.program[1..]);
    let mut controlled = Controlled::new(program, arguments, &libraries, wanted.settings.clone())
        .map_err(|e| e.to_string())?;
    if let Some(schedule) = &wanted.replay {
        let schedule = schedule.parse().map_err(|e| format!("{e}"))?;
        let (execution, divergence) = controlled.replay(&schedule).map_err(|e| e.to_string())?;
        print!("{}", String::from_utf8_lossy(&execution.stdout));
        println!("{}", describe(&execution, &controlled));
        if let Some(divergence) = divergence {
            println!("diverged {divergence}");
        }
        print_events(&execution, &controlled);
        return Ok(());
    }
    let mut strategy = wanted.plan.strategy();
    let mut budget = Budget::new(wanted.seed, wanted.schedules);
    let mut outcomes: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let begin = Instant::now();
    while budget.begin(&mut *strategy) {
        let execution = controlled.run(&mut *strategy).map_err(|e| e.to_string())?;
        controlled.releases |= execution.releases_matter;
        if wanted.events {
            print_events(&execution, &controlled);
        }
        let text = describe(&execution, &controlled);
        let entry = outcomes.entry(text).or_insert((0, execution.schedule.to_string()));
        entry.0 += 1;
    }
    let runs = budget.begun();
    let rate = runs as f64 / begin.elapsed().as_secs_f64();
    for (outcome, (count, schedule)) in &outcomes {
        println!("{count:6} × {outcome}\n         --replay {schedule}");
    }
    println!("{runs} schedules, {rate:.0} per second");
    Ok(())
}

fn describe(execution: &Execution, controlled: &Controlled) -> String {
    let mut text = match &execution.outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Signaled(signal) => format!("signal {signal}"),
        Outcome::StepLimit => "too many steps".into(),
        Outcome::TimeLimit => "too much time".into(),
        Outcome::Deadlock(blocked) => {
            let list = blocked.iter().map(|b| {
                let site = controlled.symbols.site(b.pending.site);
                let whom = b.waits_for.map_or(String::new(), |t| format!(" for thread {}", t.0));
                format!("thread {} waits{whom} at {site}", b.thread.0)
            });
            format!("deadlock: {}", list.collect::<Vec<_>>().join("; "))
        }
    };
    for uncontrolled in &execution.uncontrolled {
        text.push_str(&format!(", not controlled: {uncontrolled:?}"));
    }
    let output = String::from_utf8_lossy(&execution.stdout);
    if let Some(line) = output.lines().next() {
        text.push_str(&format!(", says `{line}`"));
    }
    text
}

fn print_events(execution: &Execution, controlled: &Controlled) {
    for event in &execution.events {
        let site = controlled.symbols.site(event.site);
        println!("  thread {} {:?} at {site}", event.thread.0, event.op);
    }
}
