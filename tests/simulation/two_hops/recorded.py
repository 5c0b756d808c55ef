"""The first seeds that catch each mutant; found by `python -m tests.simulation.two_hops --mutants 600`.

A seed is the same run only as long as the code makes the same requests in the same order. After a
change of that the tests search, which takes a minute longer: record anew.
"""

RECORDED: dict[str, tuple[int, ...]] = {
    "no fence": (0, 1, 2),
    "the fence is the owner alone": (19, 69, 103),
    "start at the committed offset": (0, 1, 2),
    "unverified read": (0, 1, 3),
    "several write commands": (0, 1, 2),
    "no outbox": (4, 5, 6),
    "trim before acknowledgement, intake": (0, 4, 8),
    "trim before acknowledgement, frontier": (0, 4, 12),
    "decoded state is kept, intake": (35, 39, 49),
    "decoded state is kept, frontier": (14, 15, 16),
    "the outbox of the dead is forgotten": (3, 4, 16),
    "the consumer is trusted, intake": (6, 7, 19),
    "the consumer is trusted, frontier": (0, 2, 6),
    "published backwards, intake": (0, 1, 2),
    "published backwards, frontier": (0, 1, 2),
    "published in part": (0, 1, 3),
    "no in[q]": (0, 2, 3),
    "other generations are heard": (24, 27, 50),
    "forwarded records count twice": (5, 7, 14),
    "forged origins are believed": (0, 4, 7),
    "forged placements are believed": (0, 4, 10),
    "strays are kept": (3, 5, 6),
    "mark beyond what is applied": (67, 71, 77),
    "mark before the outbox is empty": (5, 72, 86),
    "cut bound off by one": (5, 100, 106),
    "no test of exactness": (0, 2, 3),
    "the cut of the last shard read": (2, 4, 7),
    "revisions beyond the cut": (0, 2, 3),
    "releases beyond the cut": (32, 46, 64),
    "scopes beyond the cut": (0, 5, 7),
    "an intake that fell back": (2, 7, 13),
}
