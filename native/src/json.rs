//! A scanner of JSON for the usual spelling. It has no answer for anything else, so it need not tell what is wrong.

use memchr::memchr2;
use std::borrow::Cow;

const DIGITS_MAX: usize = 15; // of an integer, so that all of them are exact everywhere
const ESCAPES: &[u8] = b"\"\\bfnrt"; // those that the encoder writes

pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0 }
    }

    /// Return the next byte that is not white space, without taking it.
    fn peek(&mut self) -> Option<u8> {
        while let b' ' | b'\t' | b'\r' | b'\n' = self.bytes.get(self.at)? {
            self.at += 1;
        }
        Some(self.bytes[self.at])
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Require the end of the bytes.
    pub fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Read an object that is not empty. `member` gets each key, and reads the value.
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        loop {
            let key = self.line()?;
            self.take(b':')?;
            member(self, key)?;
            if self.peek()? == b'}' {
                return self.take(b'}');
            }
            self.take(b',')?;
        }
    }

    /// Read a value that may stand in a list, as its only member.
    pub fn maybe_in_list<T>(&mut self, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.peek()? != b'[' {
            return value(self);
        }
        self.take(b'[')?;
        let member = value(self)?;
        self.take(b']')?;
        Some(member)
    }

    /// Read an integer that is not negative.
    pub fn integer(&mut self) -> Option<i64> {
        self.peek()?;
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > DIGITS_MAX || (length > 1 && rest[0] == b'0') {
            return None;
        }
        self.at += length;
        std::str::from_utf8(&rest[..length]).ok()?.parse().ok()
    }

    /// Read a string of printable ASCII without escapes.
    pub fn line(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'"')?;
        let line = &rest[..length];
        self.at += length + 1;
        let is_plain = line.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'\\');
        is_plain.then(|| std::str::from_utf8(line).ok())?
    }

    /// Read a string of any characters, as it is written between its quotation marks.
    pub fn text(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let rest = &self.bytes[self.at..];
        let mut length = 0;
        loop {
            length += memchr2(b'"', b'\\', &rest[length..])?;
            if rest[length] == b'"' {
                break;
            }
            if !ESCAPES.contains(rest.get(length + 1)?) {
                return None;
            }
            length += 2;
        }
        self.at += length + 1;
        let text = &rest[..length];
        if text.iter().any(|byte| *byte < b' ') {
            return None;
        }
        std::str::from_utf8(text).ok()
    }
}

/// Replace the escapes of a string that `Scanner::text` has read.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(escaped) => escaped,
                None => break,
            },
            _ => character,
        });
    }
    plain.into()
}
