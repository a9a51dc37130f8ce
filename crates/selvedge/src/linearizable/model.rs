//! Executions as histories, judged by a [`Model`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use selvedge_engine::witness::{Modelled as Found, Specified};
use selvedge_model::Site;
use selvedge_specs::Value;
use selvedge_specs::atomic::AtomicBlocks;
use selvedge_specs::history::{self, Operation, Sequential, Spent, Verdict};

use super::results::Results;
use super::{Linearizable, Model};

/// So many configurations are tried before a history counts as not decided.
const PATIENCE: u64 = 1_000_000;

/// A state of a model, for the search.
struct Modelled<T: Linearizable, M> {
    state: M,
    results: Arc<Results<T>>,
}

impl<T: Linearizable, M: Clone> Clone for Modelled<T, M> {
    fn clone(&self) -> Modelled<T, M> {
        Modelled { state: self.state.clone(), results: Arc::clone(&self.results) }
    }
}

impl<T: Linearizable, M: PartialEq> PartialEq for Modelled<T, M> {
    fn eq(&self, other: &Modelled<T, M>) -> bool {
        self.state == other.state
    }
}

impl<T: Linearizable, M: Eq> Eq for Modelled<T, M> {}

impl<T: Linearizable, M: Hash> Hash for Modelled<T, M> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

/// Operations and results by their texts.
impl<T, M> Sequential for Modelled<T, M>
where
    T: Linearizable,
    M: Model<Op = T::Op, Ret = T::Ret>,
{
    type Op = Box<str>;
    type Ret = Box<str>;

    fn step(&self, op: &Box<str>, ret: Option<&Box<str>>) -> Vec<Modelled<T, M>> {
        let Some(ret) = ret else { return Vec::new() };
        let next = self.results.with(op, ret, |op, ret| self.state.step(op, ret));
        let with = |state| Modelled { state, results: Arc::clone(&self.results) };
        next.unwrap_or_default().into_iter().map(with).collect()
    }
}

/// Judges executions by a model.
pub(super) fn specified<T, M>(results: Arc<Results<T>>) -> Specified
where
    T: Linearizable,
    M: Model<Op = T::Op, Ret = T::Ret> + 'static,
{
    Specified::new(move |said| {
        let operations = history(said, &results);
        let initial = Modelled::<T, M> { state: M::new(), results: Arc::clone(&results) };
        let mut limit = |spent: Spent| spent.tried < PATIENCE;
        match history::check(&operations, &initial, &mut limit) {
            Verdict::Linearizable(_) => Found::Fits,
            Verdict::NotLinearizable(prefix) => {
                let next = prefix.map_or(0, |prefix| prefix.next);
                let name = operations.get(next).map(|operation| operation.op.clone());
                name.map_or(Found::Undecided, Found::Misfit)
            }
            Verdict::Undecided => Found::Undecided,
        }
    })
}

/// The operations of an execution whose results are compared.
fn history<T: Linearizable>(
    said: &AtomicBlocks<Site>,
    results: &Results<T>,
) -> Vec<Operation<Box<str>, Box<str>>> {
    let operation = |block: &selvedge_specs::atomic::AtomicBlock<Site>| {
        let call = said.observed.iter().find(|call| {
            let key = &call.key;
            (key.thread, &key.name, key.nth) == (block.id.thread, &block.id.name, block.id.nth)
        })?;
        let Some(Value::Text(text)) = &call.value.value else { return None };
        let returned = Some((text.clone(), i64::from(block.end)));
        let op = block.id.name.clone();
        (!results.is_weak(&op)).then(|| Operation { op, call: i64::from(block.begin), returned })
    };
    said.blocks.iter().filter_map(operation).collect()
}
