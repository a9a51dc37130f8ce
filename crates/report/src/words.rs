//! Sentences about a case. The formats arrange them; no code parses them.

mod misused;
mod outside;
mod serial;
mod short;
mod values;

pub(crate) use misused::{missing as missing_misused, why as why_misused};
pub(crate) use outside::SHARED_STATIC;
pub use outside::{divergence, remark, stopped};
pub use serial::{order as serial_order, outcome as serial_outcome, serial};
pub use short::short;
pub use values::{scalar, values};

use selvedge_model::{Ended, Kind, Mode, Site};

use crate::case::{
    Case, Compared, Failure, Given, Happened, Harm, Holder, Lacks, Lock, Memory, NotReplayed, Note,
    Order, Outcome, Place, Region, Role, State, Subject, Which,
};

/// What a kind of finding is called in sentences.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::DataRace => "data race",
        Kind::Deadlock => "deadlock",
        Kind::AtomicityViolation => "atomicity violation",
        Kind::HighLevelRace => "high-level race",
        Kind::DeterminismViolation => "determinism violation",
        Kind::DisciplineViolation => "discipline violation",
        Kind::LinearizabilityViolation => "linearizability violation",
        Kind::ParallelismViolation => "parallelism violation",
        Kind::Misuse => "misuse",
        Kind::Crash => "crash",
        Kind::Assertion => "failed assertion",
        Kind::Hang => "hang",
    }
}

/// One line that says what a case is.
pub fn summary(case: &Case) -> String {
    what(case.kind, &case.subject)
}

/// Its status, and the verdict if there is one: `confirmed, harmful`.
pub fn standing(case: &Case) -> String {
    match case.verdict {
        Some(verdict) => format!("{}, {}", case.status.name(), verdict.name()),
        None => case.status.name().to_owned(),
    }
}

fn what(of: Kind, subject: &Subject) -> String {
    let kind = kind(of);
    match subject {
        Subject::Program(Failure::Exit { .. }) => format!("failure: {}", names(subject).join(", ")),
        Subject::Program(_) => format!("{kind}: {}", names(subject).join(", ")),
        Subject::Value { block, name } => {
            format!("{kind}: `{name}` of the block `{block}` differs")
        }
        Subject::Observed(_) => format!("{kind}: no serial order gives {}", quoted(subject)),
        Subject::Misused { misuse, of } => format!("{kind}: {}", misused::sentence(misuse, of)),
        _ if subject.is_empty() => kind.to_owned(),
        _ => {
            let preposition = match of {
                Kind::Deadlock => "between",
                Kind::DataRace
                | Kind::HighLevelRace
                | Kind::DisciplineViolation
                | Kind::ParallelismViolation => "on",
                _ => "in",
            };
            let names: Vec<String> = names(subject).iter().map(|n| short(n).into_owned()).collect();
            format!("{kind} {preposition} {}", list(&names))
        }
    }
}

/// What a case is about, by name.
pub fn names(subject: &Subject) -> Vec<String> {
    vec![match subject {
        Subject::Locks(names) | Subject::Observed(names) => return names.clone(),
        Subject::Memory(of) => memory(of),
        Subject::Misused { misuse, of } => misused::subject(misuse, of),
        Subject::Region(of) => region(of),
        Subject::Value { block, name } => return vec![block.clone(), name.clone()],
        Subject::Program(of) => failure(of),
    }]
}

fn memory(of: &Memory) -> String {
    match of {
        Memory::Named(name) => name.clone(),
        Memory::Heap { from: Some(site) } => format!("heap block from {site}"),
        Memory::Heap { from: None } => "heap block".to_owned(),
        Memory::Unnamed => "memory without a name".to_owned(),
        Memory::Window { name, owner, byte, len } => {
            let name = name.as_deref().unwrap_or("window");
            format!("{name} of rank {owner}, {}", bytes(*byte, *len))
        }
        Memory::Buffer { name, owner } => {
            format!("{} of rank {owner}", name.as_deref().unwrap_or("buffer"))
        }
    }
}

/// `byte 4`, `bytes 4 to 7`.
fn bytes(first: u64, len: u64) -> String {
    match len {
        1 => format!("byte {first}"),
        _ => format!("bytes {first} to {}", first + len.max(1) - 1),
    }
}

/// The names in backquotes, as a list.
pub fn quoted(subject: &Subject) -> String {
    list(&names(subject))
}

/// `a`, `a` and `b`, or `a`, `b` and `c`.
pub fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn region(of: &Region) -> String {
    match of {
        Region::Named(name) => name.clone(),
        Region::Locked(site) => format!("code locked at {site}"),
    }
}

/// How a program failed.
pub fn failure(of: &Failure) -> String {
    match of {
        Failure::Signal { number, program: None } => signal(*number),
        Failure::Signal { number, program: Some(name) } => format!("{name}, {}", signal(*number)),
        Failure::Message(text) | Failure::Told(text) => text.clone(),
        Failure::Exit { code, usual } => {
            format!("exit code {code}, where other schedules exit with {usual}")
        }
        Failure::Left => "the program has ended, but threads still wait".to_owned(),
        Failure::Unwinding(text) => {
            format!("a destructor had to wait for another thread while unwinding from: {text}")
        }
        Failure::Steps(steps) => format!(
            "the execution did not end after {steps} steps, in which every thread that could run did"
        ),
        Failure::Time(_) => "the execution did not end within its time limit".to_owned(),
        Failure::Stall(seconds) => format!("a thread reached no scheduling point for {seconds} s"),
        Failure::NoStack { threads, error } => format!("no stack for thread {threads}: {error}"),
        Failure::Shared(site) => {
            format!("the object made at {site} is used by two executions at a time")
        }
        Failure::Unrepeatable { event, expected, found, cause } => format!(
            "the program is not deterministic under one schedule: event {event} was {}, and in a repetition {}; {}",
            happened(expected.as_deref()),
            happened(found.as_deref()),
            outside::cause(cause),
        ),
    }
}

/// An event in words; `None` is the end of the execution.
fn happened(what: Option<&Happened>) -> String {
    match what {
        Some(Happened { act, thread, site }) => {
            format!("`{}` of thread {thread} at {site}", act.words())
        }
        None => "the end".to_owned(),
    }
}

/// How an execution ended, in a few words.
pub fn outcome(of: &Outcome) -> String {
    match of {
        Outcome::Exit(code) => format!("exit code {code}"),
        Outcome::Failed { kind, subject } => what(*kind, subject),
        Outcome::Undecided => "not decided: the execution was cut off".to_owned(),
        Outcome::Told(text) => text.clone(),
    }
}

/// Which order of the parts of a finding it is.
pub fn order(of: &Order) -> String {
    which(&of.which)
}

fn which(of: &Which) -> String {
    match of {
        Which::First { thread, site } => format!("thread {thread} first, at {site}"),
        // A rank is called `rank 1`, which says what it is.
        Which::FirstRank { rank, site } => format!("{rank} first, at {site}"),
        Which::Only => "when it happens".to_owned(),
        Which::Told(text) => text.clone(),
    }
}

/// What to call two executions that stand beside each other.
pub fn compared(of: &Compared) -> [String; 2] {
    let first = match &of.which {
        Some(order) => which(order),
        None => "no thread is stopped".to_owned(),
    };
    let second = match &of.which {
        Some(_) => "the other order",
        None => "as it happens",
    };
    [format!("{first}: {}", outcome(&of.outcome)), format!("{second}: {}", outcome(&of.against))]
}

/// What orders led to, a sentence for each; orders of a kind that led to the same are told once.
pub fn outcomes(of: &[Order]) -> Vec<String> {
    let mut told: Vec<(Option<&Site>, String, String, usize)> = Vec::new();
    for of in of {
        let site = match &of.which {
            Which::First { site, .. } | Which::FirstRank { site, .. } => Some(site),
            Which::Only | Which::Told(_) => None,
        };
        let led_to = led_to(of);
        match told.iter_mut().find(|(at, _, known, _)| (*at, known) == (site, &led_to)) {
            Some((.., more)) if site.is_some() => *more += 1,
            _ => told.push((site, order(of), led_to, 0)),
        }
    }
    let sentence = |(_, order, led_to, more): (_, String, String, usize)| match more {
        0 => format!("{order}: {led_to}"),
        1 => format!("{order}: {led_to} (with another thread, too)"),
        n => format!("{order}: {led_to} (with {n} other threads, too)"),
    };
    told.into_iter().map(sentence).collect()
}

/// What an order led to.
pub fn led_to(of: &Order) -> String {
    match of.harm {
        Harm::Unknown => match &of.outcome {
            Outcome::Failed { .. } => {
                format!("{}; whether the finding is the cause is not known", outcome(&of.outcome))
            }
            Outcome::Undecided | Outcome::Exit(_) | Outcome::Told(_) => outcome(&of.outcome),
        },
        Harm::Nothing => match &of.outcome {
            // It fails in the same way without the finding, or how it ends is not known.
            Outcome::Failed { .. } => {
                format!("as in undisturbed executions: {}", outcome(&of.outcome))
            }
            Outcome::Undecided => outcome(&of.outcome),
            Outcome::Exit(_) | Outcome::Told(_) => {
                format!("nothing wrong ({})", outcome(&of.outcome))
            }
        },
        Harm::Output => "the output differs".to_owned(),
        Harm::State => "an ensured value differs".to_owned(),
        Harm::Exit | Harm::Failure => outcome(&of.outcome),
    }
}

/// What a thread does at a place: `thread T1 writes, holding `a` (shared)`. That no lock is held is
/// worth saying of a data race only.
pub fn sentence(of: Kind, place: &Place) -> String {
    let does = match object(&place.role) {
        Some(object) => format!("{} `{object}`", verb(&place.role)),
        None => verb(&place.role).to_owned(),
    };
    let held: Vec<String> = place.locks().iter().map(lock).collect();
    let holding = match held.as_slice() {
        [] if of == Kind::DataRace && place.held.is_some() => ", holding no lock".to_owned(),
        [] => String::new(),
        held => format!(", holding {}", held.join(", ")),
    };
    if place.thread.is_empty() {
        return format!("{does} here");
    }
    let about = if place.approximate { " (or near here)" } else { "" };
    if place.role.is_of_rank() {
        return format!("{} {does}{holding}", place.thread);
    }
    format!("thread {} {does}{about}{holding}", place.thread)
}

fn lock(held: &Lock) -> String {
    match held.mode {
        Mode::Exclusive => format!("`{}`", held.name),
        Mode::Shared => format!("`{}` (shared)", held.name),
    }
}

/// Where a thread that is about to acquire a lock acquired the locks that it holds.
pub fn acquisitions(place: &Place) -> Vec<String> {
    if !matches!(place.role, Role::Acquire(_)) {
        return Vec::new();
    }
    let from = |h: &Lock| format!("thread {} has held {} since {}", place.thread, lock(h), h.site);
    place.locks().iter().map(from).collect()
}

/// The name of a role in JSON.
pub fn role(of: &Role) -> String {
    let name = match of {
        Role::Load => "load",
        Role::Store => "store",
        Role::Called { function, writes } => {
            let does = if *writes { "writes" } else { "reads" };
            return format!("{function} ({does})");
        }
        Role::Read => "read",
        Role::Write => "write",
        Role::AtomicRead => "atomic-read",
        Role::AtomicWrite => "atomic-write",
        Role::Free => "free",
        Role::Acquire(_) => "acquire",
        Role::Release(_) => "release",
        Role::Fork(_) => "fork",
        Role::Join(_) => "join",
        Role::Arrive(_) => "arrive",
        Role::Leave(_) => "leave",
        Role::Post(_) => "post",
        Role::Wait(_) => "wait",
        Role::Enter(_) => "enter",
        Role::Await(_) => "await",
        Role::Sleep => "sleep",
        Role::Fail => "fail",
        Role::Ensure => "ensure",
        Role::Observe => "observe",
        Role::Part(part) => misused::role(*part),
    };
    name.to_owned()
}

fn verb(of: &Role) -> &'static str {
    match of {
        Role::Read => "reads",
        Role::Write => "writes",
        Role::AtomicRead => "reads atomically",
        Role::AtomicWrite => "writes atomically",
        Role::Free => "frees",
        Role::Acquire(_) => "acquires",
        Role::Release(_) => "releases",
        Role::Fork(_) => "starts",
        Role::Join(_) => "joins",
        Role::Arrive(_) => "arrives at",
        Role::Leave(_) => "leaves",
        Role::Post(_) => "posts",
        Role::Wait(_) => "waits for",
        Role::Enter(_) => "enters",
        Role::Await(_) => "waits for a notification on",
        Role::Sleep => "waits to be woken",
        Role::Fail => "fails",
        Role::Ensure => "ensures the value",
        Role::Observe => "observes the value",
        Role::Part(part) => misused::verb(*part),
        Role::Load => "loads",
        Role::Store => "stores",
        Role::Called { writes: true, .. } => "writes with",
        Role::Called { writes: false, .. } => "reads with",
    }
}

/// The object of a role, if it is not the subject of the case.
pub fn object(of: &Role) -> Option<String> {
    match of {
        Role::Acquire(name) | Role::Release(name) | Role::Fork(name) | Role::Join(name) => {
            Some(name.clone())
        }
        Role::Arrive(name) | Role::Leave(name) | Role::Post(name) | Role::Wait(name) => {
            Some(name.clone())
        }
        Role::Await(name) => Some(name.clone()),
        Role::Enter(of) => Some(region(of)),
        Role::Read | Role::Write | Role::AtomicRead | Role::AtomicWrite | Role::Part(_) => None,
        Role::Free | Role::Sleep | Role::Fail | Role::Ensure | Role::Observe => None,
        Role::Load | Role::Store => None,
        Role::Called { function, .. } => Some(function.clone()),
    }
}

/// A value that differs, with what it was in each execution.
pub fn state(of: &State) -> String {
    let which = match of.nth {
        0 => format!("`{}`", of.name),
        n => format!("the {} `{}` of its thread", ordinal(u64::from(n) + 1), of.name),
    };
    format!("{which} is {} in one execution and {} in another", given(&of.first), given(&of.second))
}

/// The longest text of a value in a sentence.
const LONGEST_VALUE: usize = 120;

fn given(of: &Given) -> String {
    match of {
        Given::Value(value) => {
            let text = value.to_string();
            match text.char_indices().nth(LONGEST_VALUE) {
                Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
                None => text,
            }
        }
        Given::Digest(digest) => format!("a value with the digest {digest}"),
        Given::Nothing => "not ensured at all".to_owned(),
    }
}

/// `1st`, `2nd`, `3rd`, `4th`.
fn ordinal(n: u64) -> String {
    let suffix = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

/// A note as a sentence.
pub fn note(of: &Note) -> String {
    match of {
        Note::HeapBlock { byte, thread, at: place } => format!(
            "the memory is byte {byte} of a heap block that thread {thread} allocated{}",
            at(place.as_ref())
        ),
        Note::StartedBy { thread, by, at: place } => {
            format!("thread {thread} was started by thread {by}{}", at(place.as_ref()))
        }
        Note::PanickedBefore { thread, text, at: place } => {
            format!("thread {thread} panicked before{}: {text}", at(place.as_ref()))
        }
        Note::NullPointer => "the program used a null pointer".to_owned(),
        Note::Said(line) => format!("the program printed: {line}"),
        Note::EndedWith(Ended::Code(code)) => format!("the program ended with exit code {code}"),
        Note::EndedWith(Ended::Signal(number)) => {
            format!("the program ended with {}", signal(*number))
        }
        Note::Waits { thread, wants, at, holder } => {
            let what = match (wants, object(wants)) {
                (Role::Join(thread), _) => format!("thread {thread} to end"),
                (Role::Await(cond), _) => format!("a notification on `{cond}`"),
                (_, Some(object)) => format!("`{object}`"),
                (_, None) => "another thread to wake it".to_owned(),
            };
            let holder = match holder {
                Some(Holder::Itself) => ", which it holds itself".to_owned(),
                Some(Holder::Thread(other)) if !matches!(wants, Role::Join(_)) => {
                    format!(", which thread {other} holds")
                }
                _ => String::new(),
            };
            format!("thread {thread} waits for {what}{holder}, at {at}")
        }
        Note::LastOwner => {
            "it is not a race if the later access is made by the owner of the last `Arc`".to_owned()
        }
        Note::NotReplayed(why) => not_replayed(why),
        Note::Broken { thread, step, lacks } => broken(thread, step, lacks),
        Note::Clang(said) => format!("clang: {said}"),
        Note::NoEffect => "another thread ran in between, but the result did not change".to_owned(),
        Note::InFlight { call, rank, window, at, barrier } => {
            let of = window.as_ref().map_or(String::new(), |name| format!(" of `{name}`"));
            format!(
                "no flush, unlock or fence{of} completes the `{call}` of rank {rank} between {at} and the barrier at {barrier}"
            )
        }
        Note::LocalOnly { call, rank } => format!(
            "the `{call}` of rank {rank} was completed at the origin only: flush_local and waiting for a request do not complete it at the target"
        ),
        Note::CausedBy { kind, subject, sites } => {
            let sites: Vec<String> = sites.iter().map(ToString::to_string).collect();
            format!(
                "the {} decides it: turning round the order of {}, and nothing else, changes the value",
                what(*kind, subject),
                sites.join(" and ")
            )
        }
        Note::OtherBuild(build) => {
            format!("the first execution is one of another build of the program: {build}")
        }
        Note::Inferred => {
            "anomaly: in earlier executions the value was always the same; assert it in the source if it must be".to_owned()
        }
        Note::Told(text) => text.clone(),
    }
}

/// What an access lacks of a step of its variable's discipline.
fn broken(thread: &str, step: &str, lacks: &Lacks) -> String {
    match lacks {
        Lacks::Lock(lock) => {
            format!("thread {thread} does not hold `{lock}`, which `{step}` demands")
        }
        Lacks::OnlyReads => format!("thread {thread} writes, but `{step}` allows only reads"),
        Lacks::Ownership => {
            format!(
                "another thread has the variable: `{step}` is for one thread, and no further step lets thread {thread} have it"
            )
        }
        Lacks::Order(devices) => {
            format!(
                "nothing of {} between, which `{step}` needs to follow the accesses of other threads",
                list(devices)
            )
        }
    }
}

fn at(site: Option<&Site>) -> String {
    site.map_or(String::new(), |site| format!(" at {site}"))
}

fn not_replayed(why: &NotReplayed) -> String {
    match why {
        NotReplayed::Interrupted => {
            "its schedule was not replayed: the command was stopped first".to_owned()
        }
        NotReplayed::Failed(error) => format!("not replayed: {error}"),
        NotReplayed::Otherwise { outcome: led_to, diverged } => {
            let how = diverged.as_ref().map_or(String::new(), |d| {
                format!(", and the replay diverged {}", outside::diverged(d))
            });
            format!(
                "its schedule does not replay it: the replay led to {}{how}; something in the program is not controlled",
                outcome(led_to)
            )
        }
        NotReplayed::Once { diverged } => {
            let how = diverged
                .as_ref()
                .map_or(String::new(), |d| format!(": it diverged {}", outside::diverged(d)));
            format!("it happened once, but its schedule does not replay it{how}")
        }
    }
}

/// A signal by name.
pub fn signal(number: i32) -> String {
    let known = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL (illegal instruction)",
        5 => "SIGTRAP",
        6 => "SIGABRT (abort)",
        7 => "SIGBUS (bus error)",
        8 => "SIGFPE (arithmetic error)",
        9 => "SIGKILL",
        11 => "SIGSEGV (segmentation fault)",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        31 => "SIGSYS (bad system call)",
        other => return format!("signal {other}"),
    };
    known.to_owned()
}

/// How a program ended, in a few words: `exited with 1`.
pub fn ended(of: Ended) -> String {
    match of {
        Ended::Code(code) => format!("exited with {code}"),
        Ended::Signal(number) => format!("killed by {}", signal(number)),
    }
}

/// How a program ended, in a sentence.
pub fn program_ended(of: Ended) -> String {
    match of {
        Ended::Code(_) => format!("the program {}", ended(of)),
        Ended::Signal(_) => format!("the program was {}", ended(of)),
    }
}

/// What was seen of processes that the program started, of which some went on when it had ended.
pub fn children(all: usize, running: usize) -> Vec<String> {
    let of = |n: usize| match n {
        1 => "1 child process was".to_owned(),
        n => format!("{n} child processes were"),
    };
    let mut lines = Vec::new();
    if all > 0 {
        lines.push(format!("{} observed for data races and misuse only", of(all)));
    }
    if running > 0 {
        let still =
            "still running when the program ended; what they did after that was not observed";
        lines.push(format!("{} {still}", of(running)));
    }
    lines
}

/// `1 finding`, `2 findings`.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
