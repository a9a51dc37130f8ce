//! One execution: from letting the process go to its end.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_engine::Execution;
use selvedge_explore::{Choice, Driver, Strategy};
use selvedge_model::{Blocked, ThreadId, Uncontrolled};

use super::contents;
use super::ending::{End, LeftBehind};
use super::history::{History, Lookup};
use super::memory;
use super::output::ensure;
use super::outside::{system_call, uncontrolled};
use super::wire::{self, Control, HOST, request, status};
use super::{Controlled, Flowed};
use crate::flow::tables::Placed;
use crate::names::static_place;
use crate::places::Names;
use crate::process;
use crate::session::Error;
use crate::wire::Record;

/// How long a thread may sleep in the kernel before others go on.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long to wait for a thread that is away before virtual time passes.
const ABSENCE: Duration = Duration::from_millis(50);

struct Run<'a> {
    program: &'a mut Controlled,
    strategy: &'a mut dyn Strategy,
    driver: Driver,
    history: History,
    running: Option<ThreadId>,
    uncontrolled: Vec<Uncontrolled>,
    begin: Instant,
    /// When anything was last seen to happen, and what.
    active: Instant,
    seen: (u32, u32),
}

/// Says how to run, and lets the process go on.
fn start(program: &mut Controlled) {
    let mut flags = 0;
    for (wanted, flag) in [
        (program.settings.fork, wire::FORK),
        (program.releases, wire::RELEASES),
        (program.settings.accesses, wire::ACCESSES),
        (program.settings.values, wire::VALUES),
        (program.settings.flow, wire::FLOW),
        (program.settings.stars, wire::STARS),
    ] {
        flags |= if wanted { flag } else { 0 };
    }
    program.publish_focus();
    let c = program.memory.control();
    c.reset(flags, program.seed);
    c.limit.store(program.settings.records.min(wire::LOG as u32), Ordering::Relaxed);
    program.runs += 1;
    c.go.store(program.runs, Ordering::Release);
    memory::wake(&c.go);
}

/// Runs the process that waits before `main`. The strategy has begun.
pub(super) fn execute(
    program: &mut Controlled,
    strategy: &mut dyn Strategy,
) -> Result<Execution, Error> {
    program.clear_output().map_err(Error::Memory)?;
    program.reset_maps();
    program.symbols.calls.clear();
    let (releases, seed) = (program.releases, program.seed);
    start(program);
    let now = Instant::now();
    let history = History::new(&program.names, &program.settings.judges);
    let mut run = Run {
        program,
        strategy,
        driver: Driver::default(),
        history,
        running: None,
        uncontrolled: Vec::new(),
        begin: now,
        active: now,
        seen: (0, 0),
    };
    let end = run.finish()?;
    let Run { history, uncontrolled: outside, driver, running, .. } = run;
    let steps = history.steps;
    let Driver { mut schedule, stops, times, .. } = driver;
    (schedule.seed, schedule.releases) = (seed, releases);
    let turn = ThreadId(program.memory.control().turn.load(Ordering::Relaxed));
    let turn = Some(turn).filter(|t| t.index() < program.memory.control().threads());
    let unknown = unknown(program, &history);
    program.named = None;
    program.last = history.objects;
    program.contents = contents::read(program.memory.control(), &history.seen);
    program.flowed = Flowed {
        unknown,
        broken: history.flow.broken.or_else(|| program.too_many_words()),
        words: history.flow.words,
        focus: history.focus,
    };
    let (output, errors) = program.take_output();
    let crash = match end {
        End::Signaled(signal) => program.crash(signal),
        _ => None,
    };
    let last = crash.as_ref().and_then(|c| c.thread).or(turn).or(running).unwrap_or(ThreadId(0));
    let (cut_off, exited) = (end.is_cut_off(), matches!(end, End::Exited(_)));
    let left = LeftBehind { output: &output, errors: &errors, steps, last, crash: crash.as_ref() };
    let outcome = program.outcome(end, &left);
    let mut blocks = history.blocks.finish().placed(&program.symbols);
    if exited {
        ensure(&program.settings.ensured, &program.arguments, &output, &mut blocks);
    }
    let told = uncontrolled(&outside);
    program.asked = (outside, program.sources());
    Ok(Execution {
        outcome,
        choices: schedule.len(),
        schedule,
        events: history.events,
        stops,
        times,
        last,
        findings: Vec::new(),
        analyses: Vec::new(),
        output,
        errors,
        releases_matter: program.memory.control().tried.load(Ordering::Relaxed) != 0,
        cut_off,
        uncontrolled: told,
        steps: steps as usize,
        blocks: Arc::new(blocks),
    })
}

/// Calls of code that was not followed, by name, with the functions that threads began in and that were not.
fn unknown(program: &Controlled, history: &History) -> BTreeMap<String, u64> {
    let mut unknown = history.flow.unknown.clone();
    if program.settings.flow {
        for (i, &site) in history.objects.begins.iter().enumerate().skip(1) {
            if !history.flow.has_entered(ThreadId(i as u32)) {
                let site = program.symbols.site(site);
                let function = site.frame().map_or("", |f| &*f.function);
                let name = if function.is_empty() { site.to_string() } else { function.into() };
                *unknown.entry(name).or_default() += 1;
            }
        }
    }
    unknown
}

impl Run<'_> {
    fn finish(&mut self) -> Result<End, Error> {
        let end = loop {
            let wakeups = self.control().wakeups.load(Ordering::SeqCst);
            if let Some(status) = self.ended()? {
                let refused = self.program.refusal();
                if let Some(refusal) = refused {
                    self.program.stop();
                    return Err(refusal);
                }
                break match (status.code(), status.signal()) {
                    (Some(code), _) => End::Exited(code),
                    (None, signal) => End::Signaled(signal.unwrap_or(0)),
                };
            }
            if self.control().turn.load(Ordering::Acquire) == HOST
                && let Some(end) = self.answer()
            {
                self.leave_to_debugger()?;
                break end;
            }
            self.wait_for_wakeup(wakeups);
            self.program.tell_regions();
            if self.begin.elapsed() > self.program.settings.time {
                break End::Time;
            }
            if self.program.settings.is_interrupted() {
                self.program.stop();
                return Err(Error::Interrupted);
            }
        };
        self.read();
        self.strategy.end(&self.history.pending);
        let end = match end {
            End::Steps if self.is_stuck() => End::NoProgress,
            end => end,
        };
        if !matches!(end, End::Exited(_) | End::Signaled(_)) {
            self.end_process()?;
        }
        let child = self.control().child.load(Ordering::Acquire) as i32;
        if self.program.settings.fork {
            // What the program started and did not wait for.
            process::kill(-child);
        } else {
            self.program.stop();
        }
        Ok(end)
    }

    /// Whether the execution that was too long would go on for ever.
    fn is_stuck(&self) -> bool {
        let c = self.control();
        let asker = ThreadId(c.asker.load(Ordering::Relaxed));
        let mut runnable = self.enabled();
        runnable.push(asker);
        !c.any_away() && self.driver.fairness.is_stuck(self.history.steps, &runnable)
    }

    /// The threads that can run, in ascending order.
    fn enabled(&self) -> Vec<ThreadId> {
        let c = self.control();
        (0..c.threads()).filter(|&i| c.is_enabled(i)).map(|i| ThreadId(i as u32)).collect()
    }

    /// Lets the user of the debugger look at the program that cannot go on, until they end it.
    fn leave_to_debugger(&mut self) -> Result<(), Error> {
        if self.program.settings.debugger.is_some() {
            process::interrupt(self.control().child.load(Ordering::Acquire) as i32);
            while self.ended()?.is_none() {
                std::thread::sleep(PATIENCE);
            }
        }
        Ok(())
    }

    fn control(&self) -> &Control {
        self.program.memory.control()
    }

    /// Waits until the program wakes the host again, or for a short time.
    fn wait_for_wakeup(&mut self, wakeups: u32) {
        // The end of a process that only we wait for does not wake us.
        let settings = &self.program.settings;
        let micros = if settings.fork || settings.debugger.is_some() { 5_000 } else { 300 };
        let c = self.program.memory.control();
        memory::wait(&c.wakeups, wakeups, Duration::from_micros(micros));
        let now = (c.wakeups.load(Ordering::SeqCst), c.log_len.load(Ordering::Relaxed));
        if now != self.seen {
            self.seen = now;
            self.active = Instant::now();
        } else if self.active.elapsed() > PATIENCE {
            self.watch_over();
        }
    }

    /// Whether the execution is over.
    fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        let c = self.program.memory.control();
        if self.program.settings.fork {
            if c.ended.load(Ordering::Acquire) == self.program.runs {
                return Ok(Some(ExitStatus::from_raw(c.exit.load(Ordering::Relaxed) as i32)));
            }
            // The server ends only if it is killed.
            if self.active.elapsed() > PATIENCE
                && let Some(Ok(Some(_))) = self.program.process.as_mut().map(Child::try_wait)
            {
                self.program.stop();
                return Err(Error::NotControlled);
            }
            return Ok(None);
        }
        match self.program.process.as_mut().map(Child::try_wait) {
            Some(Ok(status)) => Ok(status),
            Some(Err(e)) => Err(Error::Wait(e)),
            None => Err(Error::NotControlled),
        }
    }

    fn end_process(&mut self) -> Result<(), Error> {
        if !self.program.settings.fork {
            return Ok(());
        }
        let begin = Instant::now();
        loop {
            let wakeups = self.control().wakeups.load(Ordering::SeqCst);
            if self.ended()?.is_some() {
                return Ok(());
            }
            let child = self.control().child.load(Ordering::Acquire) as i32;
            process::kill(child);
            memory::wait(&self.control().wakeups, wakeups, Duration::from_millis(1));
            if begin.elapsed() > Duration::from_secs(5) {
                self.program.stop();
                return Ok(());
            }
        }
    }

    fn read(&mut self) {
        self.look(true);
    }

    /// Reads what has happened. The last step is over, or its thread is still in the middle of what follows. The time that this takes is not the
    /// program's.
    fn look(&mut self, is_over: bool) {
        let begin = Instant::now();
        self.program.read_maps();
        let Run { program, history, strategy, driver, .. } = self;
        let Controlled {
            memory, places, symbols, modules, resolver, shm, tables, settings, ..
        } = &mut **program;
        let recorded = &settings.flow;
        let text = |at, len| shm.as_ref().and_then(|shm| shm.text(at, len));
        let mut placed = Placed { tables: tables.as_ref(), inner: resolver.as_mut() };
        let resolver = &mut placed;
        let names = Names { symbols, modules, resolver, text: &text, race: &|_| None, places };
        let statics = |addr: u64| static_place(modules, addr);
        let value = |record: &Record| shm.as_ref().and_then(|shm| shm.value(record));
        let bytes = |record: &Record| shm.as_ref().and_then(|shm| shm.bytes(record));
        let tables = tables.as_ref().filter(|_| *recorded);
        let mut lookup = Lookup { names, statics: &statics, value: &value, bytes: &bytes, tables };
        let fairness = &mut driver.fairness;
        history.read(memory.control(), &mut lookup, *strategy, (fairness, is_over));
        self.begin += begin.elapsed();
    }

    /// Reads the words of the data flow, whose memory is used again. They can be many more than there are records; each
    /// makes events, which take the memory of this process.
    fn read_words(&mut self) -> Option<End> {
        const MOST_EVENTS: usize = 1 << 25;
        self.look(false);
        if self.history.events.len() > MOST_EVENTS {
            return Some(End::Events(MOST_EVENTS));
        }
        self.program.reuse_values();
        let c = self.program.memory.control();
        give(c, ThreadId(c.asker.load(Ordering::Relaxed)));
        None
    }

    /// Answers the program's question; how the execution ends if there is no answer.
    fn answer(&mut self) -> Option<End> {
        let what = self.control().request.load(Ordering::Acquire);
        if what == request::LIMIT {
            return Some(End::Steps);
        }
        if what == request::NONE {
            return None;
        }
        if what == request::NUMBER {
            self.number();
            return None;
        }
        if what == request::READ {
            return self.read_words();
        }
        let c = self.program.memory.control();
        let asker = ThreadId(c.asker.load(Ordering::Relaxed));
        self.running = Some(asker);
        let mut enabled = self.enabled();
        match enabled[..] {
            [] => self.stuck(what == request::STUCK_UNLESS_SIGNALLED),
            [only] => {
                give(self.control(), only);
                self.running = Some(only);
                None
            }
            _ => {
                self.read();
                if self.driver.fairness.all_spin(&enabled) && self.control().pass_time() {
                    enabled = self.enabled();
                }
                let thread = self.choose(&enabled);
                give(self.control(), thread);
                None
            }
        }
    }

    fn choose(&mut self, enabled: &[ThreadId]) -> ThreadId {
        let c = self.program.memory.control();
        let yielding = self.running.is_some_and(|t| {
            c.slots[t.index() % wire::THREADS].flags.load(Ordering::Relaxed) & wire::YIELDS != 0
        });
        let choice = Choice {
            step: self.driver.choices(),
            enabled,
            running: self.running,
            yielding,
            pending: &self.history.pending,
        };
        let events = self.history.events.len();
        let thread = self.driver.choose(self.strategy, &choice, Some(events));
        self.running = Some(thread);
        thread
    }

    /// Chooses the number that the program asks for.
    fn number(&mut self) {
        // The strategy shall know which thread asks.
        self.read();
        let c = self.program.memory.control();
        let below = c.number.load(Ordering::Relaxed).max(1);
        let place = c.number_place.load(Ordering::Relaxed);
        let number = self.driver.number_at(self.strategy, below, place);
        c.number.store(number, Ordering::Relaxed);
        give(c, ThreadId(c.asker.load(Ordering::Relaxed)));
    }

    /// No thread can run, except after a signal if the program handles some.
    fn stuck(&mut self, signals: bool) -> Option<End> {
        let c = self.program.memory.control();
        if c.any_away() {
            if self.active.elapsed() > ABSENCE {
                c.pass_time();
            }
            return None;
        }
        let state = |i: usize| c.slots[i].status.load(Ordering::Acquire);
        if (0..c.threads()).all(|i| state(i) == status::ENDED) {
            return None;
        }
        if c.pass_time() {
            return None;
        }
        let child = c.child.load(Ordering::Acquire);
        if signals && !settled(child) || c.enabled().0 > 0 {
            return None;
        }
        self.read();
        Some(End::Stuck(self.blocked()))
    }

    fn blocked(&self) -> Vec<Blocked> {
        let c = self.control();
        let waiting = |&i: &usize| c.slots[i].status.load(Ordering::Acquire) == status::WAITING;
        (0..c.threads().min(self.history.pending.len()))
            .filter(waiting)
            .map(|i| {
                let pending = self.history.pending[i];
                let (wants, mode) = pending.step.awaited();
                Blocked {
                    thread: ThreadId(i as u32),
                    site: pending.site,
                    wants,
                    mode,
                    holds: self.history.held[i].clone(),
                    waits_for: self.history.waits_for(i),
                }
            })
            .collect()
    }

    /// Nothing has happened for a while: if the thread whose turn it is sleeps in the kernel, the
    /// others go on without it.
    fn watch_over(&mut self) {
        let c = self.program.memory.control();
        let turn = c.turn.load(Ordering::Acquire) as usize;
        let child = c.child.load(Ordering::Acquire);
        let Some(slot) = c.slots.get(turn).filter(|_| turn < c.threads() && child != 0) else {
            return;
        };
        let tid = slot.tid.load(Ordering::Acquire);
        if tid == 0 || !sleeps(child, tid) {
            // It computes, or a debugger has stopped it: if it sleeps later, that counts from then on.
            self.active = Instant::now();
            return;
        }
        let away = slot.status.compare_exchange(
            status::RUNNING,
            status::AWAY,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if away.is_ok() {
            let (number, on) = system_call(child, tid);
            let thread = ThreadId(turn as u32);
            self.uncontrolled.push(Uncontrolled::SystemCall { thread, number, on });
            c.asker.store(turn as u32, Ordering::Relaxed);
            c.request.store(request::CHOOSE, Ordering::Relaxed);
            c.turn.store(HOST, Ordering::Release);
            self.active = Instant::now();
        }
    }
}

fn give(c: &Control, thread: ThreadId) {
    let slot = &c.slots[thread.index() % wire::THREADS];
    slot.status.store(status::RUNNING, Ordering::Relaxed);
    c.request.store(request::NONE, Ordering::Relaxed);
    c.turn.store(thread.0, Ordering::Relaxed);
    slot.word.store(1, Ordering::Release);
    memory::wake(&slot.word);
}

/// Whether the kernel has put the thread to sleep.
fn sleeps(process: u32, thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
    // The name in parentheses may contain anything.
    stat.is_ok_and(|s| s.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'D'])))
}

/// Whether all threads of the process sleep and none has a signal to handle. Waits a little for those
/// that are about to. Expensive: the kernel takes milliseconds to remove a process that was inspected so.
fn settled(process: u32) -> bool {
    let quiet = |status: &str| {
        let field = |name: &str| {
            status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim).unwrap_or_default()
        };
        let signals = |name: &str| u64::from_str_radix(field(name), 16).unwrap_or(0);
        let pending = (signals("SigPnd:") | signals("ShdPnd:")) & !signals("SigBlk:");
        field("State:").starts_with(['S', 'Z']) && pending == 0
    };
    let all_quiet = || {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return true };
        threads.flatten().all(|thread| {
            std::fs::read_to_string(thread.path().join("status")).is_ok_and(|s| quiet(&s))
        })
    };
    (0..50).any(|i| {
        if i > 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
        all_quiet()
    })
}
