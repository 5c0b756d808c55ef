"""The first seeds that catch each mutant; found by `python -m tests.simulation.two_hops --mutants 400`.

A seed is a run only as long as the code makes the same requests in the same order: whoever changes
that records anew.
"""

RECORDED: dict[str, tuple[int, ...]] = {
    "no fence": (0, 1, 2),
    "the fence is the owner alone": (0, 7, 27),
    "start at the committed offset": (0, 1, 2),
    "unverified read": (0, 1, 2),
    "several write commands": (0, 4, 5),
    "no outbox": (0, 1, 2),
    "trim before acknowledgement, intake": (10, 11, 12),
    "trim before acknowledgement, frontier": (7, 10, 23),
    "decoded state is kept, intake": (2, 7, 8),
    "decoded state is kept, frontier": (12, 15, 16),
    "the outbox of the dead is forgotten": (0, 8, 11),
    "the consumer is trusted, intake": (19, 33, 49),
    "the consumer is trusted, frontier": (6, 19, 20),
    "published backwards, intake": (0, 1, 2),
    "published backwards, frontier": (0, 1, 2),
    "published in part": (0, 1, 3),
    "no in[q]": (0, 2, 3),
    "other generations are heard": (0, 10, 14),
    "forwarded records count twice": (21, 56, 59),
    "strays are kept": (3, 6, 7),
    "mark beyond what is applied": (31, 45, 64),
    "mark before the outbox is empty": (5, 15, 17),
    "cut bound off by one": (93, 144, 146),
    "no test of exactness": (2, 3, 4),
    "the cut of the last shard read": (2, 5, 6),
    "revisions beyond the cut": (2, 5, 14),
    "releases beyond the cut": (18, 32, 80),
    "scopes beyond the cut": (2, 7, 13),
    "an intake that fell back": (2, 7, 15),
}
