//! `ndseq` on the examples of its source, with the verdicts of the source.

use selvedge_analyses::Analysis;
use selvedge_analyses::ndseq::NdSeq;
use selvedge_model::{Findings, Kind, Status, Symbols, trace};
use selvedge_specs::ndseq::check::strict;
use selvedge_specs::ndseq::execution::PieceKind;
use selvedge_specs::ndseq::{Check, Execution, Recorder, check};

mod golden;

/// An execution that was read from text, and what the check says of it.
struct Read {
    execution: Execution,
    symbols: Symbols,
    check: Check,
    findings: Findings,
}

fn read(text: &str) -> Read {
    let (events, symbols) = trace::parse(text).expect("a valid trace");
    let (mut recorder, mut analysis) = (Recorder::default(), NdSeq::default());
    let mut findings = Findings::default();
    for event in &events {
        recorder.on_event(event);
        analysis.on_event(event, &mut findings);
    }
    analysis.finish(&mut findings);
    let execution = recorder.finish();
    let check = check(&execution);
    assert_eq!(check.conforms(), findings.is_empty());
    assert!(findings.iter().all(|f| f.kind == Kind::ParallelismViolation));
    assert!(findings.iter().all(|f| f.status == Status::Predicted));
    Read { execution, symbols, check, findings }
}

impl Read {
    /// The sites at which every node is irrelevant.
    fn irrelevant(&self) -> Vec<String> {
        let all = || 0..self.execution.nodes().len() as u32;
        let site = |n: u32| self.symbols.site(self.execution.nodes()[n as usize].site).to_string();
        let relevant: Vec<String> =
            all().filter(|&n| self.check.relevance.has(n)).map(site).collect();
        let mut rest: Vec<String> = all().map(site).filter(|s| !relevant.contains(s)).collect();
        rest.dedup();
        rest
    }

    /// The threads in the order of the sequential execution that the check implies.
    fn order(&self) -> Vec<String> {
        let pieces = self.check.order.iter().map(|&p| self.execution.pieces()[p as usize]);
        let tasks = pieces.filter(|p| p.kind == PieceKind::Thread);
        tasks.map(|p| self.symbols.thread(p.thread)).collect()
    }

    fn strict(&self) -> usize {
        strict(&self.execution).len()
    }
}
