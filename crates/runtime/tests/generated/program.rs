//! Random C programs whose threads take turns in an order that is part of the program, and that no detector sees.
//!
//! A program is a list of cases with variables of their own. Each case starts two to four threads; what a thread does is cut
//! into stretches, and all stretches of a case have one order. A thread waits for its turn in a function without
//! instrumentation, so the order is always the same and orders nothing for a detector. Variables that two threads access race
//! unless locks, atomics, start or join order them.

use std::fmt::Write;

use selvedge_explore::Rng;

/// What a case's variables are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar(&'static str),
    /// Elements of a type, so many of them.
    Array(&'static str, usize),
    /// Of 16 by 16.
    Matrix,
    Structure,
}

struct Variable {
    name: String,
    kind: Kind,
}

const SCALARS: [&str; 6] = ["char", "short", "int", "long", "float", "double"];
const MEMBERS: [&str; 5] = ["a", "b", "c[1]", "c[2]", "d"];
const LENGTH: usize = 40;
const VARIABLES: usize = 12;
const LOCKS: usize = 3;

/// The source of a program with so many cases, and nothing but what the seed says.
pub(crate) fn source(seed: u64, cases: usize) -> String {
    let mut text = String::from(HEAD);
    for case in 0..cases {
        Case::new(Rng::of_execution(seed, case as u64), case).write(&mut text);
    }
    text.push_str(
        "int main(int argc, char **argv) {\n    FILE *out = fopen(argv[argc - 1], \"w\");\n",
    );
    for case in 0..cases {
        let _ = writeln!(text, "    case_{case}(out);");
    }
    text.push_str("    fclose(out);\n    return 0;\n}\n");
    text
}

const HEAD: &str = r#"#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
struct whole { char a; short b; int c[3]; long d; };
// Neither accesses nor order of these are told.
__attribute__((disable_sanitizer_instrumentation, noinline)) static void turn(volatile int *now, int mine) {
    while (*now != mine) {
        long result;
        __asm__ volatile("syscall" : "=a"(result) : "a"(24L) : "rcx", "r11", "memory");
    }
}
__attribute__((disable_sanitizer_instrumentation, noinline)) static void next(volatile int *now) {
    __asm__ volatile("" ::: "memory");
    *now = *now + 1;
}
"#;

struct Case {
    rng: Rng,
    case: usize,
    variables: Vec<Variable>,
    /// Functions that statements call, written in front of the threads.
    functions: String,
    number: usize,
}

impl Case {
    fn new(mut rng: Rng, case: usize) -> Case {
        let variables = (0..VARIABLES)
            .map(|n| {
                let scalar = SCALARS[rng.below(SCALARS.len())];
                let kind = match rng.below(10) {
                    0..4 => Kind::Scalar(scalar),
                    4..7 => Kind::Array(scalar, LENGTH),
                    7 => Kind::Matrix,
                    _ => Kind::Structure,
                };
                Variable { name: format!("c{case}_v{n}"), kind }
            })
            .collect();
        Case { rng, case, variables, functions: String::new(), number: 0 }
    }

    fn write(mut self, text: &mut String) {
        let case = self.case;
        for Variable { name, kind } in &self.variables {
            let _ = match kind {
                Kind::Scalar(of) => writeln!(text, "{of} {name};"),
                Kind::Array(of, len) => writeln!(text, "{of} {name}[{len}];"),
                Kind::Matrix => writeln!(text, "int {name}[16][16];"),
                Kind::Structure => writeln!(text, "struct whole {name};"),
            };
        }
        let _ = writeln!(text, "static pthread_mutex_t c{case}_m[{LOCKS}];");
        let _ = writeln!(text, "static atomic_int c{case}_flag;\nstatic volatile int c{case}_now;");
        let threads = 2 + self.rng.below(3);
        let mut turns: Vec<usize> = (0..threads).flat_map(|t| [t, t]).collect();
        self.rng.shuffle(&mut turns);
        let mut bodies = Vec::new();
        for thread in 0..threads {
            let mut body = String::new();
            for (at, _) in turns.iter().enumerate().filter(|(_, t)| **t == thread) {
                let _ = writeln!(body, "    turn(&c{case}_now, {at});");
                for _ in 0..2 + self.rng.below(4) {
                    self.statement(&mut body, 1, true);
                }
                let _ = writeln!(body, "    next(&c{case}_now);");
            }
            bodies.push(body);
        }
        text.push_str(&self.functions);
        for (thread, body) in bodies.iter().enumerate() {
            let _ = writeln!(
                text,
                "static void *c{case}_t{thread}(void *arg) {{\n    int x = {thread};\n{body}    return (void *)(long)x;\n}}"
            );
        }
        self.starts(text, threads);
    }

    /// The function that runs the case and writes where its variables are.
    fn starts(&self, text: &mut String, threads: usize) {
        let case = self.case;
        let _ =
            writeln!(text, "static void case_{case}(FILE *out) {{\n    pthread_t t[{threads}];");
        let _ = writeln!(text, "    memset(c{case}_m, 0, sizeof c{case}_m);");
        for Variable { name, .. } in &self.variables {
            let _ = writeln!(
                text,
                "    fprintf(out, \"{name} %lx %zx\\n\", (unsigned long)&{name}, sizeof {name});"
            );
        }
        for thread in 0..threads {
            let _ = writeln!(text, "    pthread_create(&t[{thread}], 0, c{case}_t{thread}, 0);");
        }
        for thread in 0..threads {
            let _ = writeln!(text, "    pthread_join(t[{thread}], 0);");
        }
        text.push_str("}\n");
    }

    /// A statement of a thread. Locks do not nest, so that no order of turns blocks.
    fn statement(&mut self, text: &mut String, depth: usize, may_lock: bool) {
        let pad = "    ".repeat(depth);
        self.number += 1;
        let number = self.number;
        match self.rng.below(if depth > 3 { 6 } else { 16 }) {
            0..3 => {
                let (place, operator) = (self.place("x"), self.operator());
                let _ = writeln!(text, "{pad}{place} {operator} x + {number};");
            }
            3..5 => {
                let place = self.place("x");
                let _ = writeln!(text, "{pad}x ^= (int){place};");
            }
            5 => {
                let _ = writeln!(text, "{pad}x = x * 5 + {number};");
            }
            6..9 => self.sweep(text, &pad),
            9 => {
                let _ = writeln!(text, "{pad}if ((x ^ {number}) & 1) {{");
                self.several(text, depth + 1, may_lock);
                let _ = writeln!(text, "{pad}}} else {{");
                self.several(text, depth + 1, may_lock);
                let _ = writeln!(text, "{pad}}}");
            }
            10 => {
                let last = 2 + self.rng.below(6);
                let _ = writeln!(
                    text,
                    "{pad}for (int j{number} = 0; j{number} < {last}; j{number}++) {{"
                );
                let place = self.place(&format!("j{number}"));
                let _ = writeln!(text, "{pad}    {place} += j{number};");
                self.several(text, depth + 1, may_lock);
                let _ = writeln!(text, "{pad}}}");
            }
            11 if may_lock => {
                let lock = format!("c{}_m + {}", self.case, self.rng.below(LOCKS));
                let _ = writeln!(text, "{pad}pthread_mutex_lock({lock});");
                self.several(text, depth, false);
                let _ = writeln!(text, "{pad}pthread_mutex_unlock({lock});");
            }
            12 => {
                let flag = format!("c{}_flag", self.case);
                let order = ["relaxed", "release", "seq_cst"][self.rng.below(3)];
                let _ = match self.rng.below(2) {
                    0 => writeln!(
                        text,
                        "{pad}atomic_store_explicit(&{flag}, {number}, memory_order_{order});"
                    ),
                    _ => writeln!(
                        text,
                        "{pad}x ^= atomic_load_explicit(&{flag}, memory_order_acquire);"
                    ),
                };
            }
            13 => self.copies(text, &pad),
            _ => {
                let mut body = String::new();
                self.several(&mut body, 1, may_lock);
                let name = format!("c{}_f{number}", self.case);
                let inlined = ["", "__attribute__((noinline)) "][self.rng.below(2)];
                let _ = writeln!(
                    self.functions,
                    "{inlined}static int {name}(int x) {{\n{body}    return x;\n}}"
                );
                let _ = writeln!(text, "{pad}x = {name}(x);");
            }
        }
    }

    fn several(&mut self, text: &mut String, depth: usize, may_lock: bool) {
        for _ in 0..1 + self.rng.below(3) {
            self.statement(text, depth + 1, may_lock);
        }
    }

    /// A loop over an array, or a part of one.
    fn sweep(&mut self, text: &mut String, pad: &str) {
        let arrays: Vec<usize> = (0..VARIABLES)
            .filter(|&v| matches!(self.variables[v].kind, Kind::Array(..) | Kind::Matrix))
            .collect();
        if arrays.is_empty() {
            return;
        }
        let pick = |rng: &mut Rng| arrays[rng.below(arrays.len())];
        let (to, from) = (pick(&mut self.rng), pick(&mut self.rng));
        let step = 1 + self.rng.below(3);
        let first = self.rng.below(6);
        let last = first + 1 + self.rng.below(LENGTH - 8);
        let shift = self.rng.below(LENGTH - last);
        let element = |v: &Variable, at: String| match v.kind {
            Kind::Matrix => format!("{}[{at} & 15][({at} * 3) & 15]", v.name),
            _ => format!("{}[{at}]", v.name),
        };
        let to = element(&self.variables[to], format!("(i + {shift})"));
        let from = element(&self.variables[from], "i".to_owned());
        let body = match self.rng.below(5) {
            0 => format!("{to} = {from};"),
            1 => format!("{to} += i;"),
            2 => format!("x += (int){from};"),
            3 => format!("if ((int){from} == {step}) break; {to} = x;"),
            _ => format!("if (i & 1) {to} = (int){from} + 1;"),
        };
        let _ = match self.rng.below(3) {
            0 => writeln!(
                text,
                "{pad}for (long i = {last} - 1; i >= {first}; i -= {step}) {{ {body} }}"
            ),
            1 => writeln!(
                text,
                "{pad}for (unsigned i = {first}; i < {last}; i += {step}) {{ {body} }}"
            ),
            _ => writeln!(
                text,
                "{pad}{{ int i = {first}; do {{ {body} i += {step}; }} while (i < {last}); }}"
            ),
        };
    }

    fn copies(&mut self, text: &mut String, pad: &str) {
        let mut whole = self.variables.iter().filter(|v| v.kind == Kind::Structure);
        if let (Some(to), Some(from)) = (whole.next(), whole.next()) {
            let _ = match self.rng.below(3) {
                0 => writeln!(text, "{pad}{} = {};", to.name, from.name),
                1 => writeln!(text, "{pad}memset(&{0}, x, sizeof {0});", from.name),
                _ => writeln!(text, "{pad}memcpy(&{}, &{}, 8);", from.name, to.name),
            };
        }
    }

    fn operator(&mut self) -> &'static str {
        ["=", "+=", "-="][self.rng.below(3)]
    }

    /// A part of a variable, which `index` may choose.
    fn place(&mut self, index: &str) -> String {
        let variable = &self.variables[self.rng.below(VARIABLES)];
        let name = &variable.name;
        let fixed = self.rng.below(2) == 0;
        match variable.kind {
            Kind::Scalar(_) => name.clone(),
            Kind::Array(_, len) if fixed => format!("{name}[{}]", self.rng.below(len)),
            Kind::Array(..) => format!("{name}[{index} & 31]"),
            Kind::Matrix => format!("{name}[{index} & 15][{}]", self.rng.below(16)),
            Kind::Structure => format!("{name}.{}", MEMBERS[self.rng.below(MEMBERS.len())]),
        }
    }
}
