//! What is decided about C programs, with the compiler of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_instrument::accesses::Rules;
use selvedge_instrument::ffi::Module;
use selvedge_instrument::ir::{self, What};
use selvedge_instrument::statements::{Kind, statements};
use selvedge_instrument::table::{Callee, Function, Op, Table};
use selvedge_instrument::{Error, Library, flow, races};

fn compiler() -> Vec<OsString> {
    let named = ["clang-19", "clang"]
        .into_iter()
        .find(|n| Command::new(n).arg("--version").output().is_ok_and(|o| o.status.success()));
    vec![named.expect("clang is installed (cargo xtask setup)").into()]
}

fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("flow").join(name);
    std::fs::create_dir_all(&directory).expect("target/tmp is writable");
    directory
}

/// The table of a source. The instrumented module is also compiled, so that it is known to be valid.
fn table(name: &str, source: &str) -> Result<Table, Error> {
    let (directory, compiler) = (directory(name), compiler());
    let (c, bc) = (directory.join("a.c"), directory.join("a.bc"));
    std::fs::write(&c, source).expect("target/tmp is writable");
    let run = |args: &[&str]| {
        let status = Command::new(&compiler[0]).args(args).current_dir(&directory).status();
        assert!(status.is_ok_and(|s| s.success()), "{args:?}");
    };
    let bitcode = ["-O0", "-Xclang", "-disable-O0-optnone", "-fno-builtin", "-g", "-emit-llvm"];
    run(&[&bitcode[..], &["-c", "a.c", "-o", "a.bc"]].concat());
    let library = Library::of_compiler(&compiler)?;
    let dump = Command::new(&compiler[0])
        .args(["-fsyntax-only", "-Xclang", "-ast-dump=json", "a.c"])
        .current_dir(&directory)
        .output()
        .expect("clang runs");
    let table = flow(&library, &bc, &statements(&String::from_utf8_lossy(&dump.stdout)))?;
    run(&["-O2", "-g", "-c", "a.bc", "-o", "a.o"]);
    let encoded = table.encode();
    assert_eq!(Table::decode_all(&encoded).expect("is readable"), std::slice::from_ref(&table));
    Ok(table)
}

fn function<'a>(table: &'a Table, name: &str) -> &'a Function {
    table.functions.iter().find(|f| f.name == name).expect("the function is there")
}

fn ops(function: &Function) -> Vec<&Op> {
    function.blocks.iter().flatten().map(|(_, op)| op).collect()
}

#[test]
fn variables_whose_address_is_not_taken_are_locals() {
    let t = table(
        "locals",
        "int g; int f(int a) { int x = a; int *p; int y = g; p = &y; return x + *p; }",
    )
    .unwrap();
    let ops = ops(function(&t, "f"));
    let loads = ops.iter().filter(|op| matches!(op, Op::Load { .. })).count();
    let stores = ops.iter().filter(|op| matches!(op, Op::Store { .. })).count();
    assert_eq!((loads, stores), (2, 1), "g, *p and y: {ops:#?}");
    assert!(matches!(ops.last(), Some(Op::Return { uses }) if !uses.is_empty()));
}

#[test]
fn the_old_value_of_a_variable_is_kept_when_it_changes() {
    let t = table("old", "int f(int x) { int y = x++; int z = x; x = 5; return y + z; }").unwrap();
    let f = function(&t, "f");
    // y is made of what x was before it was incremented: that value has a local of its own.
    let computed: Vec<(u32, &[u32])> = ops(f)
        .into_iter()
        .filter_map(|op| match op {
            Op::Compute { to, uses } => Some((*to, &uses[..])),
            _ => None,
        })
        .collect();
    let increment = computed.iter().position(|(to, uses)| uses == &[*to]).expect("x = x + 1");
    let (kept, from) = computed[increment - 1];
    assert_eq!(from, [computed[increment].0], "x is kept before it changes: {computed:?}");
    assert!(computed[increment + 1..].iter().any(|(_, uses)| uses == &[kept]), "y = kept");
}

#[test]
fn a_star_is_what_its_true_edge_dominates() {
    let source = "int selvedge_star_enter(const char *); int selvedge_star_value(int); int g;
        int f(int n) {
            int done = 0;
            while (!done) { if (selvedge_star_enter(\"try\")) { if (n > 3) break; g = n; done = 1; } }
            if (selvedge_star_value(selvedge_star_enter(\"c\") && g > n)) return 7;
            return n / g;
        }";
    let t = table("star", source).unwrap();
    let f = function(&t, "f");
    assert_eq!(f.stars.len(), 2);
    assert_eq!(f.stars[0].inside.len(), 3, "the test, the break, the rest");
    assert!(!f.stars[0].inside.contains(&f.stars[0].end));
    let ops = ops(f);
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Choose { .. })).count(), 2);
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::StarValue { .. })).count(), 1);
    // The loop, the test in it, the value of the condition, the divisor.
    let decides = |op: &&&Op| matches!(op, Op::Decide { uses } if !uses.is_empty());
    assert_eq!(ops.iter().filter(decides).count(), 4);
}

#[test]
fn calls_that_leave_have_places() {
    let source = "int puts(const char *); static int h(int a) { return a; }
        int f(int (*c)(int)) { puts(\"x\"); __asm__ volatile(\"cpuid\"); return h(1) + c(2); }";
    let t = table("calls", source).unwrap();
    let calls: Vec<(&Callee, bool)> = ops(function(&t, "f"))
        .into_iter()
        .filter_map(|op| match op {
            Op::Call { callee, leaves, .. } => Some((callee, *leaves)),
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            (&Callee::Named("puts".into()), true),
            (&Callee::Assembly("cpuid".into()), true),
            (&Callee::Named("h".into()), false),
            (&Callee::Computed, true)
        ]
    );
    assert_eq!(t.places() as usize, t.all_places().count());
}

#[test]
fn a_star_in_the_middle_of_a_condition_is_refused() {
    let source = "int selvedge_star_enter(const char *);
        int f(int a) { if (a || selvedge_star_enter(\"x\")) return 1; return 2; }";
    let error = table("refused", source).unwrap_err().to_string();
    assert!(error.contains("a.c:2: this star is part of a condition"), "{error}");
}

#[test]
fn a_compiler_without_a_library_says_what_to_install() {
    let directory = directory("missing");
    let script = directory.join("clang-99");
    std::fs::write(&script, "#!/bin/sh\n[ \"$1\" = -dumpversion ] && echo 99.1.0\n").unwrap();
    let mut command = Command::new("chmod");
    assert!(command.arg("+x").arg(&script).status().is_ok_and(|s| s.success()));
    let error = Library::of_compiler(&[script.into()]).unwrap_err().to_string();
    assert!(error.contains("install the package libllvm99"), "{error}");
}

/// How often the functions of a source call this one, compiled for any processor, after hooks were put in and taken out.
fn hooks(name: &str, source: &str, options: &[&str], hook: &str) -> usize {
    let (directory, compiler) = (directory(name), compiler());
    std::fs::write(directory.join("a.c"), source).expect("target/tmp is writable");
    let command = ["-O2", "-g", "-fsanitize=thread", "-emit-llvm", "-c", "a.c", "-o", "a.bc"];
    let status =
        Command::new(&compiler[0]).args(command).args(options).current_dir(&directory).status();
    assert!(status.is_ok_and(|s| s.success()), "{options:?}");
    let library = Library::of_compiler(&compiler).expect("clang has a libLLVM");
    let bitcode = directory.join("a.bc");
    races(&library, &bitcode, Rules::ALL).expect("the module stays valid");
    let module = Module::read(&library, &bitcode).expect("it is bitcode").ir();
    let all = module.functions.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.instructions);
    all.filter(|i| match &i.what {
        What::Call { callee: ir::Callee::Named(name, _), .. } => name == hook,
        What::Access { write, len, .. } => {
            hook == format!("{}{len}", if *write { "write" } else { "read" })
        }
        _ => false,
    })
    .count()
}

#[test]
fn vectors_of_any_width_get_hooks() {
    let source =
        "typedef int wide __attribute__((vector_size(64))); wide a, b; void f(void) { a = b; }";
    let avx512 = ["-mavx512f", "-mprefer-vector-width=512"];
    // In both bodies, if there are two: here nothing can be left out.
    assert_eq!(hooks("wide-read", source, &avx512, "read64"), 1);
    assert_eq!(hooks("wide-write", source, &avx512, "write64"), 1);
    assert_eq!(hooks("wide-alone", "void g(void) {}", &avx512, "read64"), 0);
}

#[test]
fn lanes_that_are_gathered_and_scattered_get_a_hook_each() {
    let loop_of = |body: &str| {
        format!(
            "void f(int n, int *a, int *b, const int *at) {{
                 _Pragma(\"clang loop vectorize(assume_safety)\")
                 for (int i = 0; i < 1024; i++) if (b[i]) {body}
             }}"
        )
    };
    let avx512 = ["-march=skylake-avx512", "-mprefer-vector-width=512"];
    let gathers = hooks("gather", &loop_of("a[i] = b[at[i]];"), &avx512, "selvedge_lanes_read");
    assert!(gathers >= 16, "{gathers}");
    let scatters = hooks("scatter", &loop_of("a[at[i]] = n;"), &avx512, "selvedge_lanes_write");
    assert!(scatters >= 16, "{scatters}");
}

/// A script that notes each call in `calls` and then does this.
fn noting_script(directory: &Path, then: &str) -> PathBuf {
    let script = directory.join("clang-noted");
    let text = format!("#!/bin/sh\necho \"$@\" >> {}/calls\n{then}\n", directory.display());
    std::fs::write(&script, text).unwrap();
    let mut command = Command::new("chmod");
    assert!(command.arg("+x").arg(&script).status().is_ok_and(|s| s.success()));
    script
}

#[test]
fn a_compiler_is_asked_for_its_library_once() {
    let directory = directory("remembered");
    let _ = std::fs::remove_dir_all(directory.join("kept"));
    let script = noting_script(&directory, "exec clang-19 \"$@\"");
    let calls = || std::fs::read_to_string(directory.join("calls")).unwrap().lines().count();
    let find = || Library::remembered(&[script.clone().into()], &directory.join("kept"));
    let first = find().unwrap();
    let asked = calls();
    let second = find().unwrap();
    assert_eq!((first.path, calls()), (second.path, asked));
    // Another compiler has come in its place.
    noting_script(&directory, "[ \"$1\" = -dumpversion ] && echo 99.1.0");
    let missing = find().unwrap_err().to_string();
    assert!(missing.contains("libllvm99"), "{missing}");
    let asked_again = calls();
    assert!(asked_again > asked);
    assert_eq!((find().unwrap_err().to_string(), calls()), (missing, asked_again));
}

#[test]
fn damaged_tables_are_refused() {
    let t = table("damaged", "int f(int a) { return a; }").unwrap();
    let good = t.encode();
    assert!(Table::decode_all(&good[..good.len() - 1]).is_err());
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        let _ = Table::decode_all(&bytes);
    }
    let mut newer = good;
    newer[4] += 1;
    let error = Table::decode_all(&newer).unwrap_err().to_string();
    assert!(error.contains("another version of selvedge"), "{error}");
}

#[test]
fn statements_stand_in_the_table_and_jumps_leave_a_trace() {
    let source = "\
int x;
int f(int n) {
  int i = 0;
  for (;;) {
    if (x > n)
      break;
    i++; x++;
    switch (n) {
    case 1:
      x = 2;
      break;
    default: { x = 3; }
    }
  }
  if (n) return 3;
  else {
    goto out;
  }
out:
  return i;
}
";
    let t = table("statements", source).unwrap();
    let f = function(&t, "f");
    let lines: Vec<_> = f.statements.iter().map(|s| (s.from.0, s.to.0, s.kind)).collect();
    let expected = [
        (3, 3, Kind::Plain),
        (4, 14, Kind::Loop),
        (5, 6, Kind::Plain),
        (6, 6, Kind::Break),
        (7, 7, Kind::Plain),
        (7, 7, Kind::Plain),
        (8, 13, Kind::Switch),
        (10, 10, Kind::Plain),
        (11, 11, Kind::Break),
        (12, 12, Kind::Plain),
        (15, 18, Kind::Plain),
        (15, 15, Kind::Return),
        (17, 17, Kind::Goto),
        (20, 20, Kind::Return),
    ];
    assert_eq!(lines, expected);
    let parents: Vec<u32> = f.statements.iter().map(|s| s.parent.wrapping_add(1)).collect();
    assert_eq!(parents, [0, 0, 2, 3, 2, 2, 2, 7, 7, 7, 0, 11, 11, 0]);
    let steps: Vec<u32> = f.blocks.iter().flatten().map(|(loc, _)| loc.line).collect();
    for line in [4, 6, 11, 17] {
        assert!(steps.contains(&line), "line {line}: {steps:?}");
    }
}

/// Tables are told apart by what they say, and the linker refuses two of one name.
#[test]
fn a_module_of_data_has_no_table() {
    table("data", "const int numbers[3] = {1, 2, 3};").unwrap();
    let object = std::fs::read(directory("data").join("a.o")).expect("it was compiled");
    let name = b"selvedge_flow_table";
    assert!(!object.windows(name.len()).any(|w| w == name));
}

/// A loop says once a round that it goes on: what comes behind its body, and its condition, follow from that.
#[test]
fn blocks_to_which_control_always_comes_are_not_recorded() {
    let source = "int g; void mark(void); static void in(void) { mark(); }
        void f(int n) { for (int i = 0; i < n; i++) g = i; }
        void h(int n) { for (int i = 0; i < n; i++) in(); }
        void e(void) { while (1) { g = 1; } }";
    let t = table("blocks", source).unwrap();
    let jumps = |name| {
        let jumps = ops(function(&t, name)).into_iter();
        jumps.filter(|op| matches!(op, Op::Jump { .. })).count()
    };
    assert_eq!(jumps("f"), 3, "to the condition, to the step, and to the condition");
    assert_eq!(jumps("h"), 2, "what is called may have marked something: only to the condition");
    assert_eq!(jumps("e"), 0, "a loop without a condition says each time that it goes on");
}
