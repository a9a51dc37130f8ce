//! Text traces: one event a line, `thread|op|site`.
//!
//! The `std` format of the RAPID trace tools, with operations of our own beside theirs. The thread is
//! any name; the site is free text, and `file:line` and `file:line:column` are understood. Empty lines
//! and lines that start with `#` are skipped.
//!
//! | operation | event |
//! | --- | --- |
//! | `r(x)` `w(x)` | plain read, write |
//! | `ar(x)` `aw(x)` `au(x)` | atomic load, store, read-modify-write; `ar(x,relaxed)` names the order, which is `seqcst` otherwise |
//! | `fence(order)` | fence |
//! | `acq(l)` `rel(l)` `racq(l)` `rrel(l)` | lock, in exclusive and in shared mode |
//! | `fork(t)` `join(t)` `start()` `stop()` | threads |
//! | `bar(b)` | crossing a barrier, see below |
//! | `arrive(b,n)` `leave(b,n)` | the same in two steps, in round n |
//! | `post(s)` `wait(s)` | semaphore |
//! | `notify(c)` `notifyall(c)` `wake(c)` | condition variable |
//! | `begin(label)` `end(label)` | atomic region; `det:NAME` deterministic, `atomic:NAME` atomic, and `task:`, `star:`, `commutes:`, `lazy:` and `stmt:` as [`RegionKind`] says |
//! | `alloc(x)` `free(x)` | memory |
//! | `get(l,x)` `set(x,l…)` | local l takes shared x, shared x takes what locals make: a read and a write, with data flow |
//! | `let(l,a,b…)` `if(l…)` | local l takes what others make, a branch on locals |
//! | `focus(x)` | what x holds now is part of the result |
//! | `use(l)` `take(l)` | the parts that data flow is made of, for what fits none of these |
//!
//! A variable is a name, which stands for a word of memory of its own, or `0xADDRESS:LENGTH`.
//!
//! `bar(b)` stands for arriving and leaving. A thread leaves when its next event comes, so that
//! all threads that cross meanwhile are in the same round; a thread that crosses again starts the next
//! round, and one that has not crossed yet joins the current one. A recorder that may log an event
//! after a barrier before another thread's crossing of it should write `arrive` and `leave`.

use std::io::{self, BufRead, Read, Write};

use rustc_hash::FxHashMap;

use super::flow::{self, Joiner};
use super::{Position, TraceError};
use crate::{
    Access, AtomicOp, BarrierId, CondId, Event, Flow, LoadOrder, LocalId, LockId, Mode, Op, Range,
    Region, RegionId, RegionKind, SemaphoreId, Site, SiteId, StoreOrder, Symbols, ThreadId,
    UpdateOrder, Wakes,
};

/// A line that is longer is refused, so that a file without line ends cannot fill the memory.
pub const MAX_LINE: usize = 1 << 20;

/// How many events a batch has at most, give or take the ones a single line stands for.
const BATCH: usize = 1 << 14;

/// Reads text traces.
pub struct TextReader<R> {
    input: R,
    symbols: Symbols,
    /// The site column's texts seen so far, which are few.
    sites: FxHashMap<Box<str>, SiteId>,
    line: u64,
    buffer: Vec<u8>,
    /// The lines of the events of the last batch.
    lines: Vec<u64>,
    barriers: Vec<Crossing>,
    /// By thread, the barrier it has arrived at and not left.
    leaving: Vec<Option<Event>>,
    anything: bool,
}

/// The current round of a barrier, and who has crossed it.
#[derive(Default)]
struct Crossing {
    round: u32,
    crossed: Vec<ThreadId>,
}

impl<R: BufRead> TextReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> TextReader<R> {
        TextReader {
            input,
            symbols: Symbols::default(),
            sites: FxHashMap::default(),
            line: 0,
            buffer: Vec::new(),
            lines: Vec::new(),
            barriers: Vec::new(),
            leaving: Vec::new(),
            anything: false,
        }
    }

    /// The names and sites of everything read so far.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The line of an event of the last batch.
    pub fn line_of(&self, index: usize) -> u64 {
        self.lines.get(index).copied().unwrap_or(self.line)
    }

    /// Appends the next events to `batch`; none at the end.
    pub fn read(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        self.lines.clear();
        while batch.len() < BATCH {
            if !self.next_line()? {
                if !self.anything {
                    return Err(TraceError::Empty);
                }
                let leaving: Vec<Event> =
                    self.leaving.iter_mut().filter_map(Option::take).collect();
                leaving.into_iter().for_each(|e| self.emit(e, batch));
                return Ok(());
            }
            let line = std::mem::take(&mut self.buffer);
            let outcome = self.parse_line(&line, batch);
            self.buffer = line;
            outcome.map_err(|problem| TraceError::invalid(Position::Line(self.line), problem))?;
        }
        Ok(())
    }

    fn next_line(&mut self) -> Result<bool, TraceError> {
        self.buffer.clear();
        self.line += 1;
        let limit = MAX_LINE as u64 + 1;
        let n = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        if n as u64 == limit && self.buffer.last() != Some(&b'\n') {
            return Err(TraceError::invalid(
                Position::Line(self.line),
                format!("the line is longer than {MAX_LINE} bytes"),
            ));
        }
        Ok(n > 0)
    }

    fn parse_line(&mut self, line: &[u8], batch: &mut Vec<Event>) -> Result<(), String> {
        let line = std::str::from_utf8(line)
            .map_err(|_| "this is neither text nor a binary Selvedge trace".to_owned())?
            .trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut fields = line.splitn(3, '|');
        let (Some(thread), Some(op), Some(site)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("expected thread|op|site, found {}", quoted(line)));
        };
        let (thread, op, site) = (thread.trim(), op.trim(), site.trim());
        if thread.is_empty() {
            return Err("the thread has no name".into());
        }
        self.anything = true;
        let thread = ThreadId(self.symbols.threads.intern_str(thread));
        let site = self.site(site);
        self.parse_op(thread, site, op, batch)
    }

    fn site(&mut self, text: &str) -> SiteId {
        if let Some(&site) = self.sites.get(text) {
            return site;
        }
        let site = SiteId(self.symbols.sites.intern(Site::parse(text)));
        self.sites.insert(text.into(), site);
        site
    }

    fn parse_op(
        &mut self,
        thread: ThreadId,
        site: SiteId,
        text: &str,
        batch: &mut Vec<Event>,
    ) -> Result<(), String> {
        let (name, operand) = match text.split_once('(') {
            Some((name, rest)) => {
                let operand = rest.strip_suffix(')');
                (
                    name,
                    operand.ok_or_else(|| format!("no closing parenthesis in {}", quoted(text)))?,
                )
            }
            None => (text, ""),
        };
        if let Some(leave) = self.leaving.get_mut(thread.index()).and_then(Option::take) {
            self.emit(leave, batch);
        }
        if name == "bar" {
            self.cross(thread, site, operand, batch);
            return Ok(());
        }
        if let Some(parts) = flow::parts(name, operand, text)? {
            for part in parts {
                let op = self.flow(part)?;
                self.emit(Event { thread, site, op }, batch);
            }
            return Ok(());
        }
        let op = self.operation(name, operand, text)?;
        if let Op::Join(child) = op
            && let Some(leave) = self.leaving.get_mut(child.index()).and_then(Option::take)
        {
            self.emit(leave, batch);
        }
        self.emit(Event { thread, site, op }, batch);
        Ok(())
    }

    fn operation(&mut self, name: &str, operand: &str, text: &str) -> Result<Op, String> {
        let names = &mut self.symbols;
        let op = match name {
            "r" => Op::Read(self.variable(operand)?),
            "w" => Op::Write(self.variable(operand)?),
            "ar" | "aw" | "au" => {
                let (variable, order) = split_order(operand);
                let op = atomic(name, order).ok_or_else(|| {
                    format!("{} is not a memory order for {name}", quoted(order.unwrap_or("")))
                })?;
                Op::Atomic(self.variable(variable)?, op)
            }
            "fence" => Op::Fence(
                update_order(if operand.is_empty() { "seqcst" } else { operand }).ok_or_else(
                    || format!("{} is not a memory order for a fence", quoted(operand)),
                )?,
            ),
            "acq" => Op::Acquire(LockId(names.locks.intern_str(operand)), Mode::Exclusive),
            "rel" => Op::Release(LockId(names.locks.intern_str(operand)), Mode::Exclusive),
            "racq" => Op::Acquire(LockId(names.locks.intern_str(operand)), Mode::Shared),
            "rrel" => Op::Release(LockId(names.locks.intern_str(operand)), Mode::Shared),
            "fork" => Op::Fork(ThreadId(names.threads.intern_str(operand))),
            "join" => Op::Join(ThreadId(names.threads.intern_str(operand))),
            "start" => Op::Begin,
            "stop" => Op::End,
            "arrive" | "leave" => {
                let (barrier, round) = operand
                    .rsplit_once(',')
                    .and_then(|(b, n)| Some((b, n.trim().parse().ok()?)))
                    .ok_or_else(|| {
                        format!("expected {name}(barrier,round), found {}", quoted(text))
                    })?;
                let barrier = BarrierId(names.barriers.intern_str(barrier));
                if name == "arrive" {
                    Op::Arrive(barrier, round)
                } else {
                    Op::Leave(barrier, round)
                }
            }
            "post" => Op::Post(SemaphoreId(names.semaphores.intern_str(operand))),
            "wait" => Op::Wait(SemaphoreId(names.semaphores.intern_str(operand))),
            "notify" => Op::Notify(CondId(names.conds.intern_str(operand)), Wakes::One),
            "notifyall" => Op::Notify(CondId(names.conds.intern_str(operand)), Wakes::All),
            "wake" => Op::Wake(CondId(names.conds.intern_str(operand))),
            "begin" => {
                let (region, kind) = self.region(operand);
                Op::RegionEnter(region, kind)
            }
            "end" => Op::RegionExit(self.region(operand).0),
            "alloc" => Op::Alloc(self.memory(operand)?),
            "free" => Op::Free(self.memory(operand)?),
            _ => {
                return Err(format!(
                    "unknown operation {}; known are r w ar aw au fence acq rel racq rrel fork join \
                     start stop bar arrive leave post wait notify notifyall wake begin end alloc free \
                     get set let if updates focus use take",
                    quoted(text)
                ));
            }
        };
        Ok(op)
    }

    fn flow(&mut self, part: flow::Part<'_>) -> Result<Op, String> {
        let mut local = |name: &str| LocalId(self.symbols.locals.intern_str(name));
        Ok(match part {
            flow::Part::Use(name) => Op::Flow(Flow::Use(local(name))),
            flow::Part::Define(name) => Op::Flow(Flow::Define(local(name))),
            flow::Part::Take(name) => Op::Flow(Flow::Take(local(name))),
            flow::Part::Branch => Op::Flow(Flow::Branch),
            flow::Part::Updates(operator) => Op::Flow(Flow::Updates(operator)),
            flow::Part::Focus(variable) => Op::Focus(self.memory(variable)?),
            flow::Part::Read(variable) => Op::Read(self.variable(variable)?),
            flow::Part::Write(variable) => Op::Write(self.variable(variable)?),
        })
    }

    fn variable(&mut self, text: &str) -> Result<Access, String> {
        match raw_memory(text)? {
            Some(range) => u32::try_from(range.len)
                .map(|len| Access { addr: range.start, len })
                .map_err(|_| format!("{} is too long for one access", quoted(text))),
            None => Ok(self.symbols.variables.place(text)),
        }
    }

    fn memory(&mut self, text: &str) -> Result<Range, String> {
        Ok(match raw_memory(text)? {
            Some(range) => range,
            None => self.symbols.variables.place(text).range(),
        })
    }

    fn region(&mut self, label: &str) -> (RegionId, RegionKind) {
        let kind_of = |word: &str| RegionKind::LABELS.iter().find(|(_, label)| *label == word);
        let (kind, name) = label
            .split_once(':')
            .and_then(|(word, name)| Some((kind_of(word)?.0, name)))
            .unwrap_or((RegionKind::Atomic, label));
        (RegionId(self.symbols.regions.intern(Region { kind, name: name.into() })), kind)
    }

    fn cross(&mut self, thread: ThreadId, site: SiteId, name: &str, batch: &mut Vec<Event>) {
        let barrier = BarrierId(self.symbols.barriers.intern_str(name));
        if barrier.index() >= self.barriers.len() {
            self.barriers.resize_with(barrier.index() + 1, Crossing::default);
        }
        let crossing = &mut self.barriers[barrier.index()];
        if crossing.crossed.contains(&thread) {
            crossing.round += 1;
            crossing.crossed.clear();
        }
        crossing.crossed.push(thread);
        let round = crossing.round;
        self.emit(Event { thread, site, op: Op::Arrive(barrier, round) }, batch);
        if thread.index() >= self.leaving.len() {
            self.leaving.resize(thread.index() + 1, None);
        }
        self.leaving[thread.index()] = Some(Event { thread, site, op: Op::Leave(barrier, round) });
    }

    fn emit(&mut self, event: Event, batch: &mut Vec<Event>) {
        batch.push(event);
        self.lines.push(self.line);
    }
}

/// `0xADDRESS:LENGTH`, or nothing if it is a name.
fn raw_memory(text: &str) -> Result<Option<Range>, String> {
    let Some(digits) = text.strip_prefix("0x") else { return Ok(None) };
    let Some((start, len)) = digits.split_once(':') else { return Ok(None) };
    let (Ok(start), Ok(len)) = (u64::from_str_radix(start, 16), len.parse::<u64>()) else {
        return Ok(None);
    };
    match start.checked_add(len) {
        Some(_) => Ok(Some(Range { start, len })),
        None => Err(format!("{} reaches past the end of memory", quoted(text))),
    }
}

/// Splits `x,order` where `order` looks like a memory order; names may contain commas.
fn split_order(operand: &str) -> (&str, Option<&str>) {
    match operand.rsplit_once(',') {
        Some((variable, order)) if update_order(order.trim()).is_some() => {
            (variable, Some(order.trim()))
        }
        _ => (operand, None),
    }
}

fn update_order(text: &str) -> Option<UpdateOrder> {
    Some(match text {
        "relaxed" => UpdateOrder::Relaxed,
        "acquire" => UpdateOrder::Acquire,
        "release" => UpdateOrder::Release,
        "acqrel" => UpdateOrder::AcqRel,
        "seqcst" => UpdateOrder::SeqCst,
        _ => return None,
    })
}

fn atomic(name: &str, order: Option<&str>) -> Option<AtomicOp> {
    let order = update_order(order.unwrap_or("seqcst"))?;
    Some(match (name, order) {
        ("ar", UpdateOrder::Relaxed) => AtomicOp::Load(LoadOrder::Relaxed),
        ("ar", UpdateOrder::Acquire) => AtomicOp::Load(LoadOrder::Acquire),
        ("ar", UpdateOrder::SeqCst) => AtomicOp::Load(LoadOrder::SeqCst),
        ("aw", UpdateOrder::Relaxed) => AtomicOp::Store(StoreOrder::Relaxed),
        ("aw", UpdateOrder::Release) => AtomicOp::Store(StoreOrder::Release),
        ("aw", UpdateOrder::SeqCst) => AtomicOp::Store(StoreOrder::SeqCst),
        ("au", order) => AtomicOp::Update(order),
        _ => return None,
    })
}

/// A text in quotes for a message, shortened if it is long.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{:?}…", &text[..cut]),
        None => format!("{text:?}"),
    }
}

/// Writes text traces that [`TextReader`] reads back.
pub struct TextWriter<W> {
    output: W,
    joiner: Joiner,
}

impl<W: Write> TextWriter<W> {
    /// Writes to `output`, a line at a time.
    pub fn new(output: W) -> TextWriter<W> {
        TextWriter { output, joiner: Joiner::default() }
    }

    /// Appends an event.
    pub fn write(&mut self, event: &Event, symbols: &Symbols) -> io::Result<()> {
        let thread = plain(&symbols.thread(event.thread));
        let site = plain(&symbols.site(event.site).to_string());
        let line = |op: &str| format!("{thread}|{op}|{site}");
        self.joiner.take(event, &show(&event.op, symbols), &mut self.output, line)
    }

    /// Flushes and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.joiner.finish(&mut self.output)?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Names may hold anything; what separates fields and lines may not appear in them.
fn plain(name: &str) -> String {
    name.replace(['|', '\n', '\r'], " ")
}

/// An operation as it is written in a text trace.
pub fn show(op: &Op, symbols: &Symbols) -> String {
    let memory = |range: Range| match symbols.variables.at(range.start) {
        Some((name, 0)) if range.len == 8 && !name.starts_with("0x") => plain(name),
        _ => format!("{:#x}:{}", range.start, range.len),
    };
    let region = |id: RegionId| match symbols.region(id) {
        Some(Region { kind, name }) => format!("{}:{}", kind.label(), plain(name)),
        None => format!("atomic:{id:?}"),
    };
    let lock = |id: LockId| plain(&symbols.lock(id));
    let local = |id: LocalId| plain(&symbols.local(id)).replace(',', " ");
    match *op {
        Op::Read(a) => format!("r({})", memory(a.range())),
        Op::Write(a) => format!("w({})", memory(a.range())),
        Op::Atomic(a, op) => {
            let (name, order) = match op {
                AtomicOp::Load(o) => ("ar", format!("{o:?}")),
                AtomicOp::Store(o) => ("aw", format!("{o:?}")),
                AtomicOp::Update(o) => ("au", format!("{o:?}")),
            };
            format!("{name}({},{})", memory(a.range()), order.to_lowercase())
        }
        Op::Fence(order) => format!("fence({})", format!("{order:?}").to_lowercase()),
        Op::Acquire(l, Mode::Exclusive) => format!("acq({})", lock(l)),
        Op::Acquire(l, Mode::Shared) => format!("racq({})", lock(l)),
        Op::Release(l, Mode::Exclusive) => format!("rel({})", lock(l)),
        Op::Release(l, Mode::Shared) => format!("rrel({})", lock(l)),
        Op::Fork(t) => format!("fork({})", plain(&symbols.thread(t))),
        Op::Join(t) => format!("join({})", plain(&symbols.thread(t))),
        Op::Begin => "start()".into(),
        Op::End => "stop()".into(),
        Op::Arrive(b, round) => format!("arrive({},{round})", plain(&symbols.barrier(b))),
        Op::Leave(b, round) => format!("leave({},{round})", plain(&symbols.barrier(b))),
        Op::Post(s) => format!("post({})", plain(&symbols.semaphore(s))),
        Op::Wait(s) => format!("wait({})", plain(&symbols.semaphore(s))),
        Op::Notify(c, Wakes::One) => format!("notify({})", plain(&symbols.cond(c))),
        Op::Notify(c, Wakes::All) => format!("notifyall({})", plain(&symbols.cond(c))),
        Op::Wake(c) => format!("wake({})", plain(&symbols.cond(c))),
        Op::RegionEnter(r, _) => format!("begin({})", region(r)),
        Op::RegionExit(r) => format!("end({})", region(r)),
        Op::Alloc(range) => format!("alloc({})", memory(range)),
        Op::Free(range) => format!("free({})", memory(range)),
        Op::Flow(Flow::Use(l)) => format!("use({})", local(l)),
        Op::Flow(Flow::Take(l)) => format!("take({})", local(l)),
        Op::Flow(Flow::Define(l)) => format!("let({})", local(l)),
        Op::Flow(Flow::Branch) => "if()".into(),
        Op::Flow(Flow::Updates(operator)) => format!("updates({})", operator.name()),
        Op::Focus(range) => format!("focus({})", memory(range)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn written(text: &str) -> String {
        let (events, symbols) = parse(text).expect("a valid trace");
        let mut writer = TextWriter::new(Vec::new());
        events.iter().for_each(|e| writer.write(e, &symbols).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn every_operation_survives_reading_and_writing() {
        let text = "\
T0|fork(T1)|a.c:1
T1|start()|a.c:2:3
T1|r(x)|label
T1|w(0xff00:4)|12
T0|ar(x,relaxed)|1
T0|ar(x,acquire)|1
T0|aw(x,release)|1
T0|au(y,acqrel)|1
T0|aw(x,seqcst)|1
T0|fence(release)|1
T0|acq(l)|1
T0|rel(l)|1
T0|racq(rw)|1
T0|rrel(rw)|1
T0|arrive(b,0)|1
T1|arrive(b,0)|1
T0|leave(b,0)|1
T1|leave(b,0)|1
T0|post(s)|1
T1|wait(s)|1
T0|notify(c)|1
T0|notifyall(c)|1
T1|wake(c)|1
T0|begin(atomic:move)|1
T0|begin(det:sort)|1
T0|end(det:sort)|1
T0|end(atomic:move)|1
T0|alloc(0x1000:64)|1
T0|free(x)|1
T0|begin(task:one)|1
T0|begin(star:try)|1
T0|get(a,x)|2
T0|get(b,0xff00:4)|2
T0|let(c,a,b)|2
T0|let(d)|2
T0|set(x,c,d)|3
T0|r(x)|3
T0|if(c)|4
T0|if(a,b)|4
T0|use(a)|5
T0|r(x)|5
T0|let(e)|5
T0|use(a)|5
T0|au(x,relaxed)|5
T0|take(e)|5
T0|end(star:try)|7
T0|begin(commutes:add)|7
T0|end(commutes:add)|7
T0|begin(lazy:table)|7
T0|end(lazy:table)|7
T0|begin(stmt:a.c:4-7 work)|7
T0|end(stmt:a.c:4-7 work)|7
T0|end(task:one)|7
T0|focus(x)|8
T1|stop()|1
T0|join(T1)|1
";
        assert_eq!(written(text), text);
    }

    #[test]
    fn rapid_files_load_as_they_are() {
        let text = "T20|r(V16e92358.199)|374\nT20|w(V45c470d5[0])|362\nT20|acq(L2a45c47085)|361\nT20|rel(L2a45c47085)|361\nT1|begin(0)|5\r\nT1|end(0)|6";
        assert_eq!(parse(text).unwrap().0.len(), 6);
    }

    #[test]
    fn a_thread_leaves_a_barrier_when_its_next_event_comes() {
        let text = "T0|bar(b)|1\nT1|bar(b)|2\nT1|r(x)|3\nT0|bar(b)|4\nT1|bar(b)|5\n";
        let expected = "\
T0|arrive(b,0)|1
T1|arrive(b,0)|2
T1|leave(b,0)|2
T1|r(x)|3
T0|leave(b,0)|1
T0|arrive(b,1)|4
T1|arrive(b,1)|5
T0|leave(b,1)|4
T1|leave(b,1)|5
";
        assert_eq!(written(text), expected);
    }

    #[test]
    fn a_joined_thread_has_left_its_barrier() {
        let text = "T0|fork(T1)|1\nT1|bar(b)|2\nT0|join(T1)|3\n";
        let expected = "T0|fork(T1)|1\nT1|arrive(b,0)|2\nT1|leave(b,0)|2\nT0|join(T1)|3\n";
        assert_eq!(written(text), expected);
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            ("", "the trace is empty"),
            ("# nothing\n\n", "the trace is empty"),
            ("T0|r(x)", "line 1: expected thread|op|site, found \"T0|r(x)\""),
            ("T0|r(x)|1\n|r(x)|1", "line 2: the thread has no name"),
            ("T0|r(x|1", "line 1: no closing parenthesis in \"r(x\""),
            ("T0|ar(x,release)|1", "line 1: \"release\" is not a memory order for ar"),
            ("T0|fence(sc)|1", "line 1: \"sc\" is not a memory order for a fence"),
            ("T0|arrive(b)|1", "line 1: expected arrive(barrier,round), found \"arrive(b)\""),
            (
                "T0|w(0xffffffffffffffff:2)|1",
                "line 1: \"0xffffffffffffffff:2\" reaches past the end of memory",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(
            parse("T0|lock(x)|1")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: unknown operation \"lock(x)\"; known are r w")
        );
    }

    #[test]
    fn a_line_without_end_is_refused_without_being_kept() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let n = buf.len().min(self.0 as usize);
                buf[..n].fill(b'a');
                self.0 -= n as u64;
                Ok(n)
            }
        }
        let mut reader = TextReader::new(io::BufReader::new(Endless(1 << 30)));
        let error = reader.read(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "line 1: the line is longer than 1048576 bytes");
        assert!(reader.buffer.capacity() <= 4 * MAX_LINE);
    }

    #[test]
    fn garbage_is_not_text() {
        let garbage: &[u8] = &[0xff, 0xfe, 0x00, 0x9c];
        let error = TextReader::new(garbage).read(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "line 1: this is neither text nor a binary Selvedge trace");
    }
}
