//! Ordinary documents: what `codec.decode` and `codec.content_digest` do, in one pass over the bytes.
//!
//! Ordinary: no field but those of `Fields`, each at most once; one scope with one value for each key; printable ASCII
//! except in `text`; no escapes but those that the encoder writes; a time in UTC. For everything else, right or wrong,
//! there is no answer, and Python judges it.

use crate::json::{unescape, Scanner};
use crate::times::parse_time;
use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

const RESERVED: [&str; 2] = ["document", "amended"];

static INTERN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A document as it stands in the bytes; `text` with its escapes. `None` is a field that is absent.
#[derive(Default)]
struct Fields<'a> {
    id: Option<&'a str>,
    r#type: Option<&'a str>,
    time: Option<i64>,
    order: Option<i64>,
    revision: Option<i64>,
    scope: Option<Vec<(&'a str, &'a str)>>,
    title: Option<&'a str>,
    text: Option<&'a str>,
    source: Option<&'a str>,
    url: Option<&'a str>,
}

/// Decodes ordinary documents to values of the class `document`. The limits are in bytes.
#[pyclass(frozen)]
pub struct DocumentDecoder {
    document: Py<PyType>,
    document_max: usize,
    id_max: usize,
    line_max: usize,
    scope_value_max: usize,
    text_max: usize,
}

#[pymethods]
impl DocumentDecoder {
    #[new]
    #[pyo3(signature = (document, *, document_max, id_max, line_max, scope_value_max, text_max))]
    fn new(
        document: Py<PyType>,
        document_max: usize,
        id_max: usize,
        line_max: usize,
        scope_value_max: usize,
        text_max: usize,
    ) -> Self {
        DocumentDecoder { document, document_max, id_max, line_max, scope_value_max, text_max }
    }

    /// Return an ordinary document and its digest; `None` if these bytes are anything else.
    fn decode<'py>(&self, py: Python<'py>, value: &[u8]) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyBytes>)>> {
        let fields = if value.len() <= self.document_max { read(value) } else { None };
        match fields.filter(|fields| self.accepts(fields)) {
            Some(fields) => Ok(Some((fields.document(self.document.bind(py))?, PyBytes::new(py, &fields.digest())))),
            None => Ok(None),
        }
    }
}

impl DocumentDecoder {
    fn accepts(&self, fields: &Fields) -> bool {
        let is_name = |name: Option<&str>| name.is_some_and(|name| (1..=self.id_max).contains(&name.len()));
        let is_line = |line: Option<&str>| line.is_none_or(|line| line.len() <= self.line_max);
        is_name(fields.id)
            && is_name(fields.r#type)
            && fields.time.is_some()
            && fields.revision != Some(0)
            && [fields.title, fields.source, fields.url].into_iter().all(is_line)
            && fields.text.is_none_or(|text| text.len() <= self.text_max)
            && fields.scope.iter().flatten().all(|(key, value)| {
                key.len() <= self.id_max && !RESERVED.contains(key) && value.len() <= self.scope_value_max
            })
    }
}

/// Set a field. There is no answer if it was set before, as the same key must not come twice.
fn set<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

fn read(value: &[u8]) -> Option<Fields<'_>> {
    let mut json = Scanner::new(value);
    let mut fields = Fields::default();
    json.object(|json, key| match key {
        "id" => set(&mut fields.id, json.line()?),
        "type" => set(&mut fields.r#type, json.line()?),
        "time" => set(&mut fields.time, parse_time(json.line()?)?),
        "order" => set(&mut fields.order, json.integer()?),
        "revision" => set(&mut fields.revision, json.integer()?),
        "scope" => set(&mut fields.scope, scope(json)?),
        "title" => set(&mut fields.title, json.line()?),
        "text" => set(&mut fields.text, json.text()?),
        "source" => set(&mut fields.source, json.line()?),
        "url" => set(&mut fields.url, json.line()?),
        _ => None,
    })?;
    json.end()?;
    Some(fields)
}

/// Read a scope, which may stand in a list, and each of its values too.
fn scope<'a>(json: &mut Scanner<'a>) -> Option<Vec<(&'a str, &'a str)>> {
    let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(4);
    json.maybe_in_list(|json| {
        json.object(|json, key| {
            let value = json.maybe_in_list(Scanner::line)?;
            let is_new = pairs.len() < 32 && pairs.iter().all(|(other, _)| *other != key);
            let is_identifier = !key.is_empty()
                && !key.as_bytes()[0].is_ascii_digit()
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let is_normal = !value.is_empty() && value == value.trim_matches(' ');
            pairs.push((key, value));
            (is_new && is_identifier && is_normal).then_some(())
        })
    })?;
    (!pairs.is_empty()).then_some(pairs)
}

impl Fields<'_> {
    /// Return the digest of the canonical JSON: keys in order, no field at its default, and no revision.
    fn digest(&self) -> [u8; 16] {
        let mut json = String::with_capacity(256 + self.text.unwrap_or_default().len());
        json.push('{');
        push(&mut json, "id", self.id);
        if let Some(order @ 1..) = self.order {
            json += &format!("\"order\":{order},");
        }
        if let Some(scope) = &self.scope {
            let mut pairs = scope.clone();
            pairs.sort_unstable();
            let members: Vec<_> = pairs.iter().map(|(key, value)| format!("\"{key}\":[\"{value}\"]")).collect();
            json += &format!("\"scope\":[{{{}}}],", members.join(","));
        }
        push(&mut json, "source", self.source);
        push(&mut json, "text", self.text);
        json += &format!("\"time\":{},", self.time.unwrap_or_default());
        push(&mut json, "title", self.title);
        push(&mut json, "type", self.r#type);
        push(&mut json, "url", self.url);
        json.pop();
        json.push('}');
        Blake2b::<U16>::digest(json).into()
    }

    fn document<'py>(&self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let values = PyDict::new(py);
        values.set_item("id", self.id)?;
        values.set_item("type", INTERN.import(py, "sys", "intern")?.call1((self.r#type,))?)?;
        values.set_item("time", self.time)?;
        for (name, number) in [("order", self.order), ("revision", self.revision)] {
            if number.is_some() {
                values.set_item(name, number)?;
            }
        }
        if let Some(scope) = &self.scope {
            let map = PyDict::new(py);
            for (key, value) in scope {
                map.set_item(key, PyTuple::new(py, [value])?)?;
            }
            values.set_item("scope", (map,))?;
        }
        for (name, line) in [("title", self.title), ("source", self.source), ("url", self.url)] {
            if line.is_some() {
                values.set_item(name, line)?;
            }
        }
        if let Some(text) = self.text {
            values.set_item("text", unescape(text))?;
        }
        class.call((), Some(&values))
    }
}

/// Add a string to an object, unless it is empty, with a comma after it.
fn push(json: &mut String, key: &str, content: Option<&str>) {
    if let Some(content) = content.filter(|content| !content.is_empty()) {
        json.extend(["\"", key, "\":\"", content, "\","]);
    }
}
