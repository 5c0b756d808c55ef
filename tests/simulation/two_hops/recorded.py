"""The first seeds that catch each mutant; found by `python -m tests.simulation.two_hops --mutants 600`.

A seed is the same run only as long as the code makes the same requests in the same order. After a
change of that the tests search, which takes a minute longer: record anew.
"""

RECORDED: dict[str, tuple[int, ...]] = {
    "no fence": (0, 1, 2),
    "the fence is the owner alone": (38, 60, 61),
    "start at the committed offset": (0, 1, 2),
    "unverified read": (1, 4, 7),
    "several write commands": (0, 2, 4),
    "no outbox": (1, 4, 8),
    "trim before acknowledgement, intake": (5, 12, 24),
    "trim before acknowledgement, frontier": (3, 9, 17),
    "decoded state is kept, intake": (3, 8, 21),
    "decoded state is kept, frontier": (30, 36, 44),
    "the outbox of the dead is forgotten": (0, 3, 5),
    "the consumer is trusted, intake": (10, 13, 16),
    "the consumer is trusted, frontier": (3, 5, 19),
    "published backwards, intake": (0, 1, 2),
    "published backwards, frontier": (0, 1, 2),
    "published in part": (0, 1, 3),
    "no in[q]": (1, 4, 5),
    "other generations are heard": (0, 14, 22),
    "forwarded records count twice": (24, 38, 39),
    "strays are kept": (3, 6, 7),
    "mark beyond what is applied": (27, 87, 113),
    "mark before the outbox is empty": (17, 51, 70),
    "cut bound off by one": (13, 85, 93),
    "no test of exactness": (0, 1, 2),
    "the cut of the last shard read": (0, 2, 3),
    "revisions beyond the cut": (0, 3, 5),
    "releases beyond the cut": (97, 181, 183),
    "scopes beyond the cut": (13, 19, 21),
    "an intake that fell back": (2, 13, 30),
}
