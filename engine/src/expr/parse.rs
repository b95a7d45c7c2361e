//! From text to sqlparser's tree, within limits.

use sqlparser::ast as sql;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::error::{ExprError, ExprErrorKind, Position};

/// The most tokens one text may have.
///
/// sqlparser builds a chain such as `a + b + …` as a tree as deep as the chain
/// is long, without counting it, and drops that tree recursively. This bound
/// keeps the recursion within the smallest stack in use (2 MiB).
pub const TOKENS_MAX: usize = 4096;

/// The deepest nesting one expression may have.
///
/// Parsing, binding and evaluating recurse once a level; a level of sqlparser
/// takes some 10 KiB of stack in a debug build. Chains of AND and of OR count
/// as one level however long they are.
pub const NESTING_DEPTH_MAX: usize = 64;

/// Parses one expression and nothing behind it.
pub(super) fn parse_expression(text: &str) -> Result<sql::Expr, ExprError> {
    parse_whole(text, |parser| parser.parse_expr())
}

/// Parses `expr [AS name], …`, as between SELECT and FROM.
pub(super) fn parse_items(text: &str) -> Result<Vec<sql::SelectItem>, ExprError> {
    parse_whole(text, |parser| {
        parser.parse_comma_separated(Parser::parse_select_item)
    })
}

/// sqlparser's place as ours, if it knows one.
pub(super) fn position(location: Location) -> Option<Position> {
    (location.line > 0).then_some(Position {
        line: location.line,
        column: location.column,
    })
}

fn parse_whole<T>(
    text: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, ExprError> {
    let dialect = GenericDialect {};
    let tokens = tokens(&dialect, text)?;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_DEPTH_MAX)
        .with_tokens_with_locations(tokens);
    let parsed = parse(&mut parser).map_err(|error| refused(&error, &parser))?;
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        let at = position(rest.span.start).unwrap_or(Position::START);
        let message = format!(
            "unexpected `{}` after the end of the expression; remove it",
            rest.token
        );
        return Err(ExprError::new(ExprErrorKind::Syntax, at, message));
    }
    Ok(parsed)
}

fn tokens(dialect: &GenericDialect, text: &str) -> Result<Vec<TokenWithSpan>, ExprError> {
    let tokens = Tokenizer::new(dialect, text)
        .tokenize_with_location()
        .map_err(|error| {
            let at = position(error.location).unwrap_or(Position::START);
            ExprError::new(
                ExprErrorKind::Syntax,
                at,
                format!("{}; correct the text", error.message),
            )
        })?;
    if tokens
        .iter()
        .all(|token| matches!(token.token, Token::Whitespace(_) | Token::EOF))
    {
        let message = "the expression is empty; write one, such as `price * 2`";
        return Err(ExprError::new(
            ExprErrorKind::Syntax,
            Position::START,
            message,
        ));
    }
    let counted = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)));
    if let Some(token) = counted.clone().nth(TOKENS_MAX) {
        let message = format!(
            "the text has {} tokens and the limit is {TOKENS_MAX}; split it into several steps",
            counted.count()
        );
        let at = position(token.span.start).unwrap_or(Position::START);
        return Err(ExprError::new(ExprErrorKind::Limit, at, message));
    }
    Ok(tokens)
}

fn refused(error: &ParserError, parser: &Parser<'_>) -> ExprError {
    let here = position(parser.peek_token_ref().span.start).unwrap_or(Position::START);
    match error {
        ParserError::RecursionLimitExceeded => too_deep(here),
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            // sqlparser gives the place only as the end of its message.
            let (what, at) = match message.rsplit_once(" at Line: ") {
                Some((what, place)) => (what, parse_place(place).unwrap_or(here)),
                None => (message.as_str(), here),
            };
            let message = format!("{}; correct the text", lower_first(what));
            ExprError::new(ExprErrorKind::Syntax, at, message)
        }
    }
}

pub(super) fn too_deep(at: Position) -> ExprError {
    let message = format!(
        "the expression is nested deeper than {NESTING_DEPTH_MAX} levels; \
         split it into several steps"
    );
    ExprError::new(ExprErrorKind::Limit, at, message)
}

fn parse_place(place: &str) -> Option<Position> {
    let (line, column) = place.split_once(", Column: ")?;
    Some(Position {
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
