"""`bench answers` on the smallest real set: the paper's baselines come out as the paper has them, and ours above."""

from pathlib import Path

import pytest

from stream_car.bench.lab import OURS, Lab
from stream_car.bench.sets import known

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the benchmark data are not at {DATA}")


def test_free_form_questions_are_answered_above_the_papers_two_stage() -> None:
    (collection,) = known(["cvepatchqa_freeform"])
    with Lab(DATA) as lab:
        report = lab.report(collection)
    shares = {line.system: line.scores.tca for line in report.lines}

    assert shares["BM25"].value == 0.0
    assert shares["two-stage"].low < 0.860 < shares["two-stage"].high
    assert shares[OURS].value >= 0.94
    assert shares["oracle"].value == 1.0
    assert len(report.failures) == round((1 - shares[OURS].value) * report.questions)
