//! An analysis that has seen an execution and restarts finds in the next one what a new analysis finds.

use proptest::prelude::*;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::lockregions::LockRegions;
use selvedge_analyses::velodrome::Velodrome;
use selvedge_analyses::{ANALYSES, Analysis, singletrack};
use selvedge_model::{Event, Finding, Findings, RegionKind};

use crate::generate::{Mix, execution, wishes};
use crate::{cases, shown};

fn analyses(kind: RegionKind) -> Vec<(&'static str, Box<dyn Analysis>)> {
    let registered = ANALYSES.iter().map(|e| (e.name, (e.new)()));
    let others: Vec<Box<dyn Analysis>> = vec![
        Box::new(AeroDrome::of(kind)),
        Box::new(Velodrome::of(kind)),
        Box::new(Atomizer::of(kind)),
        Box::new(singletrack::SingleTrack::of(kind)),
        Box::new(singletrack::Filtered::of(kind)),
        Box::new(LockRegions::new(AeroDrome::of(kind))),
    ];
    registered.chain(others.into_iter().map(|a| ("of a kind", a))).collect()
}

fn found(analysis: &mut dyn Analysis, events: &[Event]) -> Vec<Finding> {
    let mut out = Findings::default();
    analysis.on_events(events, &mut out);
    analysis.finish(&mut out);
    out.into_iter().collect()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn nothing_is_left_of_the_execution_before(
        before in wishes(120),
        now in wishes(120),
        atomic in any::<bool>(),
    ) {
        let kind = if atomic { RegionKind::Atomic } else { RegionKind::Deterministic };
        let mix = Mix { kind, early: 3, everything: true };
        let (before, now) = (execution(&before, mix), execution(&now, mix));
        for ((name, mut used), (_, mut new)) in analyses(kind).into_iter().zip(analyses(kind)) {
            found(&mut *used, &before);
            used.restart();
            let expected = found(&mut *new, &now);
            prop_assert_eq!(found(&mut *used, &now), expected, "{}\n{}", name, shown(&now));
            prop_assert_eq!(used.bound(), new.bound());
        }
    }
}
