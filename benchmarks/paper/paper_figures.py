"""The figures of the paper's tables 2 to 6 and 8 to 13.

By set and system, each figure is that of the set's own scorer over all questions. If the paper names one dense model,
it is MiniLM.
"""

from collections.abc import Mapping

TCA: Mapping[str, Mapping[str, float]] = {
    "ghsa": {"BM25": 0.138, "dense": 0.270, "cross-encoder": 0.233, "HyDE": 0.151, "two-stage": 0.975},
    "fda": {"BM25": 0.004, "dense": 0.064, "two-stage": 0.774},
    "finsuperqa": {
        "BM25": 0.305,
        "TF-IDF": 0.254,
        "dense": 0.214,
        "dense re-rank, gold edges": 0.499,
        "two-stage": 1.0,
        "two-stage + RSSG": 1.0,
        "oracle": 1.0,
    },
    "finsuperqa_contaminated": {"two-stage": 0.911, "two-stage + RSSG": 0.942},
    "cvepatchqa_freeform": {"BM25": 0.0, "two-stage": 0.860},
    "legalprecedentqa_freeform": {"BM25": 0.0, "two-stage": 0.312},
    "scotus": {"BM25": 0.893, "dense": 0.172, "two-stage": 0.836, "two-stage, dense anchors": 0.926},
}

HOPS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "finsuperqa": {
        "BM25": {"T0": 1.0, "T1": 0.0, "T2": 0.216, "T3": 0.004},
        "TF-IDF": {"T0": 1.0, "T1": 0.0, "T2": 0.012, "T3": 0.004},
        "dense": {"T0": 0.820, "T1": 0.0, "T2": 0.036, "T3": 0.0},
        "dense re-rank, gold edges": {"T0": 1.0, "T1": 0.0, "T2": 0.980, "T3": 0.016},
        "two-stage": {"T0": 1.0, "T1": 1.0, "T2": 1.0, "T3": 1.0},
        "two-stage + RSSG": {"T0": 1.0, "T1": 1.0, "T2": 1.0, "T3": 1.0},
    },
    "finsuperqa_contaminated": {"two-stage": {"T3": 0.652}, "two-stage + RSSG": {"T3": 0.776}},
    "cvepatchqa": {
        "BM25": {"T1": 0.0},
        "TF-IDF": {"T1": 0.0},
        "two-stage": {"T1": 1.0},
        "two-stage + RSSG": {"T1": 1.0},
    },
    "legalprecedentqa": {
        "BM25": {"T1": 0.0},
        "TF-IDF": {"T1": 0.0},
        "two-stage": {"T1": 1.0},
        "two-stage + RSSG": {"T1": 1.0},
    },
}

STRUCTURED: Mapping[str, tuple[float, float, float, float, float]] = {  # Table 5: TCA@5, @10, @20, mean and median rank
    "BM25": (0.641, 0.730, 0.761, 144.4, 3),
    "dense": (0.132, 0.157, 0.214, 1234, 1847),
    "HyDE": (0.151, 0.170, 0.170, 1283, 1577),
    "regex probe": (1.0, 1.0, 1.0, 2.0, 2),
}

FREE_FORM: Mapping[str, tuple[float | None, float, float | None, float | None]] = {  # Table 6: Disc@5, TCA@5, @10, mean
    "BM25": (0.975, 0.138, 0.214, 609),
    "dense": (0.937, 0.270, 0.365, 764),
    "HyDE": (None, 0.151, None, None),
    "two-stage": (0.975, 0.975, None, 43.2),
}

GAP: Mapping[str, tuple[float, float]] = {  # Table 4, on 120 advisories: similarity to the disclosure, to the patch
    "Jaccard": (0.085, 0.060),
    "Jaccard, no stop words": (0.037, 0.014),
    "BM25": (9.73, 6.45),
}

MODEL_ANSWERS: Mapping[
    str, tuple[float, float, float, float]
] = {  # Table 12: patch recall, patched, not patched, uncertain
    "dense": (0.283, 0.610, 0.390, 0.0),
    "two-stage": (0.975, 0.824, 0.164, 0.01),
}

HINTS: Mapping[str, tuple[float, float]] = {  # Table 8, with a hint: Stage-1 recall, two-stage
    "cvepatchqa_freeform": (1.0, 0.900),
    "legalprecedentqa_freeform": (1.0, 1.0),
}


def family(system: str) -> str:
    """Return the paper's name for a system. Every encoder belongs to its dense row."""
    return "dense" if system.startswith("dense (") else system


def tca(name: str, system: str) -> float | None:
    """Return the paper's figure for a system on a set, or `None`."""
    return TCA.get(name, {}).get(family(system))


def best_tca(name: str) -> float | None:
    """Return the paper's best figure on a set, without the oracle, or `None`."""
    return max((value for system, value in TCA.get(name, {}).items() if system != "oracle"), default=None)


def hop(name: str, system: str, kind: str) -> float | None:
    """Return the paper's figure for one hop, or `None`."""
    return HOPS.get(name, {}).get(family(system), {}).get(kind)
