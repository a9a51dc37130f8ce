//! DETERMIN against enumeration by the definitions of the paper, its examples and its propositions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_specs::determin::{
    Conjunct, NotInferred, Remark, Row, Set, Specification, Study, Table, Weakest, Why, infer,
};
use selvedge_specs::{Predicate, Value};

fn row(json: &str) -> Row {
    serde_json::from_str(json).unwrap()
}

fn table(rows: impl IntoIterator<Item = Row>) -> Table {
    let mut rows = rows.into_iter();
    let mut table = Table::new(rows.next().unwrap());
    rows.for_each(|row| table.push(row).unwrap());
    table
}

fn parsed(lines: &[&str]) -> Table {
    table(lines.iter().map(|line| row(line)))
}

fn words(conjuncts: impl IntoIterator<Item = Conjunct>) -> Vec<String> {
    conjuncts.into_iter().map(|c| format!("{} {}", c.name, c.predicate)).collect()
}

fn implication(specification: &Specification) -> String {
    let side = |s: &[selvedge_specs::determin::Supported]| {
        words(s.iter().map(|s| s.conjunct.clone())).join(", ")
    };
    format!("{} => {}", side(&specification.precondition), side(&specification.postcondition))
}

const BEST_TREE: [&str; 4] = [
    r#"{"block":"bestTree","pre":{"N":10,"dna":["ACGT","AC"]},"post":{"score":140,"tree":[1,2]}}"#,
    r#"{"block":"bestTree","pre":{"N":10,"dna":["ACGT","AC"]},"post":{"score":140,"tree":[2,3]}}"#,
    r#"{"block":"bestTree","pre":{"N":10,"dna":["GG","TT"]},"post":{"score":175,"tree":[4]}}"#,
    r#"{"block":"bestTree","pre":{"N":10,"dna":["GG","TT"]},"post":{"score":175,"tree":[5]}}"#,
];

#[test]
fn best_tree_depends_on_dna_alone() {
    for weakest in [Weakest::Occurring, Weakest::Any] {
        let inferred = infer(&parsed(&BEST_TREE), weakest).unwrap();
        // The weakest precondition compares arrays as loosely as the executions allow.
        let expected = match weakest {
            Weakest::Occurring => "dna equal => score equal",
            Weakest::Any => "dna set => score equal",
        };
        assert_eq!(implication(&inferred), expected);
        assert_eq!(inferred.postcondition[0].pairs, 2);
        assert_eq!(inferred.precondition[0].pairs, 4);
        assert!(inferred.remarks.contains(&Remark::NeverVaried { names: vec!["N".into()] }));
    }
    let inferred = infer(&parsed(&BEST_TREE), Weakest::Occurring).unwrap();
    let dropped: Vec<_> = inferred.dropped.iter().map(|d| (&*d.conjunct.name, d.why)).collect();
    assert_eq!(dropped, [("N", Why::AlwaysHolds), ("dna", Why::Implied), ("dna", Why::Implied)]);
}

#[test]
fn example_5_needs_its_fourth_execution() {
    let lines = [
        r#"{"block":"example","pre":{"x":0,"y":0},"post":{"x":1,"y":0}}"#,
        r#"{"block":"example","pre":{"x":0,"y":1},"post":{"x":1,"y":1}}"#,
        r#"{"block":"example","pre":{"x":1,"y":1},"post":{"x":2,"y":0}}"#,
        r#"{"block":"example","pre":{"x":0,"y":0},"post":{"x":1,"y":1}}"#,
    ];
    assert_eq!(infer(&parsed(&lines[..3]), Weakest::Occurring), Err(NotInferred::NoInputTwice));
    let inferred = infer(&parsed(&lines), Weakest::Occurring).unwrap();
    assert_eq!(implication(&inferred), "x equal => x equal");
}

#[test]
fn ten_integers_all_matter_unless_any_precondition_will_do() {
    let line = |value: i32| {
        let pre: Vec<String> = (0..10).map(|i| format!(r#""x{i}":{value}"#)).collect();
        format!(r#"{{"block":"sum","pre":{{{}}},"post":{{"sum":{}}}}}"#, pre.join(","), value * 10)
    };
    let table = table([0, 0, 1, 1].map(|value| row(&line(value))));
    let occurring = infer(&table, Weakest::Occurring).unwrap();
    assert_eq!(occurring.precondition.len(), 10);
    assert!(occurring.alternatives.is_empty());
    let any = infer(&table, Weakest::Any).unwrap();
    assert_eq!((any.precondition.len(), any.alternatives.len()), (1, 9));
    assert!(any.alternatives.iter().all(|a| a.len() == 1));
    let together = (0..10).map(|i| format!("x{i}").into()).collect();
    assert_eq!(any.remarks, [Remark::NeverApart { names: together }]);
}

#[test]
fn what_the_block_leaves_alone_is_not_promised() {
    let lines = [1, 1, 2].map(|n| {
        format!(
            r#"{{"block":"b","pre":{{"n":{n},"size":7}},"post":{{"n":{n},"size":7,"square":{}}}}}"#,
            n * n
        )
    });
    let inferred = infer(&table(lines.iter().map(|l| row(l))), Weakest::Occurring).unwrap();
    assert_eq!(implication(&inferred), "n equal => square equal");
    let unchanged: Vec<_> = inferred
        .dropped
        .iter()
        .filter(|d| d.why == Why::NeverChanged)
        .map(|d| &*d.conjunct.name)
        .collect();
    assert_eq!(unchanged, ["n", "size"]);
}

#[test]
fn sums_that_round_differently_are_near_each_other() {
    let lines = [(1, 0.3), (1, 0.300_000_000_000_000_04), (2, 0.7)].map(|(n, sum)| {
        format!(r#"{{"block":"b","pre":{{"n":{n}}},"post":{{"sum":{sum},"parts":[{sum},1]}}}}"#)
    });
    let inferred = infer(&table(lines.iter().map(|l| row(l))), Weakest::Occurring).unwrap();
    assert_eq!(implication(&inferred), "n equal => parts within:1e-10, sum within:1e-10");
}

#[test]
fn parts_of_a_value_are_implied_by_the_whole() {
    let lines = [1, 1, 2].map(|n| {
        format!(r#"{{"block":"b","pre":{{"n":{n}}},"post":{{"o":[{n}],"o.f":{n},"other":{n}}}}}"#)
    });
    let inferred = infer(&table(lines.iter().map(|l| row(l))), Weakest::Occurring).unwrap();
    assert_eq!(implication(&inferred), "n equal => o equal, other equal");
}

#[test]
fn names_must_be_those_of_the_other_executions() {
    let mut table = Table::new(row(r#"{"block":"b","pre":{"n":1},"post":{}}"#));
    let lacks = table.push(row(r#"{"block":"b","pre":{},"post":{}}"#)).unwrap_err();
    assert!(lacks.to_string().contains("no value for \"n\" before"), "{lacks}");
    let more = table.push(row(r#"{"block":"b","pre":{"n":1},"post":{"m":1}}"#)).unwrap_err();
    assert!(more.to_string().contains("a value for \"m\" after"), "{more}");
}

#[test]
fn json_has_the_documented_form() {
    let json =
        serde_json::to_value(infer(&parsed(&BEST_TREE), Weakest::Occurring).unwrap()).unwrap();
    assert_eq!(
        json["precondition"],
        serde_json::json!([{"name": "dna", "predicate": "equal", "pairs": 4}])
    );
    assert_eq!(
        json["dropped"][0],
        serde_json::json!({"condition": "precondition", "name": "N", "predicate": "equal", "why": "always-holds"})
    );
    assert_eq!((&json["executions"], &json["inputs"]), (&4.into(), &2.into()));
}

// ---- Enumeration ----

/// A value as the oracle has it.
#[derive(Clone, PartialEq, Debug)]
enum Raw {
    Whole(i32),
    /// In steps of 4e-11: neighbours up to two apart are near.
    Steps(i32),
    List(Vec<i32>),
}

impl Raw {
    fn value(&self) -> Value {
        match self {
            Raw::Whole(n) => Value::from(*n),
            Raw::Steps(n) => Value::from(0.5 + f64::from(*n) * 4e-11),
            Raw::List(items) => Value::from(items.clone()),
        }
    }

    fn same(&self, other: &Raw, predicate: &str) -> bool {
        match (self, other, predicate) {
            (Raw::List(a), Raw::List(b), "set") => {
                a.iter().all(|x| b.contains(x)) && b.iter().all(|x| a.contains(x))
            }
            (Raw::List(a), Raw::List(b), "multiset") => {
                let count = |list: &[i32], x: i32| list.iter().filter(|y| **y == x).count();
                a.len() == b.len() && a.iter().all(|x| count(a, *x) == count(b, *x))
            }
            (Raw::Steps(a), Raw::Steps(b), "within:1e-10") => (a - b).abs() <= 2,
            _ => self == other,
        }
    }
}

const PREDICATES: [&[&str]; 3] =
    [&["equal"], &["equal", "within:1e-10"], &["equal", "multiset", "set"]];

fn raw(kind: usize) -> BoxedStrategy<Raw> {
    match kind {
        0 => (0..3).prop_map(Raw::Whole).boxed(),
        1 => (0..5).prop_map(Raw::Steps).boxed(),
        _ => prop::collection::vec(0..2, 0..3).prop_map(Raw::List).boxed(),
    }
}

/// Executions: values of two locations before and two after, and the kinds of the locations.
type Executions = ([usize; 4], Vec<[Raw; 4]>);

/// The last two executions begin alike.
fn executions() -> impl Strategy<Value = Executions> {
    prop::array::uniform4(0..3_usize).prop_flat_map(|kinds| {
        let row = (raw(kinds[0]), raw(kinds[1]), raw(kinds[2]), raw(kinds[3]));
        let row = row.prop_map(|(a, b, c, d)| [a, b, c, d]);
        let rows = prop::collection::vec(row, 2..9).prop_map(|mut rows| {
            if let [.., before, last] = &mut rows[..] {
                last[..2].clone_from_slice(&before[..2]);
            }
            rows
        });
        (Just(kinds), rows)
    })
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn to_table(rows: &[[Raw; 4]]) -> Table {
    table(rows.iter().map(|row| {
        let side = |range: std::ops::Range<usize>| {
            range.map(|l| (NAMES[l].into(), row[l].value())).collect::<BTreeMap<_, _>>()
        };
        Row { block: "block".into(), pre: side(0..2), post: side(2..4) }
    }))
}

/// A condition as the oracle has it: locations and predicates.
type Condition = BTreeSet<(&'static str, &'static str)>;

/// Every pair of different executions: what holds for it before and after the block.
fn all_pairs((kinds, rows): &Executions) -> Vec<(Condition, Condition)> {
    let holds = |i: usize, j: usize, range: std::ops::Range<usize>| {
        let conjuncts = range.flat_map(|l| PREDICATES[kinds[l]].iter().map(move |p| (l, *p)));
        conjuncts
            .filter(|(l, p)| rows[i][*l].same(&rows[j][*l], p))
            .map(|(l, p)| (NAMES[l], p))
            .collect()
    };
    (0..rows.len())
        .flat_map(|j| (0..j).map(move |i| (i, j)))
        .map(|(i, j)| (holds(i, j, 0..2), holds(i, j, 2..4)))
        .collect()
}

fn everything(kinds: &[usize; 4], range: std::ops::Range<usize>) -> Condition {
    range.flat_map(|l| PREDICATES[kinds[l]].iter().map(move |p| (NAMES[l], *p))).collect()
}

fn valid(pre: &Condition, post: &Condition, pairs: &[(Condition, Condition)]) -> bool {
    pairs.iter().all(|(before, after)| !pre.is_subset(before) || post.is_subset(after))
}

fn minimal(sets: &[Condition]) -> BTreeSet<Condition> {
    let weaker = |set: &Condition| sets.iter().any(|s| s != set && s.is_subset(set));
    sets.iter().filter(|set| !weaker(set)).cloned().collect()
}

/// The set as the oracle has it. Fails if the study knows a conjunct that the oracle does not.
fn condition(set: &Set, conjuncts: &[&Conjunct]) -> Condition {
    set.iter()
        .map(|c| {
            let Conjunct { name, predicate } = conjuncts[c];
            let name = NAMES.iter().find(|n| **n == &**name).unwrap();
            let known = PREDICATES.iter().flat_map(|p| p.iter());
            let predicate = predicate.to_string();
            (*name, *known.into_iter().find(|p| **p == predicate).unwrap())
        })
        .collect()
}

struct Answers {
    post: Condition,
    all: Vec<Condition>,
    occurring: Vec<Condition>,
    cut_short: bool,
    known: (usize, usize),
}

fn answers(rows: &[[Raw; 4]]) -> Answers {
    let table = to_table(rows);
    let study = Study::new(&table);
    let post = study.strongest_postcondition();
    let (before, after) = (study.preconjuncts(), study.postconjuncts());
    let all = study.weakest_preconditions(&post);
    let occurring = study.weakest_occurring_preconditions(&post);
    let sets = |sets: &[Set]| sets.iter().map(|s| condition(s, &before)).collect();
    Answers {
        post: condition(&post, &after),
        all: sets(&all.preconditions),
        occurring: sets(&occurring.preconditions),
        cut_short: all.cut_short || occurring.cut_short,
        known: (before.len(), after.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn conditions_agree_with_enumeration(executions in executions()) {
        let (kinds, rows) = &executions;
        let pairs = all_pairs(&executions);
        let bottom = everything(kinds, 0..2);
        let alike: Vec<_> = pairs.iter().filter(|(before, _)| *before == bottom).collect();
        prop_assert!(!alike.is_empty());
        let ours = answers(rows);
        prop_assert!(!ours.cut_short);

        let post: Condition = everything(kinds, 2..4)
            .into_iter()
            .filter(|c| alike.iter().all(|(_, after)| after.contains(c)))
            .collect();
        prop_assert_eq!(&ours.post, &post);

        let conjuncts: Vec<_> = bottom.iter().copied().collect();
        let subsets: Vec<Condition> = (0..1_usize << conjuncts.len())
            .map(|bits| conjuncts.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, c)| *c).collect())
            .filter(|pre| valid(pre, &post, &pairs))
            .collect();
        prop_assert_eq!(ours.all.iter().cloned().collect::<BTreeSet<_>>(), minimal(&subsets));

        let occurs: Vec<Condition> =
            pairs.iter().map(|(before, _)| before.clone()).filter(|pre| valid(pre, &post, &pairs)).collect();
        prop_assert_eq!(ours.occurring.iter().cloned().collect::<BTreeSet<_>>(), minimal(&occurs));
    }

    /// Propositions 6, 7 and 8: some of the executions, and all of them.
    #[test]
    fn more_executions_refute_more(executions in executions(), some in 2..8_usize) {
        let (_, rows) = &executions;
        // The last ones begin alike, so that postconditions differ.
        let (fewer, more) = (answers(&rows[rows.len() - some.min(rows.len())..]), answers(rows));
        prop_assert!(more.post.is_subset(&fewer.post));
        if more.post == fewer.post && more.known == fewer.known {
            for pre in &fewer.all {
                prop_assert!(!more.all.iter().any(|m| m != pre && m.is_subset(pre)), "proposition 7");
            }
            for pre in &more.all {
                prop_assert!(fewer.all.iter().any(|f| f.is_subset(pre)), "proposition 8");
            }
        }
    }
}

#[test]
fn predicates_of_the_oracle_are_ours() {
    for predicate in PREDICATES.iter().flat_map(|p| p.iter()) {
        assert_eq!(predicate.parse::<Predicate>().unwrap().to_string(), *predicate);
    }
}
