//! Java's properties files, as `java.util.Properties.load` reads them.
//!
//! ```text
//! # a comment            ! another one
//! key=value              key: value              key value
//! path = C:\\kafka       list = a,\              (a logical line goes on where an odd number of backslashes ends it,
//!        and caf\u00e9           b                and the blanks at the start of the next line do not count)
//! ```
//!
//! The last of several values of a key counts. Bytes are UTF-8; a file that is not is read as Latin-1, as Java does.
//!
//! Own code: the crate `java-properties` had no release since 2023 and brings a regex engine for these hundred lines.
//!
//! Kafka: `Utils.loadProps`.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// Reads the bytes of a properties file.
pub(crate) fn parse(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = decode(bytes);
    logical_lines(&text).iter().map(|line| entry(line)).collect()
}

fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Lines without comments and blank ones, continued lines joined, blanks before them removed.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        let line = line.trim_start_matches(is_blank);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let mut logical = open.take().unwrap_or_default();
        if goes_on(line) {
            logical.push_str(&line[..line.len() - 1]);
            open = Some(logical);
        } else {
            logical.push_str(line);
            lines.push(logical);
        }
    }
    lines.extend(open);
    lines
}

/// An odd number of backslashes at the end: the last one stands for the end of the line.
fn goes_on(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

fn entry(line: &str) -> (String, String) {
    let mut chars = line.chars().peekable();
    let key = take_key(&mut chars);
    skip_blanks(&mut chars);
    if chars.next_if(|c| matches!(c, '=' | ':')).is_some() {
        skip_blanks(&mut chars);
    }
    (key, take_value(&mut chars))
}

fn take_key(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut key = String::new();
    while let Some(c) = chars.next_if(|c| !is_blank(*c) && !matches!(c, '=' | ':')) {
        key.push(unescaped(c, chars));
    }
    key
}

fn take_value(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    while let Some(c) = chars.next() {
        value.push(unescaped(c, chars));
    }
    value
}

fn skip_blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| is_blank(*c)).is_some() {}
}

/// `c`, or what the escape that begins with it means.
fn unescaped(c: char, rest: &mut Peekable<Chars<'_>>) -> char {
    if c != '\\' {
        return c;
    }
    match rest.next() {
        Some('t') => '\t',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('f') => '\u{c}',
        Some('u') => unicode(rest),
        Some(other) => other,
        None => '\\',
    }
}

/// Four hexadecimal digits. Java refuses others; here they give the sign for a character that is not one.
fn unicode(rest: &mut Peekable<Chars<'_>>) -> char {
    let digits: String = (0..4).map_while(|_| rest.next_if(char::is_ascii_hexdigit)).collect();
    let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
    code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (String, String) {
        let mut all = parse(text.as_bytes());
        assert_eq!(all.len(), 1, "{text:?}");
        all.pop_first().expect("one entry")
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn a_key_ends_at_equals_colon_or_blank() {
        for text in ["a.b=c d", "a.b:c d", "a.b c d", "  a.b \t = c d", "a.b   c d"] {
            assert_eq!(one(text), pair("a.b", "c d"), "{text:?}");
        }
        assert_eq!(one("a==b"), pair("a", "=b"));
        assert_eq!(one("a"), pair("a", ""));
    }

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        assert_eq!(one("# c=1\r\n ! d=2\n\n   \na=b # not a comment"), pair("a", "b # not a comment"));
    }

    #[test]
    fn a_backslash_continues_a_line() {
        assert_eq!(one("a=b,\\\n   c,\\\n   d"), pair("a", "b,c,d"));
        assert_eq!(one("a=b,\\\r\n   c\r\n"), pair("a", "b,c"));
        assert_eq!(one("a=b\\\n#c"), pair("a", "b#c"));
        assert_eq!(one("a=b\\\\"), pair("a", "b\\"));
        assert_eq!(one("a=b\\"), pair("a", "b"));
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(one(r"a\ b\:c=\t\u00e9\\x\q"), pair("a b:c", "\té\\xq"));
        assert_eq!(one(r"a=\u12"), pair("a", "\u{fffd}"));
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        assert_eq!(one("a=1\na=2"), pair("a", "2"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_latin_1() {
        assert_eq!(parse(b"a=\xe9")["a"], "é");
    }
}
