"""The users of Redis that `deploy/redis/redis.conf` proposes, for an installation of a test."""

from deploy.local.redis import SETTINGS

CLUSTER_RIGHTS = ("+cluster|slots", "+command")  # that the file adds on a cluster


def password_of(user: str) -> str:
    """Return the password of a user."""
    return f"{user}-word"


def redis_users(prefix: str) -> list[list[str]]:
    """Return name and rights of each user, on keys of this prefix."""
    text = SETTINGS.read_text(encoding="utf-8")
    assert " ".join(CLUSTER_RIGHTS) in text
    lines = [line.split()[2:] for line in text.splitlines() if line.startswith("#   user ")]
    changed = {"~{streamcar*": f"~{{{prefix}*"}
    return [
        [changed.get(word, word).replace(">PASSWORD", f">{password_of(words[0])}") for word in words] for words in lines
    ]
