"""The first seeds that catch each mutant; found by `python -m tests.simulation.two_hops --mutants 400`.

A seed is the same run only as long as the code makes the same requests in the same order. After a
change of that the tests search, which takes a minute longer: record anew.
"""

RECORDED: dict[str, tuple[int, ...]] = {
    "no fence": (0, 1, 2),
    "the fence is the owner alone": (45, 80, 126),
    "start at the committed offset": (0, 1, 2),
    "unverified read": (0, 2, 3),
    "several write commands": (0, 5, 6),
    "no outbox": (0, 2, 4),
    "trim before acknowledgement, intake": (4, 19, 23),
    "trim before acknowledgement, frontier": (0, 12, 19),
    "decoded state is kept, intake": (2, 8, 12),
    "decoded state is kept, frontier": (4, 18, 41),
    "the outbox of the dead is forgotten": (4, 7, 10),
    "the consumer is trusted, intake": (5, 10, 19),
    "the consumer is trusted, frontier": (0, 4, 7),
    "published backwards, intake": (0, 1, 2),
    "published backwards, frontier": (0, 1, 3),
    "published in part": (0, 1, 3),
    "no in[q]": (0, 3, 4),
    "other generations are heard": (0, 14, 22),
    "forwarded records count twice": (21, 24, 50),
    "strays are kept": (3, 6, 7),
    "mark beyond what is applied": (87, 115, 125),
    "mark before the outbox is empty": (16, 87, 115),
    "cut bound off by one": (46, 68, 146),
    "no test of exactness": (0, 2, 3),
    "the cut of the last shard read": (0, 5, 7),
    "revisions beyond the cut": (3, 5, 6),
    "releases beyond the cut": (47, 65, 96),
    "scopes beyond the cut": (2, 5, 9),
    "an intake that fell back": (2, 7, 17),
}
