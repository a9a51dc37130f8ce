//! `#[selvedge::test]`.
//!
//! Written on the compiler's own token streams: the attribute only checks that it stands on a function
//! without arguments, so a parser would be a dependency for ten lines.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes a function a test that runs it under many schedules.
///
/// ```text
/// #[selvedge::test]
/// fn counter() { … }
///
/// #[selvedge::test(schedules = 5_000, strategy = "pct:3", seed = 7)]
/// fn queue() { … }
/// ```
///
/// `selvedge::future::block_on` runs an `async` function to its end (feature `async`). A function may
/// return a `Result`; an error fails the test.
///
/// Options are methods of `selvedge::Explore`, with their argument: `schedules = 100`, `strategy =
/// "random"`, `seed = 1`, `time = Duration`, `analyses = "races,deadlocks"`, and so on.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    match expand(options, item) {
        Ok(tokens) => tokens,
        Err(message) => {
            format!("::core::compile_error!({message:?});").parse().expect("a literal is a token")
        }
    }
}

fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream, String> {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return Err("#[selvedge::test] goes on a function".into());
    };
    let is_fn = |t: &TokenTree| matches!(t, TokenTree::Ident(i) if i.to_string() == "fn");
    if body.delimiter() != Delimiter::Brace || !tokens.iter().any(is_fn) {
        return Err("#[selvedge::test] goes on a function".into());
    }
    let is_async = |t: &TokenTree| matches!(t, TokenTree::Ident(i) if i.to_string() == "async");
    let asynchronous = tokens.iter().any(is_async);
    tokens.retain(|t| !is_async(t));
    let takes_nothing = tokens.iter().any(
        |t| matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Parenthesis && g.stream().is_empty()),
    );
    if !takes_nothing {
        return Err("a function under #[selvedge::test] takes no arguments".into());
    }
    let returned = take_return_type(&mut tokens);
    let calls = calls(options)?;
    // The body stays a group of its own, so that its spans are those of the user's source.
    let mut run = parsed("::selvedge::Explore::from_env()");
    run.extend(calls);
    let mut result = TokenStream::new();
    if asynchronous {
        let mut future = parsed("async move");
        future.extend([TokenTree::Group(body)]);
        result.extend(parsed("::selvedge::future::block_on"));
        result.extend([parenthesized(future)]);
    } else if let Some(returned) = &returned {
        let mut closure = parsed("move || ->");
        closure.extend(returned.clone());
        closure.extend([TokenTree::Group(body)]);
        result.extend([parenthesized(closure)]);
        result.extend(parsed("()"));
    } else {
        result.extend([TokenTree::Group(body)]);
    }
    let mut argument = parsed("move ||");
    if let Some(returned) = returned {
        argument.extend(parsed("<"));
        argument.extend(returned);
        argument.extend(parsed("as ::selvedge::outcome::Outcome>::settle"));
        argument.extend([parenthesized(result)]);
    } else {
        argument.extend(result);
    }
    run.extend(parsed(".check"));
    run.extend([parenthesized(argument)]);
    let mut out = parsed("#[::core::prelude::v1::test]");
    out.extend(tokens);
    out.extend([TokenTree::Group(Group::new(Delimiter::Brace, run))]);
    Ok(out)
}

fn parsed(source: &str) -> TokenStream {
    source.parse().expect("tokens")
}

fn parenthesized(tokens: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(Delimiter::Parenthesis, tokens))
}

/// Takes `-> Type` off the head of a function.
fn take_return_type(head: &mut Vec<TokenTree>) -> Option<TokenStream> {
    let punct = |t: &TokenTree, c| matches!(t, TokenTree::Punct(p) if p.as_char() == c);
    let arrow = head.windows(2).position(|two| punct(&two[0], '-') && punct(&two[1], '>'))?;
    Some(head.drain(arrow..).skip(2).collect())
}

/// `a = 1, b = 2` as `.a(1).b(2)`.
fn calls(options: TokenStream) -> Result<TokenStream, String> {
    let mut out = TokenStream::new();
    let mut tokens = options.into_iter().peekable();
    while let Some(name) = tokens.next() {
        let TokenTree::Ident(name) = name else {
            return Err(format!("expected the name of an option, found `{name}`"));
        };
        match tokens.next() {
            Some(TokenTree::Punct(p)) if p.as_char() == '=' => {}
            _ => return Err(format!("option `{name}` has the form `{name} = value`")),
        }
        let mut value = TokenStream::new();
        for token in tokens.by_ref() {
            if matches!(&token, TokenTree::Punct(p) if p.as_char() == ',') {
                break;
            }
            value.extend([token]);
        }
        if value.is_empty() {
            return Err(format!("option `{name}` has the form `{name} = value`"));
        }
        out.extend(parsed("."));
        out.extend([TokenTree::Ident(name)]);
        out.extend([parenthesized(value)]);
    }
    Ok(out)
}
