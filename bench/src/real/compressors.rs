//! Compressors: their output must be the same bits as without us, and must decompress to the input.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::source::{self, With};
use super::{Result, Row, Workshop, compare, pairs_of_tsan};

/// A program that reads from standard input and writes to standard output.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    pub(super) name: &'static str,
    pack: &'static [&'static str],
    unpack: &'static [&'static str],
}

pub(super) const PLAIN: [Plain; 3] = [
    Plain { name: "pbzip2", pack: &["-p2", "-c"], unpack: &["-p2", "-d", "-c"] },
    Plain { name: "zstd", pack: &["-T2", "-q", "-c"], unpack: &["-q", "-d", "-c"] },
    Plain {
        name: "xz",
        pack: &["-T2", "-1", "--block-size=1MiB", "-c"],
        unpack: &["-T2", "-d", "-c"],
    },
];

/// The same built from source.
#[derive(Clone, Copy)]
pub(super) struct Built {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) script: &'static str,
    pub(super) program: &'static str,
    plain: usize,
}

pub(super) const BUILT: [Built; 2] = [
    Built {
        name: "pbzip2",
        package: "pbzip2",
        script: "make CXX=\"$CXX $SANITIZE\" CC=\"$CC $SANITIZE\" CXXFLAGS='-O1 -g -D_LARGEFILE64_SOURCE \
            -D_FILE_OFFSET_BITS=64' pbzip2",
        program: "pbzip2",
        plain: 0,
    },
    Built {
        name: "zstd",
        package: "libzstd",
        script: "make -C programs zstd CC=\"$CC\" CXX=\"$CXX\" CFLAGS=\"-O1 -g $SANITIZE\" \
            LDFLAGS=\"$SANITIZE\" HAVE_LZMA=0 HAVE_LZ4=0 HAVE_ZLIB=0",
        program: "programs/zstd",
        plain: 1,
    },
];

/// Six megabytes that compress a little: the same on every machine.
fn data() -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..6 << 20)
        .map(|i: u32| if next().is_multiple_of(3) { next() as u8 } else { (i / 7) as u8 })
        .collect()
}

/// Runs a command with a file as its input; what it printed, and what it said.
fn filter(command: &mut Command, input: &Path) -> Result<(Vec<u8>, String, bool)> {
    let file = fs::File::open(input).map_err(|e| e.to_string())?;
    let output = command.stdin(file).stderr(Stdio::piped()).output();
    let output = output.map_err(|e| format!("{command:?}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.stdout, said, output.status.success()))
}

pub(super) fn plain(workshop: &Workshop, program: Plain) -> Result<Vec<Row>> {
    let directory = workshop.fresh(program.name)?;
    let (input, packed) = (directory.join("data"), directory.join("packed"));
    let original = data();
    fs::write(&input, &original).map_err(|e| e.to_string())?;
    let (native, _, _) = filter(Command::new(program.name).args(program.pack), &input)?;
    let mut works = true;
    let mut findings = 0;
    for (args, from, expected) in
        [(program.pack, &input, &native), (program.unpack, &packed, &original)]
    {
        let mut command = workshop.selvedge(&directory, &["run", "--", program.name]);
        let (made, said, _) = filter(command.args(args), from)?;
        works &= !native.is_empty() && made == *expected;
        findings += said.lines().filter(|l| l.starts_with("error[")).count();
        fs::write(&packed, &native).map_err(|e| e.to_string())?;
    }
    Ok(vec![Row {
        program: program.name.into(),
        form: "Debian's, plain",
        works,
        findings: findings.to_string(),
        tsan: "-".into(),
        remarks: Vec::new(),
    }])
}

pub(super) fn built(workshop: &Workshop, program: Built) -> Result<Vec<Row>> {
    let directory = workshop.fresh(&format!("{}-built", program.name))?;
    let (input, packed) = (directory.join("data"), directory.join("packed"));
    let original = data();
    fs::write(&input, &original).map_err(|e| e.to_string())?;
    let Plain { pack, unpack, .. } = PLAIN[program.plain];
    let ours = source::build(workshop, program.package, With::Selvedge, program.script)?;
    let tsan = source::build(workshop, program.package, With::Tsan, program.script)?;
    let (mut works, mut seen, mut theirs) = (true, BTreeSet::new(), BTreeSet::new());
    // Packs with the one, unpacks with the same, and compares with what went in.
    for (args, from) in [(pack, &input), (unpack, &packed)] {
        let path = ours.join(program.program);
        let mut command = workshop.selvedge(&directory, &["run", "--fail-on", "never", "--"]);
        let (made, _, ended_well) = filter(command.arg(&path).args(args), from)?;
        seen.extend(workshop.found(&directory)?);
        let (made_by_tsan, said, _) =
            filter(Command::new(tsan.join(program.program)).args(args), from)?;
        theirs.extend(pairs_of_tsan(&said, &tsan));
        works &= ended_well && made == made_by_tsan;
        if from == &packed {
            works &= made == original;
        }
        fs::write(&packed, &made).map_err(|e| e.to_string())?;
    }
    let (findings, tsan, remarks) = compare(&seen, &theirs);
    Ok(vec![Row {
        program: program.name.into(),
        form: "from source",
        works,
        findings,
        tsan,
        remarks,
    }])
}
