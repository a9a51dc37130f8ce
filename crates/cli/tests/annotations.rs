//! `infer discipline --annotate|--patch --clang --verify`: annotations that clang checks on paths that no run takes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{Project, json, stderr, stdout};
use serde_json::{Value, json};

/// A program of `tests/programs/discipline/clang`.
struct Bundled {
    name: &'static str,
    sources: &'static [&'static str],
    headers: &'static [&'static str],
    /// What some of its variables must have; nothing if clang cannot say it.
    attributes: &'static [(&'static str, &'static str)],
    /// What the annotated sources must contain.
    written: &'static [&'static str],
}

const GLOBALS: Bundled = Bundled {
    name: "globals",
    sources: &["globals.c"],
    headers: &[],
    attributes: &[
        ("hits", "guarded_by(lock)"),
        ("table", "guarded_by(lock)"),
        ("misses", "guarded_by(misses_lock)"),
        ("errors", "guarded_by(errors_lock)"),
    ],
    written: &[
        "static long hits SELVEDGE_GUARDED_BY(lock);",
        "static long table[4][2] SELVEDGE_GUARDED_BY(lock);",
        "static pthread_mutex_t misses_lock;\nint misses SELVEDGE_GUARDED_BY(misses_lock);",
        "static pthread_mutex_t errors_lock;\nstatic int errors SELVEDGE_GUARDED_BY(errors_lock) = 0;",
        "    SELVEDGE_ALONE(&lock)\n",
    ],
};

const MEMBERS: Bundled = Bundled {
    name: "members",
    sources: &["members.c"],
    headers: &[],
    attributes: &[
        ("account.balance", "guarded_by(&lock)"),
        ("account.entries", "guarded_by(&lock)"),
        ("total.told", "guarded_by(&lock)"),
    ],
    written: &[
        "long balance SELVEDGE_GUARDED_BY(&lock);",
        "unsigned sum : 24 SELVEDGE_GUARDED_BY(&lock);",
        "void (*told)(long) SELVEDGE_GUARDED_BY(&lock);",
        "SELVEDGE_ALONE(&((struct account *)0)->lock)",
    ],
};

const CALLERS: Bundled = Bundled {
    name: "callers",
    sources: &["callers.c"],
    headers: &[],
    attributes: &[("list.length", "guarded_by(&lock)"), ("log_lines", "guarded_by(log_lock)")],
    written: &[
        "static void link_first(struct list *of, struct node *node) SELVEDGE_REQUIRES(of->lock);",
        "static void put(struct list *of, int key) SELVEDGE_REQUIRES(of->lock);",
        "static void clear(struct list *of) SELVEDGE_REQUIRES(of->lock);",
        "static void note(int lines);\nstatic void note(int lines) SELVEDGE_REQUIRES(log_lock);",
    ],
};

const WRAPPERS: Bundled = Bundled {
    name: "wrappers",
    sources: &["wrappers.c", "wrappers_main.c"],
    headers: &["wrappers.h"],
    attributes: &[("counter.value", "guarded_by(&mutex)"), ("table", "guarded_by(table_lock)")],
    written: &[
        "void enter(struct counter *);\nvoid enter(struct counter *counter) SELVEDGE_ACQUIRES(counter->mutex);",
        "void table_leave(void) SELVEDGE_RELEASES(table_lock);",
    ],
};

const RWLOCK: Bundled = Bundled {
    name: "rwlock",
    sources: &["rwlock.c"],
    headers: &[],
    attributes: &[("cache", "guarded_by(lock)"), ("filled", "guarded_by(lock)")],
    written: &[
        "static void reading(void) SELVEDGE_ACQUIRES_SHARED(lock);",
        "static void writing(void) SELVEDGE_ACQUIRES(lock);",
        "static int find(int key) SELVEDGE_REQUIRES_SHARED(lock);",
        "static void put(int key) SELVEDGE_REQUIRES(lock);",
        "static void done(void) SELVEDGE_RELEASES(lock);",
    ],
};

const CLASSES: Bundled = Bundled {
    name: "classes",
    sources: &["classes.cpp"],
    headers: &[],
    attributes: &[
        ("Account.balance", "guarded_by(mutex)"),
        ("Account.entries", "guarded_by(mutex)"),
        // C++ cannot declare its lock, which has internal linkage, ahead of it.
        ("visits", ""),
    ],
    written: &[
        "void add(long amount) SELVEDGE_REQUIRES(mutex) {",
        "long peek() const noexcept SELVEDGE_REQUIRES(mutex);",
        "void lock() const SELVEDGE_ACQUIRES(mutex) {",
        "int entries SELVEDGE_GUARDED_BY(mutex);",
        "static long visits; /* visits: guarded-by visits_lock */",
    ],
};

const POINTED: Bundled = Bundled {
    name: "pointed",
    sources: &["pointed.c"],
    headers: &[],
    attributes: &[("hits", "guarded_by(*lock)")],
    written: &["static long hits SELVEDGE_GUARDED_BY(*lock);"],
};

impl Bundled {
    fn files(&self) -> impl Iterator<Item = &'static str> {
        self.sources.iter().chain(self.headers).copied()
    }

    fn build(&self, twin: &str, options: &[&str]) -> Project {
        let project = Project::new(&format!("annotations-{}-{twin}", self.name));
        self.files().for_each(|file| project.source(&format!("discipline/clang/{file}")));
        let driver = if self.sources[0].ends_with("cpp") { "c++" } else { "cc" };
        // Objects keep their commands, and so does a call that compiles and links.
        let (last, first) = self.sources.split_last().unwrap();
        let mut objects = Vec::new();
        for source in first {
            let mut args = vec![driver, "-g", "-O1", "-pthread", "-c", source];
            args.extend(options);
            project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
            objects.push(format!("{}.o", Path::new(source).file_stem().unwrap().display()));
        }
        let mut args = vec![driver, "-g", "-O1", "-pthread", last, "-o", "program"];
        args.extend(objects.iter().map(String::as_str));
        args.extend(options);
        project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
        project
    }

    /// The source of a project, and its lines that are marked as planted.
    fn planted(&self, project: &Project) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        for file in self.sources {
            let text = fs::read_to_string(project.0.join(file)).unwrap();
            for (i, line) in text.lines().enumerate() {
                if line.ends_with("/* planted */") || line.ends_with("// planted") {
                    found.push((file.to_string(), i as u64 + 1));
                }
            }
        }
        found
    }

    #[track_caller]
    fn check(&self, compiler: &str) {
        let option = format!("--selvedge-compiler={compiler}");
        let right = self.build(&format!("right-{compiler}"), &[&option]);
        let before = self.texts(&right, "");
        let output = verify(&right, &["--annotate", "out", "--patch", "out.diff"]);
        let document = json(&output);
        assert_eq!(document["findings"], json!([]), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for (variable, attribute) in self.attributes {
            let expected = if attribute.is_empty() { Value::Null } else { json!(attribute) };
            assert_eq!(of(&document, variable)["clang"], expected, "{variable}");
        }
        assert_eq!(self.texts(&right, ""), before, "the sources stay as they are");
        right.call("patch", &["-p1", "-i", "out.diff"]);
        let annotated = self.texts(&right, "");
        let all = annotated.concat();
        for written in self.written {
            assert!(all.contains(written), "no `{written}` in\n{all}");
        }
        for (file, text) in self.files().zip(&annotated) {
            let copy = fs::read_to_string(right.0.join("out").join(file));
            assert!(copy.is_err() || copy.unwrap() == *text, "{file}: patch and copy differ");
        }
        self.changes_no_code(&right, &before);

        let twin = self.build(&format!("twin-{compiler}"), &[&option, "-DPLANTED"]);
        let output = verify(&twin, &[]);
        let document = json(&output);
        let findings = document["findings"].as_array().unwrap();
        let found: Vec<(String, u64)> = findings
            .iter()
            .map(|f| {
                assert_eq!(f["kind"], "discipline-violation", "{f:#}");
                assert_eq!(f["status"], "predicted", "{f:#}");
                let site = &f["sites"][0];
                (site["file"].as_str().unwrap().to_owned(), site["line"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(found, self.planted(&twin), "{findings:#?}\n{}", stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = verify(&twin, &["--fail-on", "predicted"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    }

    fn texts(&self, project: &Project, below: &str) -> Vec<String> {
        let read = |file| fs::read_to_string(project.0.join(below).join(file)).unwrap();
        self.files().map(read).collect()
    }

    /// The annotated sources, which lie in the project now, compile without a warning and to the same code.
    fn changes_no_code(&self, project: &Project, before: &[String]) {
        fs::create_dir_all(project.0.join("old")).unwrap();
        for (file, text) in self.files().zip(before) {
            fs::write(project.0.join("old").join(file), text).unwrap();
        }
        let headers = stdout(&project.selvedge(&["cc", "--selvedge-print-include-dir"]));
        let include = format!("-I{}", headers.trim_end());
        for source in self.sources {
            let compiler = if source.ends_with("cpp") { "g++" } else { "gcc" };
            let run = |below: &str, options: &[&str]| {
                let mut command = project.command(compiler, options);
                command.arg(source).arg(&include).current_dir(project.0.join(below));
                let output = command.output().unwrap();
                assert!(output.status.success(), "{}", stderr(&output));
                stdout(&output)
            };
            run("", &["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]);
            let assembly = ["-O1", "-S", "-o", "-"];
            let code = |below: &str| without_numbers(&run(below, &assembly));
            assert!(code_and_data(&code("")) == code_and_data(&code("old")), "{source}");
            let lines =
                |below: &str| own_lines(&run(below, &["-E"]), &self.files().collect::<Vec<_>>());
            only_declares_more(&lines("old"), &lines(""));
        }
    }
}

/// The assembly without the numbers of gcc's labels for a function (`.LFB16`, `.LFE16`, `.LLSDA16`): what an annotated
/// source declares and includes besides moves them.
fn without_numbers(assembly: &str) -> String {
    let mut text = String::new();
    let mut rest = assembly;
    let end = |text: &str, label: &str| text.find(label).map(|at| at + label.len());
    while let Some(at) = [".LFB", ".LFE", ".LLSDA"].iter().filter_map(|l| end(rest, l)).min() {
        let (before, after) = rest.split_at(at);
        text += before;
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    text + rest
}

/// The lines of functions as they are, and all others in the order of the alphabet: what is declared earlier is laid out
/// elsewhere.
fn code_and_data(assembly: &str) -> (Vec<&str>, Vec<&str>) {
    let mut inside = false;
    let (code, mut data): (Vec<&str>, Vec<&str>) = assembly.lines().partition(|line| {
        inside |= line.contains("@function");
        let is_code = inside;
        inside &= !line.trim_start().starts_with(".size");
        is_code
    });
    data.sort_unstable();
    (code, data)
}

/// The preprocessed lines that come from these files, without blanks.
fn own_lines(text: &str, files: &[&str]) -> Vec<String> {
    let mut own = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let file = marker.split('"').nth(1).unwrap_or_default();
            own = files.iter().any(|f| Path::new(file) == Path::new(f));
        } else if own {
            lines.push(line.split_whitespace().collect::<String>());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The new lines are the old ones and declarations.
#[track_caller]
fn only_declares_more(old: &[String], new: &[String]) {
    let mut old = old.iter().peekable();
    for line in new {
        if old.next_if(|o| *o == line).is_some() {
            continue;
        }
        let declares = line.ends_with(");") || line.starts_with("staticpthread_mutex_t");
        assert!(declares && !line.contains(['=', '{']), "{line}");
    }
    assert_eq!(old.next(), None);
}

fn of<'a>(document: &'a Value, variable: &str) -> &'a Value {
    let all = document["variables"].as_array().expect("variables");
    all.iter().find(|v| v["variable"] == variable).unwrap_or_else(|| panic!("{variable}: {all:#?}"))
}

fn verify(project: &Project, options: &[&str]) -> Output {
    let mut args =
        vec!["infer", "discipline", "--schedules", "5", "--clang", "--verify", "--format", "json"];
    args.extend(options);
    args.extend(["--", "./program"]);
    project.selvedge(&args)
}

#[test]
fn variables_with_static_storage() {
    GLOBALS.check("gcc");
    GLOBALS.check("clang-19");
}

#[test]
fn members_of_objects() {
    MEMBERS.check("gcc");
}

#[test]
fn functions_that_rely_on_their_callers() {
    CALLERS.check("gcc");
}

#[test]
fn wrappers_around_locks_in_another_file() {
    WRAPPERS.check("gcc");
}

#[test]
fn reader_writer_locks() {
    RWLOCK.check("gcc");
}

/// Memory that is only ever copied as a whole has the names of the members too, and of locks that guard nothing with
/// an attribute nothing is reported.
#[test]
fn a_lock_on_the_heap_and_records_that_are_copied() {
    POINTED.check("gcc");
    let project = POINTED.build("names", &[]);
    let args =
        ["infer", "discipline", "--clang", "--verify", "--format", "json", "--", "./program"];
    let output = project.selvedge(&args);
    let document = json(&output);
    for member in ["record.key", "record.count", "record.flag", "record.when"] {
        assert_eq!(of(&document, member)["discipline"], "guarded-by lock", "{member}");
    }
    assert!(stderr(&output).contains("of locks that guard no variable"), "{}", stderr(&output));
}

#[test]
fn classes_of_cxx() {
    CLASSES.check("g++");
}

#[test]
fn without_clang_nothing_is_verified() {
    let project = GLOBALS.build("without-clang", &[]);
    let args = ["infer", "discipline", "--verify", "--", "./program"];
    let run = |path: &str| {
        let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), &args);
        command.env("PATH", path).output().unwrap()
    };
    let none = run("/nonexistent");
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    assert!(stderr(&none).contains("apt-get install clang"), "{}", stderr(&none));
    // One that accepts everything and checks nothing.
    let bin = project.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy("/bin/true", bin.join("clang")).unwrap();
    let blind = run(bin.to_str().unwrap());
    assert_eq!(blind.status.code(), Some(3), "{}", stderr(&blind));
    assert!(stderr(&blind).contains("thread safety analysis"), "{}", stderr(&blind));
}

#[test]
fn commands_come_from_the_program_or_from_a_file() {
    let project = Project::new("annotations-commands");
    project.source("discipline/clang/globals.c");
    // Not compiled by `selvedge cc`, so that the program does not know how.
    let object = ["-g", "-O1", "-fsanitize=thread", "-DPLANTED", "-c", "globals.c"];
    project.call("gcc", &object);
    project.call(env!("CARGO_BIN_EXE_selvedge"), &["cc", "globals.o", "-o", "program", "-pthread"]);
    let unknown = verify(&project, &[]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(stderr(&unknown).contains("--compile-commands"), "{}", stderr(&unknown));
    let database = json!([{
        "directory": project.0, "file": "globals.c", "command": "gcc -DPLANTED -c 'globals.c'",
    }]);
    fs::write(project.0.join("commands.json"), database.to_string()).unwrap();
    let output = verify(&project, &["--compile-commands", "commands.json"]);
    let document = json(&output);
    assert_eq!(document["findings"].as_array().unwrap().len(), 1, "{}", stderr(&output));
    fs::write(project.0.join("commands.json"), "[{]").unwrap();
    let wrong = verify(&project, &["--compile-commands", "commands.json"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("commands.json:1:"), "{}", stderr(&wrong));
}

#[test]
fn what_clang_cannot_compile_is_not_verified() {
    let project = GLOBALS.build("unparsable", &[]);
    let database = json!([{
        "directory": project.0, "file": "globals.c", "command": "cc -Dpthread_create=} -c globals.c",
    }]);
    fs::write(project.0.join("commands.json"), database.to_string()).unwrap();
    let output = verify(&project, &["--compile-commands", "commands.json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("clang cannot compile a source"), "{}", stderr(&output));
}

#[test]
fn the_lock_of_libstdcxx_is_a_comment() {
    let project = Project::new("annotations-std-mutex");
    let text = "#include <mutex>\n#include <thread>\n\nstd::mutex lock;\nlong hits;\n\n\
                static void work() {\n    for (int i = 0; i < 9; i++) {\n        \
                std::lock_guard<std::mutex> guard(lock);\n        hits++;\n    }\n}\n\n\
                int main() {\n    std::thread a(work), b(work);\n    a.join();\n    b.join();\n}\n";
    fs::write(project.0.join("a.cpp"), text).unwrap();
    let build = ["c++", "-g", "-O1", "a.cpp", "-o", "program", "-pthread"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &build);
    let output = verify(&project, &["--annotate", "out"]);
    let document = json(&output);
    let hits = of(&document, "hits");
    assert_eq!(hits["clang"], Value::Null);
    assert_eq!(hits["discipline"], "guarded-by lock");
    let copy = fs::read_to_string(project.0.join("out/a.cpp")).unwrap();
    assert!(copy.contains("long hits; /* hits: guarded-by lock */\n"), "{copy}");
}
