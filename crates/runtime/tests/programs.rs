//! The bundled programs: in each the bug is made to happen, in its fixed twin and in the correct programs that poll
//! nothing is ever confirmed.
//!
//! One seed, the engine in this process; `cargo xtask bench confirm` measures how many schedules it
//! takes over many seeds. Each twin is a test of its own, named `counter.c::fixed`, of a family also
//! `reorder.c::20::fixed`; choose by a part of the name: `cargo test -p selvedge-runtime --test programs -- counter`.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_analyses::Analysis;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::views::Views;
use selvedge_engine::{Execution, Outcome};
use selvedge_explore::{Budget, Directed, Meet, Mix};
use selvedge_model::{Findings, Schedule, SiteId, Symbols, Target};
use selvedge_runtime::control::{CodePlace, NameTable};
use selvedge_runtime::{Controlled, Settings};

use common::{Built, Compiler, libraries, workspace};

/// Undirected schedules, if no prediction leads to the bug.
const SCHEDULES: u64 = 1_500;
/// Schedules of each seed for a fixed twin.
const TWIN_SCHEDULES: u64 = 60;
const ATTEMPTS: u64 = 12;
/// The sizes of families that are tested; `cargo xtask bench confirm` measures all.
const SIZES: [&str; 2] = ["3", "20"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is part of the repository");
    let mut list: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "c" || e == "cpp" || e == "rs"))
        .collect();
    list.sort();
    list
}

/// The executable of a program or its twin. It is built once: tests of several sizes share it.
fn build(source: &Path, fixed: bool) -> PathBuf {
    type Builds = BTreeMap<(PathBuf, bool), Arc<OnceLock<PathBuf>>>;
    static BUILDS: Mutex<Builds> = Mutex::new(BTreeMap::new());
    let key = (source.to_owned(), fixed);
    let build = Arc::clone(BUILDS.lock().expect("no test panics here").entry(key).or_default());
    let program = || {
        let rust = source.extension().is_some_and(|e| e == "rs");
        let compiler = if rust { Compiler::Rustc } else { Compiler::Gcc };
        Built::new(source, compiler, fixed, &workspace("programs")).expect("it compiles").program
    };
    build.get_or_init(program).clone()
}

/// The sizes that the head of a program names; none if it has one only.
fn sizes(source: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(source).expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix("// Sizes: "));
    line.map_or(Vec::new(), |sizes| sizes.split_whitespace().map(str::to_owned).collect())
}

/// A program, and the size that it is started with.
#[derive(Clone)]
struct Member {
    program: PathBuf,
    size: Option<String>,
}

impl Member {
    fn build(source: &Path, fixed: bool, size: Option<&String>) -> Member {
        Member { program: build(source, fixed), size: size.cloned() }
    }

    fn control(&self, accesses: bool) -> Controlled {
        let settings = Settings { accesses, time: Duration::from_secs(60), ..Settings::default() };
        Controlled::new(&self.program, &self.size, libraries(), settings).expect("there is memory")
    }
}

/// An execution in which threads run until they block, and what it lets expect.
struct Observed {
    names: NameTable,
    symbols: Symbols,
    targets: Vec<(Target, Vec<CodePlace>)>,
}

fn observe(member: &Member) -> Observed {
    let program = &*member.program;
    let mut controlled = member.control(true);
    let (execution, _) = controlled.replay(&Schedule::default()).expect("it is controlled");
    assert_eq!(execution.outcome, Outcome::Exited(0), "{}: {execution:?}", program.display());
    let names = controlled.names().snapshot();
    let mut findings = Findings::default();
    let analyses: [Box<dyn Analysis>; 5] = [
        Box::new(FastTrack::new()),
        Box::new(Hybrid::default()),
        Box::new(Goodlock::default()),
        Box::new(AeroDrome::new()),
        Box::new(Views::new()),
    ];
    for mut analysis in analyses {
        execution.events.iter().for_each(|e| analysis.on_event(e, &mut findings));
        analysis.finish(&mut findings);
    }
    let place = |site: SiteId| {
        let label = controlled.symbols.site(site).to_string();
        let (_, offset) = label.rsplit_once("+0x")?;
        let offset = u64::from_str_radix(offset, 16).ok()?;
        Some(CodePlace { module: program.to_owned(), offset })
    };
    let targets = findings.iter().filter_map(|f| f.target.clone()).map(|target| {
        let sites = match &target {
            Target::Race { first, second } | Target::Contention { first, second } => {
                vec![*first, *second]
            }
            Target::Split { first, second, between, .. } => {
                [Some(*first), Some(*second), *between].into_iter().flatten().collect()
            }
            Target::Deadlock(_) => Vec::new(),
        };
        (target, sites.into_iter().filter_map(place).collect())
    });
    let targets = targets.collect();
    Observed { names, symbols: controlled.symbols.clone(), targets }
}

/// What a number of schedules showed.
#[derive(Default)]
struct Shown {
    failed: bool,
    confirmed: Vec<Target>,
}

impl Shown {
    fn take(&mut self, execution: &Execution) {
        self.failed |= execution.outcome != Outcome::Exited(0);
    }
}

/// Aims at all that is expected, then runs schedules that aim at nothing.
fn test(program: &Member, seed: u64, schedules: u64, until_failure: bool) -> Shown {
    let observed = observe(program);
    let mut controlled = program.control(false);
    let mut shown = Shown::default();
    // The ids of sites in the targets are those of the observed execution.
    controlled.symbols = observed.symbols.clone();
    for (target, places) in &observed.targets {
        controlled.watch(places).expect("it is controlled");
        let mut directed = Directed::new(target, &observed.names, controlled.names());
        let mut budget = Budget::new(seed, ATTEMPTS);
        while budget.begin(&mut directed) {
            let execution = controlled.run(&mut directed).expect("it is controlled");
            shown.take(&execution);
            // That two critical sections belong together is a suspicion: only a failure would confirm it.
            let suspicion = matches!(target, Target::Split { region: None, .. });
            if directed.reached() && !suspicion && !shown.confirmed.contains(target) {
                shown.confirmed.push(target.clone());
            }
            if shown.failed && until_failure {
                return shown;
            }
        }
    }
    let racing: Vec<CodePlace> = observed
        .targets
        .iter()
        .filter(|(t, _)| matches!(t, Target::Race { .. }))
        .flat_map(|(_, places)| places.clone())
        .collect();
    controlled.watch(&racing).expect("it is controlled");
    let (mut mix, mut budget) = (Mix::default(), Budget::new(seed, schedules));
    while budget.begin(&mut mix) {
        let execution = controlled.run(&mut mix).expect("it is controlled");
        controlled.releases |= execution.releases_matter;
        shown.take(&execution);
        if shown.failed && until_failure {
            break;
        }
    }
    shown
}

/// Some schedule makes the bug happen.
fn the_bug_happens(source: &Path, size: Option<&String>) -> Result<(), Failed> {
    let shown = test(&Member::build(source, false, size), 1, SCHEDULES, true);
    if shown.failed { Ok(()) } else { Err("no schedule made the program fail".into()) }
}

/// No schedule makes a correct program fail, and nothing that is predicted of it is confirmed.
fn nothing_happens(twin: &Member) -> Result<(), Failed> {
    for seed in [1, 2] {
        let shown = test(twin, seed, TWIN_SCHEDULES, false);
        if shown.failed {
            return Err(format!("the correct program failed with seed {seed}").into());
        }
        if !shown.confirmed.is_empty() {
            return Err(format!("seed {seed} confirmed {:?}", shown.confirmed).into());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let sources = sources(&folder());
    assert!(sources.len() >= 18, "{sources:?}");
    let meet = "threads_of_a_native_program_meet_at_lines_that_a_user_names";
    let mut trials = vec![Trial::test(meet, || {
        threads_of_a_native_program_meet_at_lines_that_a_user_names();
        Ok(())
    })];
    for source in sources {
        let program = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The usual size, and of a family the sizes that a test has time for.
        let sizes = sizes(&source);
        let small = sizes.into_iter().filter(|size| SIZES.contains(&&**size)).map(Some);
        for size in std::iter::once(None).chain(small) {
            let name = size.as_ref().map_or(program.clone(), |size| format!("{program}::{size}"));
            let (source, twin) = (source.clone(), source.clone());
            let fixed = size.clone();
            trials.push(Trial::test(format!("{name}::buggy"), move || {
                the_bug_happens(&source, size.as_ref())
            }));
            trials.push(Trial::test(format!("{name}::fixed"), move || {
                nothing_happens(&Member::build(&twin, true, fixed.as_ref()))
            }));
        }
    }
    let correct = self::sources(&folder().join("correct"));
    assert!(correct.len() >= 10, "{correct:?}");
    for source in correct {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(format!("correct::{name}"), move || {
            nothing_happens(&Member::build(&source, false, None))
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn threads_of_a_native_program_meet_at_lines_that_a_user_names() {
    // Both increments, which are accesses at the same place.
    let program = Member::build(&folder().join("counter.c"), false, None);
    let observed = observe(&program);
    let places: Vec<CodePlace> =
        observed.targets.iter().flat_map(|(_, places)| places.clone()).collect();
    let mut controlled = program.control(false);
    let sites = controlled.watch(&places).expect("it is controlled");
    let mut meet = Meet::new(vec![sites.clone(), sites]).at_one_object();
    let mut budget = Budget::new(1, 20);
    let (mut met, mut failed) = (0, 0);
    while budget.begin(&mut meet) {
        let execution = controlled.run(&mut meet).expect("it is controlled");
        met += usize::from(meet.met().len() == 2);
        failed += usize::from(execution.outcome != Outcome::Exited(0));
    }
    assert_eq!(met, 20);
    assert!(failed > 0, "some meeting loses an increment");
}
