"""What a member must reach to hold, and what an edit of a scope does to that. Values only."""

from msgspec import Struct

from stream_car.core.bearings import Bearing
from stream_car.core.documents import Pair
from stream_car.core.members import LOWEST, Entry, Place, Said


class Tops(Struct, frozen=True, gc=False):
    """The greatest pair and what it says, and the greatest pair that says something else."""

    top: Pair = LOWEST
    value: Said | None = None
    second: Pair = LOWEST

    def reach(self, value: Said) -> Pair:
        """The threshold for members that say `value`."""
        return self.second if value == self.value else self.top


NO_TOPS = Tops()


class Bar(Struct, frozen=True, gc=False):
    """What a member's pair must reach to hold: the plain threshold, and the one for what it says."""

    plain: Pair
    tops: Tops = NO_TOPS
    names: Said = ()

    def reach(self, value: Said) -> Pair:
        """The threshold for a member that says `value` on `names`."""
        return max(self.plain, self.tops.reach(value)) if self.names else self.plain


class Interval(Struct, frozen=True, gc=False):
    """Members between two thresholds changed; `including`/`excluding` say which, by value."""

    low: Pair
    high: Pair
    entered: bool
    including: Said | None = None
    excluding: tuple[Said, ...] = ()


class Edit(Struct, frozen=True, gc=False):
    """What a placement does to the timeline, with what both revisions mean there."""

    old: tuple[str, Place] | None
    entry: Entry | None
    old_bearing: Bearing
    new_bearing: Bearing


class Sifting(Struct, frozen=True, gc=False):
    """Which members of an interval a change speaks about."""

    edit: Edit
    bearing: Bearing
    names: Said
