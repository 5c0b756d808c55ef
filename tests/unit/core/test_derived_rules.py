"""An amendment that follows ends with what it amends, and a rule of the pack about the two takes precedence."""

from stream_car.core.derived_rules import derived_rules
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset

ISSUED = Rule(name="issued", superseding_type="policy", superseded_type="policy", scope_keys=("policy",))
REVOKED = Rule(name="revoked", superseding_type="revocation", superseded_type="policy", scope_keys=("policy",))
AMENDED = Rule(
    name="amended",
    superseding_type="amendment",
    superseded_type="policy",
    scope_keys=("policy", "site"),
    effect="amend",
    follows=True,
)


def names(*rules: Rule) -> list[str]:
    return [rule.name for rule in derived_rules(rules)]


def ruleset(*rules: Rule) -> Ruleset:
    return Ruleset([RulePack(name="p", types=("policy", "amendment", "revocation", "note"), rules=rules)])


def test_whatever_voids_the_base_in_a_scope_that_they_share_voids_the_amendment() -> None:
    assert derived_rules([ISSUED, REVOKED, AMENDED]) == (
        Rule(
            name="issued-ends-amendment",
            superseding_type="policy",
            superseded_type="amendment",
            scope_keys=("policy",),
            outcome="base_ended",
        ),
        Rule(
            name="revoked-ends-amendment",
            superseding_type="revocation",
            superseded_type="amendment",
            scope_keys=("policy",),
            outcome="base_ended",
        ),
    )


def test_an_amendment_of_an_amendment_follows_too() -> None:
    note = Rule(
        name="noted",
        superseding_type="note",
        superseded_type="amendment",
        scope_keys=("policy",),
        effect="amend",
        follows=True,
    )

    assert names(ISSUED, AMENDED, note) == ["issued-ends-amendment", "issued-ends-amendment-ends-note"]


def test_a_rule_that_the_pack_states_takes_precedence_with_its_own_outcome() -> None:
    own = Rule(
        name="own",
        superseding_type="revocation",
        superseded_type="amendment",
        scope_keys=("policy",),
        outcome="revoked",
    )

    rules = ruleset(ISSUED, REVOKED, AMENDED, own)

    assert [rule.name for rule in rules.derived] == ["issued-ends-amendment"]
    assert rules.outcomes["own"] == "revoked"


def test_nothing_follows_where_scopes_or_values_decide_otherwise() -> None:
    by_record = Rule(name="edition", superseding_type="policy", superseded_type="policy", scope_keys=("record",))
    by_value = Rule(
        name="other", superseding_type="policy", superseded_type="policy", scope_keys=("policy",), differ_on=("v",)
    )

    assert names(by_record, by_value, AMENDED) == []


def test_follows_changes_the_digest_only_by_the_rules_that_it_implies() -> None:
    stays = Rule(name="amended", superseding_type="amendment", superseded_type="policy", scope_keys=("policy",),
                 effect="amend")  # fmt: skip
    follows = Rule(name="amended", superseding_type="amendment", superseded_type="policy", scope_keys=("policy",),
                   effect="amend", follows=True)  # fmt: skip

    assert ruleset(stays).digest == ruleset(follows).digest
    assert ruleset(stays, ISSUED).digest != ruleset(follows, ISSUED).digest
