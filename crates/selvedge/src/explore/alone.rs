//! Whether operations end when they are left alone.

use selvedge_engine::{Ask, Executor, Noted};
use selvedge_explore::{Alone, Rng, Strategy};
use selvedge_model::{Failure as Failing, Finding, Kind, Status};

use super::Check;
use crate::failure::Failure;
use crate::report::{self, Report};

impl Check {
    /// Leaves threads alone in atomic blocks, in so many executions; the first block that does not end.
    pub(super) fn obstructed(&self, executions: u64) -> Option<Box<Failure>> {
        let seed = self.options.seed;
        let (number, execution, symbols, (thread, region)) = self.on_a_thread(move |worker| {
            let mut strategy = Alone::default();
            let ask = Ask { seed, noted: Noted::Events, ..Ask::default() };
            (0..executions).find_map(|number| {
                strategy.begin(Rng::of_execution(seed, number));
                let Ok(execution) = worker.run(&mut strategy, &ask);
                let obstructed = strategy.obstructed()?;
                let symbols = worker.named(&execution);
                Some((number + 1, execution, symbols, obstructed))
            })
        })?;
        let block = symbols.region(region).map_or("a block", |region| &*region.name);
        let text = format!(
            "{} does not end its atomic block {block:?} when it is left alone: it waits for a thread that stands still",
            symbols.thread(thread)
        );
        let failure =
            Failing::Message { text: text.clone(), thread: None, ended: None, before: None };
        let finding = Finding {
            status: Status::Confirmed,
            ..Finding::failure(Kind::Hang, failure, Vec::new())
        };
        let schedule = execution.schedule.clone();
        let rendered = report::render(&Report {
            test: self.test.as_deref(),
            execution: number,
            how: &format!("a thread left alone, seed {seed}"),
            words: &text,
            schedules: std::slice::from_ref(&schedule),
            shown: Vec::new(),
            critical: &[],
            note: None,
        });
        let schedules = vec![schedule.clone()];
        let case = report::case(&finding, &symbols);
        Some(Box::new(Failure { case, execution: number, schedule, schedules, text: rendered }))
    }
}
