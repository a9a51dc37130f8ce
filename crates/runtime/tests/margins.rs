//! `--margin` on native programs: the shares agree with the probability that going through all schedules gives.

mod common;
#[path = "../../engine/tests/campaign/ways.rs"]
mod ways;

use common::{build, libraries, settings};
use selvedge_runtime::Controlled;

#[test]
fn shares_agree_with_all_schedules_of_five_programs() {
    let built = build("small.c", false);
    for which in ["0", "1", "2", "3", "4"] {
        let program = Controlled::new(&built.program, [which], libraries(), settings(true));
        ways::agree(&mut program.expect("there is memory"), 200, which);
    }
}
