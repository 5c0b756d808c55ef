"""A policy that changed twice, as documents, and as the chunks that a retriever of somebody else finds."""

import stream_car
from stream_car import NewDocument

QUESTION = "when do passwords expire"
SUPERSEDED, CURRENT = "policy-2022", "policy-2024"
SCOPE = {"subject": "password policy", "relation": "expiry"}


def policy(year: int, value: str, *, subject: str = "password policy") -> NewDocument:
    """Return what was published in a year."""
    return NewDocument(
        id=f"policy-{year}",
        type="fact",
        time=f"{year}-01-01",
        scope={"subject": subject, "relation": "expiry"},
        attributes={"value": value},
        title=f"Passwords expire: {value}",
    )


def engine_with_policies() -> stream_car.Engine:
    """Return an engine in which the policy of 2024 is in force, beside two about other things."""
    engine = stream_car.open()
    others = [policy(2020, "30 days", subject="guest passwords"), policy(2021, "1 day", subject="printer passwords")]
    engine.publish([policy(2022, "90 days"), policy(2024, "never"), *others])
    return engine
