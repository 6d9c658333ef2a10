"""What the page is sent of the scene of a flash sale.

Rule 1: What was promised is what customers were told, and never what a counter says.
"""

from typing import Any, ClassVar

from lab.live.picture import Painter
from lab.live.scene import REGIONS
from lab.live.selling import SEATS, Selling
from lab.live.stories import Teller
from lab.live.words import several


class SellingPainter(Painter):
    CUT: ClassVar = "The link is cut: with the limit, customers wait where there are no rights; ADD asks nobody."

    def __init__(self, teller: Teller) -> None:
        super().__init__(teller)
        assert isinstance(teller.scene, Selling)
        self._selling = teller.scene

    def head(self) -> dict[str, Any]:
        sold = [f"{name} {self._selling.seats(design, 'sold'):,}" for design, name in self._selling.DESIGNS.items()]
        return {"label": "Seats", "value": SEATS, "says": f"promised to customers: {', '.join(sold)}"}

    def lines(self) -> dict[str, str]:
        return {"zero": "no seat left", "promised": "seats less what ADD promised"} | dict(
            reversed(self._selling.DESIGNS.items())
        )

    def region(self, region: str) -> dict[str, Any]:
        scene = self._selling
        first = 3 + REGIONS.index(region) * len(scene.DESIGNS)
        return {
            "know": None,
            "counters": {
                design: {"value": left.value, **self._judged(region, design)}
                for design, left in scene.left[region].items()
            },
            "crash": None,
            "state": self._state(region),
            "columns": {"promised": 2} | {design: first + n for n, design in enumerate(scene.DESIGNS)},
            "lanes": [],
        }

    def _state(self, region: str) -> str:
        scene = self._selling
        waits = sum(told == "waits" for told in scene.orders[region]["ours"].values())
        here = f"This Region has rights to {several(scene.left[region]['ours'].here, 'seat')}."
        verb = "waits" if waits == 1 else "wait"
        return f"{here} {several(waits, 'customer')} {verb} for the other Region." if waits else here

    def _judged(self, region: str, design: str) -> dict[str, Any]:
        scene = self._selling
        note = f"left, {scene.seats(design, 'sold', region):,} sold here"
        over = scene.oversold(design)
        if over:
            mood = "wrong" if scene.resting else "off"
            why = [f"oversold by {over:,}: each Region sold seats that the other had sold"]
            return {"mood": mood, "note": note, "why": why}
        left = SEATS - scene.seats(design, "sold")
        if scene.left[region][design].value == left:
            return {"mood": "exact", "note": note, "why": []}
        if scene.resting:
            return {"mood": "wrong", "note": note, "why": [f"{left:,} are left: sales were overwritten"]}
        return {"mood": "behind", "note": note, "why": []}

    def at_rest(self) -> str:
        scene = self._selling

        def words(design: str) -> str:
            sold, over = scene.seats(design, "sold"), scene.oversold(design)
            ends = f"{over:,} more than there are" if over else f"{SEATS - sold:,} left"
            return f"promised {sold:,} of {SEATS:,} seats, {ends}"

        return f"The sale is over: this library {words('ours')}; the conditional ADD {words('atomic')}."
