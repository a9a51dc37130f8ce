//! Sentences about serial executions that were tried.

use crate::serial::{Block, Serial, SerialOrder, SerialOutcome};
use crate::{Given, State};

use super::{given, ordinal};

/// Each order that was tried in a line, and how many more there were.
pub fn serial(of: &Serial) -> Vec<String> {
    let mut lines: Vec<String> = of.orders.iter().map(order).collect();
    let orders =
        |n: u64| if n == 1 { "1 more order".to_owned() } else { format!("{n} more orders") };
    if of.more_differ > 0 {
        lines.push(format!("{} observed something else", orders(of.more_differ)));
    }
    if of.more_unable > 0 {
        lines.push(format!("{} could not be executed", orders(of.more_unable)));
    }
    lines
}

/// One order, and what came of it.
pub fn order(of: &SerialOrder) -> String {
    let blocks: Vec<String> = of.blocks.iter().map(block).collect();
    let name = match blocks.is_empty() {
        true => "other blocks alone".to_owned(),
        false => format!("alone {}", blocks.join(", then ")),
    };
    format!("{name}: {}", outcome(&of.outcome))
}

/// A block by its thread, its name and its number.
fn block(of: &Block) -> String {
    match of.nth {
        0 => format!("{}: {}", of.thread, of.name),
        n => format!("{}: {} ({})", of.thread, of.name, ordinal(u64::from(n) + 1)),
    }
}

/// What came of an order.
pub fn outcome(of: &SerialOutcome) -> String {
    match of {
        SerialOutcome::Differs(states) => states.iter().map(differs).collect::<Vec<_>>().join("; "),
        SerialOutcome::Waits(of) => format!("{} has to wait for another thread", block(of)),
        SerialOutcome::Missed(of) => format!("{} is not reached", block(of)),
        SerialOutcome::Other { expected: Some(expected), found: Some(found) } => {
            format!("{} comes instead of {}", block(found), block(expected))
        }
        SerialOutcome::Other { expected: Some(expected), found: None } => {
            format!("{} is not executed", block(expected))
        }
        SerialOutcome::Other { found: Some(found), expected: None } => {
            format!("{} is executed as well", block(found))
        }
        SerialOutcome::Other { found: None, expected: None } => "other blocks".to_owned(),
        SerialOutcome::Failed => "the program fails".to_owned(),
        SerialOutcome::CutOff => "it did not end within its limits".to_owned(),
    }
}

fn differs(of: &State) -> String {
    let observed = |of: &Given| match of {
        Given::Nothing => "not observed".to_owned(),
        value => given(value),
    };
    let which = match of.nth {
        0 => format!("`{}`", of.name),
        n => format!("the {} `{}`", ordinal(u64::from(n) + 1), of.name),
    };
    format!("{which} is {}, not {}", observed(&of.second), observed(&of.first))
}
