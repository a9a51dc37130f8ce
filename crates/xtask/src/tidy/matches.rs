//! Matches on `Op` that do not name every operation.
//!
//! Every match must say what it does with a new operation. The compiler asks for that only if no arm
//! takes all operations that are left, so such an arm is a problem: `_ =>` or a lone name, without a
//! guard.

use super::scan::Code;

/// The offsets of the arms that take every operation that is left.
pub(crate) fn wildcards(code: &Code) -> Vec<usize> {
    code.words("match").filter_map(|at| wildcard(code, at)).collect()
}

fn wildcard(code: &Code, keyword: usize) -> Option<usize> {
    let open = code.find_outside(keyword, b"{;").filter(|&at| code.byte(at) == b'{')?;
    let arms = arms(code, open);
    let about_op = arms.iter().any(|&(start, end)| names_an_op(code.slice(start, end)));
    let rest = arms.iter().find(|&&(start, end)| takes_all(code.slice(start, end)));
    rest.filter(|_| about_op).map(|&(start, _)| code.skip_space(start))
}

/// Where the patterns of a match begin and end, guards included.
fn arms(code: &Code, open: usize) -> Vec<(usize, usize)> {
    let mut arms = Vec::new();
    let mut start = open + 1;
    while let Some(arrow) = arrow(code, start) {
        // A comma outside brackets is never part of a pattern: it is left over from an expression with
        // commas in angle brackets or between bars.
        while let Some(comma) = code.find_outside(start, b",").filter(|&c| c < arrow) {
            start = comma + 1;
        }
        arms.push((start, arrow));
        let value = code.skip_space(arrow + 2);
        let end = if code.byte(value) == b'{' {
            code.closing(value)
        } else {
            code.find_outside(value, b",")
        };
        match end {
            Some(end) => start = end + 1,
            None => break,
        }
    }
    arms
}

fn arrow(code: &Code, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at = code.find_outside(at, b"=")?;
        if code.byte(at + 1) == b'>' {
            return Some(at);
        }
        at += 1;
    }
}

fn names_an_op(pattern: &str) -> bool {
    pattern.split('|').any(|p| {
        let p = p.trim().trim_start_matches(['&', '(']);
        p.starts_with("Op::") || p.starts_with("selvedge_model::Op::")
    })
}

fn takes_all(pattern: &str) -> bool {
    let pattern = pattern.trim();
    pattern.starts_with(|c: char| c == '_' || c.is_ascii_lowercase())
        && pattern.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let code = Code::new(text);
        wildcards(&code).into_iter().map(|at| code.line(at)).collect()
    }

    #[test]
    fn an_arm_that_takes_the_rest_is_found() {
        assert_eq!(
            lines("match event.op {\n Op::Read(a) | Op::Write(a) => f(a),\n _ => {}\n}"),
            [3]
        );
        assert_eq!(lines("match op {\n &Op::Fork(t) => {\n g(t)\n }\n other => h(other),\n}"), [5]);
        let commas = "match op {\n Op::End => x.fold(|a, b| a + b),\n Op::Begin => f::<A, B>(),\n _ => 1,\n}";
        assert_eq!(lines(commas), [4]);
    }

    #[test]
    fn a_match_within_an_arm_is_one_of_its_own() {
        let inner = "match op {\n Op::Fork(t) => match life(t) {\n Life::New => 1,\n _ => 2,\n },\n Op::End => 3,\n}";
        assert_eq!(lines(inner), []);
        let inner =
            "match life {\n Life::New => match op {\n Op::End => 1,\n _ => 2,\n },\n _ => 3,\n}";
        assert_eq!(lines(inner), [4]);
    }

    #[test]
    fn guards_other_types_and_pairs_are_no_problem() {
        assert_eq!(
            lines("match op {\n Op::End => 1,\n _ if inside => 2,\n Op::Begin => 3,\n}"),
            []
        );
        assert_eq!(lines("match op {\n AtomicOp::Load(_) => 1,\n _ => 2,\n}"), []);
        assert_eq!(lines("match text {\n \"end\" => Op::End,\n _ => Op::Begin,\n}"), []);
    }
}
