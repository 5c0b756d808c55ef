//! The terms of a text, joined: what `ranking.analysis.terms` and `ranking.bm25.join_terms` do, for a text in ASCII.
//!
//! Python decides which term a word has. This remembers it, close together in memory: a text has a hundred words in a
//! kilobyte, and to wait for memory is most of what a word costs.

use hashbrown::{DefaultHashBuilder, HashTable};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::hash::BuildHasher;
use std::sync::Mutex;

const KNOWN_LENGTH_MAX: usize = 100; // longer words are not remembered

/// The letter or digit that a byte stands for, in lower case; 0 for what separates words.
const LETTERS: [u8; 128] = {
    let mut letters = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            letters[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    letters
};

/// Joins the terms of texts. `term_of` is the function of a word that returns its term, or an empty string.
#[pyclass(frozen)]
pub struct TermJoiner {
    term_of: Py<PyAny>,
    words_max: usize,
    known: Mutex<KnownTerms>, // never locked while Python runs, which might switch to another thread
}

#[pymethods]
impl TermJoiner {
    #[new]
    #[pyo3(signature = (term_of, *, words_max))]
    fn new(term_of: Py<PyAny>, words_max: usize) -> Self {
        TermJoiner { term_of, words_max, known: Mutex::default() }
    }

    /// Return the terms of a text, joined, and their number; `None` for a text that is not ASCII.
    fn join<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<Option<(Bound<'py, PyString>, usize)>> {
        let py = text.py();
        let text = match text.to_str() {
            Ok(text) if text.is_ascii() => text,
            _ => return Ok(None),
        };
        let letters: String = text.bytes().map(|byte| char::from(LETTERS[usize::from(byte)])).collect();
        let mut joined = String::with_capacity(text.len() + text.len() / 4 + 2);
        let mut count = 0;
        let lock = || self.known.lock().expect("no holder of this lock panics");
        let mut known = lock();
        for word in letters.split('\0').filter(|word| !word.is_empty()) {
            let before = joined.len();
            if let Some(term) = known.get(word) {
                joined.push_str(term);
            } else {
                drop(known);
                let term: String = self.term_of.bind(py).call1((word,))?.extract()?;
                let term = if term.is_empty() { term } else { format!(" {term} ") };
                joined.push_str(&term);
                known = lock();
                known.insert(word, &term, self.words_max);
            }
            count += usize::from(joined.len() > before);
        }
        drop(known);
        Ok(Some((PyString::new(py, &joined), count)))
    }
}

/// Words and their terms as they are joined; the term is empty if the word does not count.
#[derive(Default)]
struct KnownTerms {
    entries: HashTable<Entry>,
    texts: String, // of each entry the word and the term
    hasher: DefaultHashBuilder,
}

/// Where a word begins in `texts`, and the lengths of the word and of its term.
struct Entry {
    start: u32,
    word: u8,
    term: u8,
}

impl Entry {
    fn word<'a>(&self, texts: &'a str) -> &'a str {
        &texts[self.start as usize..][..self.word.into()]
    }
}

impl KnownTerms {
    fn get(&self, word: &str) -> Option<&str> {
        let hash = self.hasher.hash_one(word);
        let entry = self.entries.find(hash, |entry| entry.word(&self.texts) == word)?;
        Some(&self.texts[entry.start as usize + word.len()..][..entry.term.into()])
    }

    fn insert(&mut self, word: &str, term: &str, words_max: usize) {
        let Ok(length) = u8::try_from(term.len()) else { return };
        if word.len() > KNOWN_LENGTH_MAX || self.get(word).is_some() {
            return;
        }
        if self.entries.len() >= words_max {
            self.entries.clear();
            self.texts.clear();
        }
        let entry = Entry { start: self.texts.len() as u32, word: word.len() as u8, term: length };
        self.texts.extend([word, term]);
        let (hasher, texts) = (&self.hasher, &self.texts);
        self.entries.insert_unique(hasher.hash_one(word), entry, |entry| hasher.hash_one(entry.word(texts)));
    }
}
