//! Operations of a scenario, as text: `i1=2 r1 30p7` is insert key 1 with value 2, remove key 1, push 7 thirty times.

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    Insert(u32, u32),
    Get(u32),
    Remove(u32),
    Push(u32),
    Pop,
    Len,
    /// All that is in it, by an iterator.
    Content,
    IsFull,
    PopFirst,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Insert(..) => "insert",
            Op::Get(_) => "get",
            Op::Remove(_) => "remove",
            Op::Push(_) => "push",
            Op::Pop => "pop",
            Op::Len => "len",
            Op::Content => "content",
            Op::IsFull => "is_full",
            Op::PopFirst => "pop_front",
        }
    }

    fn parse(text: &str) -> Op {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"));
        let (letter, rest) = text.split_at(1);
        match letter {
            "i" => {
                let (key, value) = rest.split_once('=').expect("an insertion is iKEY=VALUE");
                Op::Insert(number(key), number(value))
            }
            "g" => Op::Get(number(rest)),
            "r" => Op::Remove(number(rest)),
            "p" => Op::Push(number(rest)),
            "o" => Op::Pop,
            "l" => Op::Len,
            "c" => Op::Content,
            "f" => Op::IsFull,
            "h" => Op::PopFirst,
            _ => panic!("`{text}` is not an operation"),
        }
    }
}

/// The operations of one argument.
pub fn ops(text: &str) -> Vec<Op> {
    let repeated = |word: &str| {
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        let count = word[..digits].parse().unwrap_or(1);
        std::iter::repeat_n(Op::parse(&word[digits..]), count).collect::<Vec<_>>()
    };
    text.split_whitespace().flat_map(repeated).collect()
}
