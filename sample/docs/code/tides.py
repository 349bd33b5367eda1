"""Height of the tide at the bar, by the rule of twelfths."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# Share of the range that the water has risen after each sixth of the flood.
TWELFTHS = (0, 1, 3, 6, 9, 11, 12)


@dataclass(frozen=True)
class Tide:
    """A high or low water."""

    time: datetime
    height: float


def height_at(moment: datetime, before: Tide, after: Tide) -> float:
    """Metres above datum at `moment`, which lies between two neighbouring tides."""
    if not before.time <= moment <= after.time:
        raise ValueError(f"{moment} is not between {before.time} and {after.time}")
    share = (moment - before.time) / (after.time - before.time) * 6
    sixth = min(int(share), 5)
    low, high = TWELFTHS[sixth], TWELFTHS[sixth + 1]
    risen = (low + (high - low) * (share - sixth)) / 12
    return before.height + (after.height - before.height) * risen


def first_time_over(height: float, before: Tide, after: Tide, step: int = 5) -> datetime | None:
    """First moment, to `step` minutes, at which the water is at least `height` high."""
    moment = before.time
    while moment <= after.time:
        if height_at(moment, before, after) >= height:
            return moment
        moment += timedelta(minutes=step)
    return None


if __name__ == "__main__":
    low = Tide(datetime(2025, 6, 12, 0, 41), 0.9)
    high = Tide(datetime(2025, 6, 12, 6, 35), 5.1)
    print("The bar carries a draught of 8.1 m from", first_time_over(1.3, low, high))
