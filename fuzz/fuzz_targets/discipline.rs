//! Any bytes as a specification of disciplines: an error with a place, or a specification that reads back the
//! same after it was printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_specs::discipline::parse;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(specification) => assert_eq!(parse(&specification.to_string()), Ok(specification)),
        Err(error) => assert!(error.line > 0 && error.column > 0),
    }
});
