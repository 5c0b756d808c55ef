"""Each alert fires in its fault and not otherwise, on recorded metrics."""

import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from deploy.local.promtool import missing_requirement, promtool
from tests.alerts.recording import INTERVAL_S, NAMES, RECORDED, RULES, length
from tests.support.servers import require

pytestmark = pytest.mark.usefixtures("has_promtool")

NOT_READY = {"StreamCarNotReady", "StreamCarShardStalled"}
FIRED: dict[str, set[str]] = {  # what must fire during each fault, and nothing else
    "quiet": set(),
    "redis_away": NOT_READY | {"StreamCarLag"},
    "kafka_away": NOT_READY | {"StreamCarKafkaUnreachable", "StreamCarIndexLag"},
    "frontier_away": {"StreamCarDown", "StreamCarPartitionWithoutWorker", "StreamCarIncompleteAnswers"},
    "workers_away": {"StreamCarDown", "StreamCarNoWorker"},
    "halted": NOT_READY | {"StreamCarShardHalted"},
    "lost_history": {"StreamCarNotReady", "StreamCarIncompleteAnswers", "StreamCarLostHistory"},
    "index_repaired": {"StreamCarIndexRepaired"},
    "frozen": {"StreamCarTakeOvers"},
    "rebuild": {"StreamCarRebuilding"},
}
LASTING = {  # what still fires when the recording ends
    name: FIRED[name] for name in ("halted", "lost_history", "index_repaired", "frozen")
}
MADE = {
    "StreamCarQuarantine",
    "StreamCarTokensStale",
    "StreamCarWebhookStuck",
    "StreamCarWebhookDeadLetters",
}  # alerts that are tested without a recording
FIRING = 'ALERTS{alertstate="firing"}'


@pytest.fixture(scope="module")
def has_promtool() -> None:
    require(missing_requirement())


def check(folder: Path, series: dict[str, str], expected: dict[str, tuple[float, set[str]]]) -> None:
    """Require that expressions, at a time in seconds, give these names of alerts."""
    file = folder / "test.json"  # YAML may be written as JSON
    test = {
        "interval": f"{INTERVAL_S}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"group by (alertname) ({expression})",
                "eval_time": f"{at}s",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)],
            }
            for expression, (at, names) in expected.items()
        ],
    }
    content = {"rule_files": [str(RULES)], "evaluation_interval": f"{INTERVAL_S}s", "tests": [test]}
    file.write_text(json.dumps(content), encoding="utf-8")
    run = subprocess.run([promtool(), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("scenario", FIRED)
def test_alerts_fire_in_their_fault_and_not_otherwise(scenario: str, tmp_path: Path) -> None:
    series = msgspec.json.decode((RECORDED / f"{scenario}.json").read_bytes(), type=dict[str, str])
    end = (max(map(length, series.values())) - 1) * INTERVAL_S

    ever = f"count_over_time({FIRING}[1h])"
    check(tmp_path, series, {ever: (end, FIRED[scenario]), FIRING: (end, LASTING.get(scenario, set()))})


def test_what_no_recording_has_fires_an_alert_once_it_is_so(tmp_path: Path) -> None:
    series = {
        'stream_car_partitions{hop="intake"}': "1x10",
        'stream_car_shard_stalled_seconds{hop="intake",partition="0"}': "0x10",
        'stream_car_shard_quarantined_records{hop="intake",partition="0"}': "0x5 1x4",
        "stream_car_tokens_stale": "0x5 1x4",
        'stream_car_webhook_age_seconds{webhook="a"}': "0x5 4000x4",
        'stream_car_webhook_dead_letters{webhook="a"}': "0x5 1x4",
    }
    check(tmp_path, series, {FIRING: (8, set())})
    check(tmp_path, series, {FIRING: (20, MADE)})


def test_an_index_that_was_repaired_before_the_first_scrape_fires_for_ten_minutes(tmp_path: Path) -> None:
    series = {
        'stream_car_partitions{hop="intake"}': "1x400",
        'stream_car_shard_stalled_seconds{hop="intake",partition="0"}': "0x400",
        "stream_car_index_repaired_total": "_x5 3x395",
    }
    check(tmp_path, series, {FIRING: (8, set())})
    check(tmp_path, series, {FIRING: (20, {"StreamCarIndexRepaired"})})
    check(tmp_path, series, {FIRING: (700, set())})


def test_every_alert_is_fired_by_a_test() -> None:
    alerts = {line.partition("alert:")[2].strip() for line in RULES.read_text().splitlines() if "- alert:" in line}

    assert alerts == MADE.union(*FIRED.values())


def test_the_rules_are_valid_and_name_only_metrics_that_exist() -> None:
    reference = (RULES.parents[1] / "docs" / "reference" / "metrics.md").read_text()

    assert subprocess.run([promtool(), "check", "rules", str(RULES)], check=False, capture_output=True).returncode == 0
    assert {name for name in NAMES if name != "up" and f"`{name}" not in reference} == set()
