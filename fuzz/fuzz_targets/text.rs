//! Any bytes as a text trace: an error or an execution, which every analysis takes without a panic,
//! and which reads back the same after it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockset::Lockset;
use selvedge_model::Findings;
use selvedge_model::trace::binary::BinaryWriter;
use selvedge_model::trace::{Reader, parse};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        if let Ok(mut reader) = Reader::new(bytes) {
            let _ = reader.read(&mut Vec::new());
        }
        return;
    };
    let Ok((events, symbols)) = parse(text) else { return };
    let mut findings = Findings::default();
    let analyses: [Box<dyn Analysis>; 4] = [
        Box::new(FastTrack::new()),
        Box::new(Lockset::default()),
        Box::new(Hybrid::default()),
        Box::new(Goodlock::with_max_steps(10_000)),
    ];
    for mut analysis in analyses {
        analysis.on_events(&events, &mut findings);
        analysis.finish(&mut findings);
    }
    for finding in &findings {
        let _ = finding.id(&symbols).to_string();
    }
    let mut writer = BinaryWriter::new(Vec::new()).unwrap();
    events.iter().for_each(|e| writer.write(e, &symbols).unwrap());
    let binary = writer.finish(&symbols).unwrap();
    let mut reader = Reader::new(&binary[..]).unwrap();
    let mut back = Vec::new();
    reader.read(&mut back).unwrap();
    assert_eq!(back, events[..back.len()]);
});
