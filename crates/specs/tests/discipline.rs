//! The language of disciplines: text and back, and what is said of wrong text.

use proptest::prelude::*;
use selvedge_specs::discipline::{DeviceKind, Discipline, Rule, Specification, Step, parse};

fn steps() -> impl Strategy<Value = Step> {
    let name = prop_oneof![
        3 => "[a-z.:<>\\[\\]+-]{1,6}",
        1 => any::<String>(),
        1 => Just("this.lock".to_owned()),
        1 => Just(String::new()),
    ];
    let kind = prop::sample::select(DeviceKind::WORDS.map(|(_, kind)| kind).to_vec());
    let simple = prop_oneof![
        Just(Step::ThreadLocal),
        Just(Step::ReadShared),
        Just(Step::Fork),
        Just(Step::Join),
        name.clone().prop_map(Step::GuardedBy),
        (kind, name).prop_map(|(kind, name)| Step::Via(kind, name)),
    ];
    simple
        .prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 1..4).prop_map(Step::Repeat))
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    prop::collection::vec(prop::collection::vec(steps(), 1..5), 1..4)
        .prop_map(|alternatives| Discipline { alternatives })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_printed_is_read_back(
        rules in prop::collection::btree_map(any::<String>(), disciplines(), 0..4)
    ) {
        let rules: Vec<Rule> = rules
            .into_iter()
            .map(|(variable, discipline)| Rule { variable, discipline })
            .collect();
        let specification = Specification { rules };
        prop_assert_eq!(parse(&specification.to_string()), Ok(specification));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z \n#;|()=+\"\\\\-]{0,60}") {
        if let Ok(specification) = parse(&text) {
            prop_assert_eq!(parse(&specification.to_string()), Ok(specification));
        }
    }
}

fn read(text: &str) -> String {
    match parse(text) {
        Ok(specification) => specification.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn blanks_comments_and_continued_lines() {
    let text = "\
# a comment
balance = thread-local ;fork;   # another
  guarded-by this.lock

\"a name\"=(read-shared;via barrier phase)+|vol flag
";
    assert_eq!(
        read(text),
        "balance = thread-local; fork; guarded-by this.lock\n\
         \"a name\" = (read-shared; via barrier phase)+ | via atomic flag\n"
    );
    assert_eq!(read(""), "");
}

#[test]
fn errors_say_where_what_was_found_and_what_may_stand_there() {
    let steps = "`thread-local`, `read-shared`, `guarded-by`, `fork`, `join`, `via`, `vol` or `(` may stand here";
    for (text, expected) in [
        ("x", "1:2: found the end of the line; `=` may stand here".to_owned()),
        ("x = ", format!("1:4: found the end of the line; {steps}")),
        ("# c\nx = lock", format!("2:5: found `lock`; {steps}")),
        ("x = guarded-by ;", "1:16: found `;`; the name of a lock may stand here".to_owned()),
        (
            "x = via queue q",
            "1:9: found `queue`; `lock`, `atomic`, `barrier` or `semaphore` may stand here"
                .to_owned(),
        ),
        (
            "x = fork join",
            "1:10: found `join`; `;`, `|` or the end of the line may stand here".to_owned(),
        ),
        ("x = (fork)", "1:10: found `)` without `+`; `;` or `)+` may stand here".to_owned()),
        (
            "x = fork\n = join",
            "2:2: found `=`; `;`, `|` or the end of the line may stand here".to_owned(),
        ),
        ("= fork", "1:1: found `=`; the name of a variable may stand here".to_owned()),
        (
            "\"x = fork",
            "1:1: found a name without closing quote; the name of a variable may stand here"
                .to_owned(),
        ),
        ("é = fork\nx = join\né = fork", "3:1: `é` has a discipline already, on line 1".to_owned()),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    let deep = format!("x = {}", "(".repeat(100_000));
    assert_eq!(read(&deep), "1:69: more than 64 repetitions inside each other");
}
