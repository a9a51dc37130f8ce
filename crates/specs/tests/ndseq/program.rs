//! Random programs of the language of figure 6.4, their parallel executions, and all their sequential ones. Beyond the
//! figure they may have updates (`x = x op e`) and an initialisation that whichever task comes first does.

use selvedge_model::{
    Access, AtomicOp, Event, Flow, LocalId, LockId, Mode, Op, Operator, RegionId, RegionKind,
    SiteId, ThreadId, UpdateOrder,
};

pub(crate) const LOCALS: usize = 3;
pub(crate) const GLOBALS: usize = 3;
const VALUES: i64 = 4;
/// The local of updates, and of the initialisation.
const FOUND: usize = LOCALS;
/// The global that the initialisation writes, and nothing else.
const MADE: usize = GLOBALS - 1;

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    /// The sum of locals and a constant.
    Let(usize, Vec<usize>, i64),
    Get(usize, usize),
    Set(usize, usize),
    If(usize, Block, Block),
    Star(Block),
    Atomic(Block),
    /// A global takes itself combined with a local, in one step: under a lock that all have, or atomically.
    Update(usize, Operator, usize, bool),
    /// The two halves of an update, under a lock that only this task has.
    Find(usize),
    Combine(usize, Operator, usize),
    /// The initialisation.
    Lazy(Block),
}

/// Statements, and the number of the block in the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) id: u32,
    pub(crate) stmts: Vec<Stmt>,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) tasks: Vec<Block>,
    pub(crate) initial: [i64; GLOBALS],
    pub(crate) focus: Vec<usize>,
}

/// A small generator of numbers: the programs depend on the seed only.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

impl Program {
    pub(crate) fn random(rng: &mut Rng, stars: bool, longest: usize) -> Program {
        let mut blocks = 0;
        let tasks = 2 + rng.below(2);
        let tasks =
            (0..tasks).map(|_| Block::random(rng, &mut blocks, 2, stars, longest)).collect();
        let initial = std::array::from_fn(|_| rng.below(VALUES as usize) as i64);
        let first = rng.below(GLOBALS);
        let focus = (0..GLOBALS).filter(|&g| g == first || rng.below(3) == 0).collect();
        Program { tasks, initial, focus }
    }
}

impl Block {
    fn random(rng: &mut Rng, blocks: &mut u32, depth: usize, stars: bool, longest: usize) -> Block {
        let id = *blocks;
        *blocks += 1;
        let few = if depth == 2 { longest } else { 2 };
        let count = 1 + rng.below(few) + usize::from(longest > 4) * 2;
        let mut stmts = Vec::new();
        for _ in 0..count {
            let (l, g) = (rng.below(LOCALS), rng.below(GLOBALS));
            stmts.push(match rng.below(if depth == 0 { 6 } else { 10 }) {
                0 => Stmt::Let(l, Vec::new(), rng.below(2) as i64),
                1 => Stmt::Let(l, vec![rng.below(LOCALS), rng.below(LOCALS)], rng.below(2) as i64),
                2 | 3 => Stmt::Get(l, g),
                4 | 5 => Stmt::Set(g, l),
                6 => {
                    let then = Block::random(rng, blocks, depth - 1, stars, longest);
                    Stmt::If(l, then, Block::random(rng, blocks, depth - 1, stars, longest))
                }
                7 => Stmt::Atomic(Block::random(rng, blocks, depth - 1, stars, longest)),
                _ if stars => Stmt::Star(Block::random(rng, blocks, depth - 1, stars, longest)),
                _ => Stmt::If(
                    l,
                    Block::random(rng, blocks, depth - 1, stars, longest),
                    Block {
                        id: {
                            *blocks += 1;
                            *blocks - 1
                        },
                        stmts: Vec::new(),
                    },
                ),
            });
        }
        Block { id, stmts }
    }
}

/// One number combined with another.
fn combined(operator: Operator, a: i64, b: i64) -> i64 {
    match operator {
        Operator::Add | Operator::FloatAdd => (a + b) % VALUES,
        Operator::Multiply | Operator::FloatMultiply => a * b % VALUES,
        Operator::And => a & b,
        Operator::Or => a | b,
        Operator::Xor => a ^ b,
        Operator::Min | Operator::UnsignedMin => a.min(b),
        Operator::Max | Operator::UnsignedMax => a.max(b),
    }
}

impl Program {
    /// The same, with updates instead of some accesses.
    pub(crate) fn with_updates(mut self, rng: &mut Rng) -> Program {
        // Few operators, so that updates of one global often have the same.
        let operators = [0; 2].map(|_| Operator::ALL[rng.below(7)].0);
        self.tasks.iter_mut().for_each(|task| task.update(rng, operators));
        self
    }

    /// The same, with an initialisation of one global, which every task comes to before it uses that.
    pub(crate) fn with_initialisation(mut self, rng: &mut Rng) -> Program {
        // A local of its own, mostly; what the task does with another is seen.
        let l = if rng.below(4) == 0 { rng.below(LOCALS) } else { FOUND };
        let g = rng.below(MADE);
        let mut stmts = vec![match rng.below(4) {
            0 => Stmt::Get(l, g),
            // What the task has computed flows into it.
            1 => Stmt::Let(l, vec![rng.below(LOCALS)], 1),
            _ => Stmt::Let(l, Vec::new(), 1 + rng.below(2) as i64),
        }];
        stmts.push(Stmt::Set(MADE, l));
        let body = Block { id: 1 << 16, stmts };
        self.tasks.iter_mut().for_each(|task| task.initialise(&body));
        self
    }
}

impl Block {
    fn update(&mut self, rng: &mut Rng, operators: [Operator; 2]) {
        for statement in std::mem::take(&mut self.stmts) {
            let operator = operators[rng.below(2)];
            match statement {
                Stmt::Set(g, l) if rng.below(2) == 0 => match rng.below(4) {
                    0 => self.stmts.extend([Stmt::Find(g), Stmt::Combine(g, operator, l)]),
                    how => self.stmts.push(Stmt::Update(g, operator, l, how == 1)),
                },
                Stmt::Get(l, g) if rng.below(3) == 0 => {
                    self.stmts.push(Stmt::Update(g, operator, l, rng.below(3) == 0));
                }
                other => self.stmts.push(other.inside(&mut |block| block.update(rng, operators))),
            }
        }
    }

    fn initialise(&mut self, body: &Block) {
        for statement in std::mem::take(&mut self.stmts) {
            match statement {
                Stmt::Set(MADE, l) => self.stmts.push(Stmt::Set(0, l)),
                Stmt::Get(_, MADE) => self.stmts.extend([Stmt::Lazy(body.clone()), statement]),
                other => self.stmts.push(other.inside(&mut |block| block.initialise(body))),
            }
        }
    }
}

impl Stmt {
    /// The same, with its blocks changed.
    fn inside(mut self, change: &mut impl FnMut(&mut Block)) -> Stmt {
        match &mut self {
            Stmt::If(_, then, other) => {
                change(then);
                change(other);
            }
            Stmt::Star(body) | Stmt::Atomic(body) => change(body),
            Stmt::Let(..)
            | Stmt::Get(..)
            | Stmt::Set(..)
            | Stmt::Update(..)
            | Stmt::Find(_)
            | Stmt::Combine(..)
            | Stmt::Lazy(_) => {}
        }
        self
    }
}

/// Where a step stands: in which executions of blocks, at which statement of each.
pub(crate) type Path = Vec<(u32, u32, usize)>;

/// A step as the naive check sees it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) task: usize,
    pub(crate) act: Do,
    /// The executions of stars around it, innermost last.
    pub(crate) stars: Vec<u32>,
    /// Executions of blocks: the number of the execution, of the block, and of the statement in it.
    pub(crate) path: Path,
}

#[derive(Clone, Debug)]
pub(crate) enum Do {
    Define(usize, Vec<usize>),
    Read(usize, usize),
    Write(usize, usize),
    Branch(usize),
}

/// One parallel execution.
pub(crate) struct Run {
    pub(crate) events: Vec<Event>,
    pub(crate) steps: Vec<Step>,
    pub(crate) focus: Vec<i64>,
    /// What the statements are called, by region.
    pub(crate) statements: Vec<(u32, usize)>,
}

enum After {
    Nothing,
    Star,
    Atomic,
    Lazy,
}

struct Frame<'a> {
    block: &'a Block,
    execution: u32,
    next: usize,
    after: After,
}

struct Task<'a> {
    frames: Vec<Frame<'a>>,
    locals: [i64; LOCALS + 1],
    stars: Vec<u32>,
}

struct Machine {
    globals: [i64; GLOBALS],
    events: Vec<Event>,
    steps: Vec<Step>,
    stars: u32,
    executions: u32,
    statements: Vec<(u32, usize)>,
    /// The initialisation was done.
    made: bool,
}

const LAZY: RegionId = RegionId(1 << 20);
const STAR: RegionId = RegionId(0);

fn memory(g: usize) -> Access {
    Access { addr: 64 + 8 * g as u64, len: 8 }
}

impl Machine {
    fn emit(&mut self, thread: usize, op: Op) {
        self.events.push(Event { thread: ThreadId(thread as u32), site: SiteId(0), op });
    }

    fn statement(&mut self, block: u32, index: usize) -> RegionId {
        let known = self.statements.iter().position(|&s| s == (block, index));
        let at = known.unwrap_or_else(|| {
            self.statements.push((block, index));
            self.statements.len() - 1
        });
        RegionId(1 + at as u32)
    }

    fn push<'a>(&mut self, task: &mut Task<'a>, block: &'a Block, after: After) {
        self.executions += 1;
        task.frames.push(Frame { block, execution: self.executions, next: 0, after });
    }

    fn note(&mut self, number: usize, task: &Task<'_>, act: Do) {
        let path = task.frames.iter().map(|f| (f.execution, f.block.id, f.next - 1)).collect();
        self.steps.push(Step { task: number, act, stars: task.stars.clone(), path });
    }

    /// One step of a task; false if it has ended.
    fn step(&mut self, number: usize, task: &mut Task<'_>) -> bool {
        let thread = number + 1;
        let Some(frame) = task.frames.last_mut() else { return false };
        if frame.next == frame.block.stmts.len() {
            let frame = task.frames.pop().expect("there is one");
            match frame.after {
                After::Star => {
                    task.stars.pop();
                    self.emit(thread, Op::RegionExit(STAR));
                }
                After::Atomic => self.emit(thread, Op::Release(LockId(0), Mode::Exclusive)),
                After::Lazy => self.emit(thread, Op::RegionExit(LAZY)),
                After::Nothing => {}
            }
            if let Some(outer) = task.frames.last() {
                let statement = self.statement(outer.block.id, outer.next - 1);
                self.emit(thread, Op::RegionExit(statement));
            }
            return true;
        }
        let block = frame.block;
        let statement = &block.stmts[frame.next];
        let region = self.statement(block.id, frame.next);
        frame.next += 1;
        self.emit(thread, Op::RegionEnter(region, RegionKind::Statement));
        let simple = self.execute(number, task, statement);
        if simple {
            self.emit(thread, Op::RegionExit(region));
        }
        true
    }

    /// Executes the head of a statement; true if that is all of it.
    fn execute<'a>(&mut self, number: usize, task: &mut Task<'a>, statement: &'a Stmt) -> bool {
        let thread = number + 1;
        let local = |l: usize| LocalId(l as u32);
        match statement {
            Stmt::Let(l, used, constant) => {
                self.note(number, task, Do::Define(*l, used.clone()));
                for &u in used {
                    self.emit(thread, Op::Flow(Flow::Use(local(u))));
                }
                self.emit(thread, Op::Flow(Flow::Define(local(*l))));
                let sum: i64 = used.iter().map(|&u| task.locals[u]).sum();
                task.locals[*l] = (sum + constant) % VALUES;
            }
            Stmt::Get(l, g) => {
                self.note(number, task, Do::Read(*l, *g));
                self.emit(thread, Op::Read(memory(*g)));
                self.emit(thread, Op::Flow(Flow::Take(local(*l))));
                task.locals[*l] = self.globals[*g];
            }
            Stmt::Set(g, l) => {
                self.note(number, task, Do::Write(*g, *l));
                self.emit(thread, Op::Flow(Flow::Use(local(*l))));
                self.emit(thread, Op::Write(memory(*g)));
                self.globals[*g] = task.locals[*l];
            }
            Stmt::If(l, then, other) => {
                self.note(number, task, Do::Branch(*l));
                self.emit(thread, Op::Flow(Flow::Use(local(*l))));
                self.emit(thread, Op::Flow(Flow::Branch));
                let taken = if task.locals[*l] > 0 { then } else { other };
                self.push(task, taken, After::Nothing);
                return false;
            }
            Stmt::Star(body) => {
                self.emit(thread, Op::RegionEnter(STAR, RegionKind::Star));
                task.stars.push(self.stars);
                self.stars += 1;
                self.push(task, body, After::Star);
                return false;
            }
            Stmt::Atomic(body) => {
                self.emit(thread, Op::Acquire(LockId(0), Mode::Exclusive));
                self.push(task, body, After::Atomic);
                return false;
            }
            Stmt::Lazy(body) => {
                self.emit(thread, Op::RegionEnter(LAZY, RegionKind::Lazy));
                if !std::mem::replace(&mut self.made, true) {
                    self.push(task, body, After::Lazy);
                    return false;
                }
                self.emit(thread, Op::RegionExit(LAZY));
            }
            Stmt::Update(g, operator, l, false) => {
                self.emit(thread, Op::Acquire(LockId(1), Mode::Exclusive));
                self.find(thread, task, *g);
                self.combine(thread, task, (*g, *operator, *l));
                self.emit(thread, Op::Release(LockId(1), Mode::Exclusive));
            }
            Stmt::Update(g, operator, l, true) => {
                self.emit(thread, Op::Flow(Flow::Use(local(*l))));
                let update = AtomicOp::Update(UpdateOrder::SeqCst);
                self.emit(thread, Op::Atomic(memory(*g), update));
                self.emit(thread, Op::Flow(Flow::Take(local(FOUND))));
                self.emit(thread, Op::Flow(Flow::Updates(*operator)));
                self.globals[*g] = combined(*operator, self.globals[*g], task.locals[*l]);
            }
            Stmt::Find(g) => {
                self.emit(thread, Op::Acquire(LockId(2 + thread as u32), Mode::Exclusive));
                self.find(thread, task, *g);
            }
            Stmt::Combine(g, operator, l) => {
                self.combine(thread, task, (*g, *operator, *l));
                self.emit(thread, Op::Release(LockId(2 + thread as u32), Mode::Exclusive));
            }
        }
        true
    }

    fn find(&mut self, thread: usize, task: &mut Task<'_>, g: usize) {
        self.emit(thread, Op::Read(memory(g)));
        self.emit(thread, Op::Flow(Flow::Take(LocalId(FOUND as u32))));
        task.locals[FOUND] = self.globals[g];
    }

    fn combine(
        &mut self,
        thread: usize,
        task: &Task<'_>,
        (g, operator, l): (usize, Operator, usize),
    ) {
        for used in [FOUND, l] {
            self.emit(thread, Op::Flow(Flow::Use(LocalId(used as u32))));
        }
        self.emit(thread, Op::Write(memory(g)));
        self.emit(thread, Op::Flow(Flow::Updates(operator)));
        self.globals[g] = combined(operator, task.locals[FOUND], task.locals[l]);
    }
}

impl Program {
    /// A random parallel execution.
    pub(crate) fn run(&self, rng: &mut Rng) -> Run {
        let mut machine = Machine {
            globals: self.initial,
            events: Vec::new(),
            steps: Vec::new(),
            stars: 0,
            executions: 0,
            statements: Vec::new(),
            made: false,
        };
        (0..GLOBALS).for_each(|g| machine.emit(0, Op::Write(memory(g))));
        let threads = 1..=self.tasks.len() as u32;
        threads.clone().for_each(|t| machine.emit(0, Op::Fork(ThreadId(t))));
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for block in &self.tasks {
            let mut task = Task { frames: Vec::new(), locals: [0; LOCALS + 1], stars: Vec::new() };
            machine.push(&mut task, block, After::Nothing);
            tasks.push(task);
        }
        let mut alive: Vec<usize> = (0..tasks.len()).collect();
        while !alive.is_empty() {
            let at = rng.below(alive.len());
            let number = alive[at];
            let in_atomic = |t: &Task<'_>| {
                t.frames.iter().any(|f| matches!(f.after, After::Atomic | After::Lazy))
            };
            let mut goes_on = machine.step(number, &mut tasks[number]);
            while goes_on && in_atomic(&tasks[number]) {
                goes_on = machine.step(number, &mut tasks[number]);
            }
            if !goes_on {
                alive.remove(at);
            }
        }
        threads.for_each(|t| machine.emit(0, Op::Join(ThreadId(t))));
        for &g in &self.focus {
            machine.emit(0, Op::Focus(memory(g).range()));
        }
        let focus = self.focus.iter().map(|&g| machine.globals[g]).collect();
        Run { events: machine.events, steps: machine.steps, focus, statements: machine.statements }
    }

    /// What is in focus after every sequential execution: every order of the tasks, every choice at every star.
    pub(crate) fn sequential(&self) -> Vec<Vec<i64>> {
        let mut results = Vec::new();
        for order in permutations(self.tasks.len()) {
            let mut choices: Vec<bool> = Vec::new();
            loop {
                let mut globals = self.initial;
                let mut at = 0;
                let mut made = false;
                for &task in &order {
                    let mut locals = [0; LOCALS + 1];
                    let state = (&mut globals, &mut locals, &mut made);
                    sequentially(&self.tasks[task], state, &mut choices, &mut at);
                }
                let focus: Vec<i64> = self.focus.iter().map(|&g| globals[g]).collect();
                if !results.contains(&focus) {
                    results.push(focus);
                }
                choices.truncate(at);
                while choices.last() == Some(&true) {
                    choices.pop();
                }
                match choices.last_mut() {
                    Some(last) => *last = true,
                    None => break,
                }
            }
        }
        results
    }
}

fn sequentially(
    block: &Block,
    (globals, locals, made): (&mut [i64; GLOBALS], &mut [i64; LOCALS + 1], &mut bool),
    choices: &mut Vec<bool>,
    at: &mut usize,
) {
    for statement in &block.stmts {
        match statement {
            Stmt::Let(l, used, constant) => {
                locals[*l] = (used.iter().map(|&u| locals[u]).sum::<i64>() + constant) % VALUES;
            }
            Stmt::Get(l, g) => locals[*l] = globals[*g],
            Stmt::Set(g, l) => globals[*g] = locals[*l],
            Stmt::If(l, then, other) => {
                let taken = if locals[*l] > 0 { then } else { other };
                sequentially(taken, (globals, locals, made), choices, at);
            }
            Stmt::Atomic(body) => sequentially(body, (globals, locals, made), choices, at),
            Stmt::Lazy(body) => {
                if !std::mem::replace(made, true) {
                    sequentially(body, (globals, locals, made), choices, at);
                }
            }
            Stmt::Update(g, operator, l, _) => {
                globals[*g] = combined(*operator, globals[*g], locals[*l]);
            }
            Stmt::Find(g) => locals[FOUND] = globals[*g],
            Stmt::Combine(g, operator, l) => {
                globals[*g] = combined(*operator, locals[FOUND], locals[*l]);
            }
            Stmt::Star(body) => {
                if *at == choices.len() {
                    choices.push(false);
                }
                *at += 1;
                if choices[*at - 1] {
                    sequentially(body, (globals, locals, made), choices, at);
                }
            }
        }
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |p: &Vec<usize>| {
            let p = p.clone();
            (0..n).filter(move |i| !p.contains(i)).map(|i| (i, ())).collect::<Vec<_>>()
        };
        all = all
            .iter()
            .flat_map(|p| longer(p).into_iter().map(|(i, ())| [&p[..], &[i]].concat()))
            .collect();
    }
    all
}
