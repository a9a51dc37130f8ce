//! Any bytes as the raw contents of a block, with headers and checksums that fit, so that the fuzzer
//! gets past them; and the same bytes as a whole file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_model::Findings;
use selvedge_model::trace::Reader;
use selvedge_model::trace::binary::file_of_raw_block;

fn read(file: &[u8]) {
    let Ok(mut reader) = Reader::new(file) else { return };
    let mut analysis = FastTrack::new();
    let mut findings = Findings::default();
    let mut batch = Vec::new();
    loop {
        let outcome = reader.read(&mut batch);
        analysis.on_events(&batch, &mut findings);
        if outcome.is_err() || batch.is_empty() {
            return;
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    if let [events, raw @ ..] = bytes {
        read(&file_of_raw_block(raw, u32::from(*events)));
    }
});
