//! An analysis that has seen an execution and restarts finds in the next one what a new analysis finds.

use proptest::prelude::*;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockregions::LockRegions;
use selvedge_analyses::lockset::Lockset;
use selvedge_analyses::velodrome::Velodrome;
use selvedge_analyses::views::Views;
use selvedge_analyses::{Analysis, singletrack};
use selvedge_model::{Event, Finding, Findings, RegionKind};

use crate::generate::{Mix, execution, wishes};
use crate::{cases, shown};

fn analyses(kind: RegionKind) -> Vec<Box<dyn Analysis>> {
    vec![
        Box::new(FastTrack::new()),
        Box::<Goodlock>::default(),
        Box::<Hybrid>::default(),
        Box::<Lockset>::default(),
        Box::new(Views::new()),
        Box::new(AeroDrome::of(kind)),
        Box::new(Velodrome::of(kind)),
        Box::new(Atomizer::of(kind)),
        Box::new(singletrack::SingleTrack::of(kind)),
        Box::new(singletrack::Filtered::of(kind)),
        Box::new(LockRegions::new(AeroDrome::of(kind))),
    ]
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
        for (mut used, mut new) in analyses(kind).into_iter().zip(analyses(kind)) {
            found(&mut *used, &before);
            used.restart();
            let name = used.name();
            let expected = found(&mut *new, &now);
            prop_assert_eq!(found(&mut *used, &now), expected, "{}\n{}", name, shown(&now));
            prop_assert_eq!(used.bound(), new.bound());
        }
    }
}
