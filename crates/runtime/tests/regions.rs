//! Functions as regions: every event happens in the regions that it happened in, however functions are
//! left, and what the host is told nests.

mod common;

use std::path::Path;
use std::process::Command;

use common::{libraries, succeed, workspace};
use selvedge_model::{Event, Op, RegionKind, Site, Symbols, ThreadId};
use selvedge_runtime::{
    ByModule, Form, FunctionRegion, Modules, Observe, Options, Resolve, Session,
};

/// Every function is an atomic region.
struct Everything {
    symbols: addr2line::Loader,
}

impl Resolve for Everything {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        ByModule.site(pc, modules)
    }

    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        let module = modules.find(pc)?;
        Some(self.symbols.find_symbol(pc - module.base)?.to_owned())
    }

    fn regions(&mut self, _: &Modules) -> Vec<FunctionRegion> {
        vec![FunctionRegion { code: 0..u64::MAX, kinds: vec![RegionKind::Atomic] }]
    }
}

/// Which regions each acquisition happened in, and whether regions nested.
#[derive(Default)]
struct Nesting {
    open: std::collections::BTreeMap<ThreadId, Vec<String>>,
    acquisitions: Vec<String>,
}

impl Observe for Nesting {
    fn event(&mut self, event: &Event, symbols: &Symbols) {
        let name = |id| symbols.region(id).expect("regions have names").name.to_string();
        let open = self.open.entry(event.thread).or_default();
        match event.op {
            Op::RegionEnter(id, _) => open.push(name(id)),
            Op::RegionExit(id) => assert_eq!(open.pop(), Some(name(id)), "regions nest"),
            Op::Acquire(..) => self.acquisitions.push(shortened(open)),
            Op::End => assert!(open.is_empty(), "{open:?} outlive their thread"),
            _ => {}
        }
    }
}

/// `main deep×62 take`.
fn shortened(names: &[String]) -> String {
    let groups = names.chunk_by(|a, b| a == b).map(|group| match group.len() {
        1 => group[0].clone(),
        n => format!("{}×{n}", group[0]),
    });
    groups.collect::<Vec<_>>().join(" ")
}

fn observe(compiler: &str) -> Nesting {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions/leave.cpp");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let directory = workspace("regions");
    let (program, object) =
        (directory.join(format!("leave-{compiler}")), directory.join(format!("{compiler}.o")));
    let mut compile = Command::new(compiler);
    compile.args(["-fsanitize=thread", "-g", "-O1", "-c", "-I"]).arg(include);
    succeed(compile.arg(source).arg("-o").arg(&object)).expect("it compiles");
    let mut link = Command::new(compiler);
    link.arg(&object).arg(&libraries().archive).args(["-lpthread", "-o"]).arg(&program);
    succeed(&mut link).expect("it links");

    let options = Options { function_regions: true, ..Options::default() };
    let session = Session::start(Command::new(&program), Form::Linked, libraries(), options)
        .expect("it starts");
    let mut everything =
        Everything { symbols: addr2line::Loader::new(&program).expect("it has symbols") };
    let mut nesting = Nesting::default();
    let outcome = session
        .finish(&mut Symbols::default(), &mut everything, &mut nesting)
        .expect("it is observed");
    assert!(outcome.status.success() && outcome.lost == 0);
    nesting
}

#[test]
fn regions_end_however_functions_are_left() {
    for compiler in ["g++", "clang++-19"] {
        let nesting = observe(compiler);
        let expected = [
            "main throws take",
            "main take",
            "main jumps_far forgotten jumps take",
            "main take",
            // As deep as regions are told.
            "main deep×63",
            "main take",
            "main opens marked take",
            "main marked take",
            "main take",
            "quits take",
            "main take",
        ];
        assert_eq!(nesting.acquisitions, expected, "{compiler}");
        assert!(nesting.open.values().all(Vec::is_empty), "{compiler}: {:?}", nesting.open);
    }
}
