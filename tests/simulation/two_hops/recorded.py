"""The first seeds that catch each mutant; found by `python -m tests.simulation.two_hops --mutants 600`.

A seed is the same run only as long as the code makes the same requests in the same order. After a
change of that the tests search, which takes a minute longer: record anew.
"""

RECORDED: dict[str, tuple[int, ...]] = {
    "no fence": (0, 1, 2),
    "the fence is the owner alone": (12, 33, 50),
    "start at the committed offset": (0, 1, 2),
    "unverified read": (0, 1, 4),
    "several write commands": (0, 1, 2),
    "no outbox": (1, 3, 10),
    "trim before acknowledgement, intake": (12, 14, 19),
    "trim before acknowledgement, frontier": (10, 16, 17),
    "decoded state is kept, intake": (8, 21, 23),
    "decoded state is kept, frontier": (49, 53, 84),
    "the outbox of the dead is forgotten": (12, 15, 22),
    "the consumer is trusted, intake": (5, 13, 17),
    "the consumer is trusted, frontier": (10, 12, 17),
    "published backwards, intake": (0, 1, 2),
    "published backwards, frontier": (0, 1, 2),
    "published in part": (0, 1, 3),
    "no in[q]": (0, 1, 4),
    "other generations are heard": (0, 10, 14),
    "forwarded records count twice": (24, 50, 55),
    "strays are kept": (3, 6, 7),
    "mark beyond what is applied": (7, 55, 117),
    "mark before the outbox is empty": (18, 71, 99),
    "cut bound off by one": (38, 103, 245),
    "no test of exactness": (0, 1, 2),
    "the cut of the last shard read": (2, 3, 5),
    "revisions beyond the cut": (3, 6, 7),
    "releases beyond the cut": (7, 63, 79),
    "scopes beyond the cut": (1, 9, 21),
    "an intake that fell back": (2, 25, 34),
}
