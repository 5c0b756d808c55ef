"""Strict publications: what is wrong with documents that would be accepted, but would probably do nothing.

Promise: pure, and the same verdict in the library, a client and a service: it depends on the documents and the rules
alone. What only the state can tell, such as a conflict with a stored revision, is not judged here.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.errors import DocumentsRejected, InvalidDocument
from stream_car.processing.receipts import likely_typos, unknown_keys
from stream_car.suggest import did_you_mean, join_names

PROBLEMS_MAX = 100  # documents whose problems an error lists


def require_strict(values: Iterable[bytes], ruleset: Ruleset) -> None:
    """Raise `DocumentsRejected` unless each document is valid, joins a scope and has no unknown key."""
    problems = list(islice(_problems(values, ruleset), PROBLEMS_MAX + 1))
    if problems:
        number = f"{len(problems)}" if len(problems) <= PROBLEMS_MAX else f"more than {PROBLEMS_MAX}"
        subject = "document is" if len(problems) == 1 else "documents are"
        head = f"Nothing was published, because {number} {subject} not as `strict` requires."
        raise DocumentsRejected(head, tuple(problems[:PROBLEMS_MAX]), code="strict")


def strict_problem(document: Document, ruleset: Ruleset) -> str:
    """Return what is wrong with a document that decodes, as one or more sentences, or an empty string."""
    if not ruleset.knows(document.type):
        hint = did_you_mean(document.type, ruleset.pack_of)
        return f"No loaded rule pack declares the type {document.type!r}.{hint}"
    sentences: list[str] = []
    is_in_scope = bool(ruleset.scopes(document) or document.supersedes or document.superseded_by or document.amends)
    missing = () if is_in_scope else ruleset.missing_keys(document)
    if not is_in_scope:
        lacks = f" It lacks {join_names(missing, 'or')}." if missing else ""
        sentences.append(f"It joins no scope, so no rule applies to it.{lacks}")
    for unknown in unknown_keys(document, ruleset):
        hint = f" Did you mean {unknown.meant!r}?" if unknown.meant else ""
        sentences.append(f"No rule uses the scope key {unknown.key!r}.{hint}")
    typos = likely_typos(document, ruleset, missing)
    sentences += [f"It has the attribute {typo.attribute!r}. Did you mean {typo.field!r}?" for typo in typos]
    return " ".join(sentences)


def _problems(values: Iterable[bytes], ruleset: Ruleset) -> Iterator[str]:
    for number, value in enumerate(values, 1):
        try:
            statement = decode(value)
            problem = strict_problem(statement, ruleset) if isinstance(statement, Document) else ""
            name = repr(statement.id)
        except InvalidDocument as error:
            problem, name = error.reason, repr(error.document_id) if error.document_id is not None else str(number)
        if problem:
            yield f"Document {name}: {problem}"
