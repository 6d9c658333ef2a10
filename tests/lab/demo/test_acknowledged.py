"""What a read must hold: the third promise, and what it excuses."""

from dataclasses import dataclass, field

from lab.demo.acknowledged import Ack, Acknowledged
from lab.events import Event, shop_day

LATENESS_MS = 2_000
HOME, OTHER = "eu-west-1", "us-east-1"
EVENT = Event("stock:a", 1, "k", shop_day(1, 1)[0].at)


@dataclass
class World:
    """Seconds go by as told; the event was first asked for at second 0."""

    now_s: float = 0.0
    known: Acknowledged = field(init=False)

    def __post_init__(self) -> None:
        self.known = Acknowledged(LATENESS_MS, now=lambda: self.now_s, wall=lambda: self.now_s)

    def acknowledge(self, at_s: float, region: str = HOME) -> None:
        self.now_s = at_s
        self.known.add(EVENT, 0.0, HOME, region)

    def demanded(self, region: str, began_s: float, ended_s: float) -> bool:
        self.now_s = began_s
        acks: list[Ack] = self.known.demanded(EVENT.counter, region)
        return any(ack.holds(ended_s) for ack in acks)


def test_a_change_in_time_is_demanded_at_home_of_every_later_read() -> None:
    world = World()
    assert not world.demanded(HOME, 0.5, 0.6)
    world.acknowledge(1.9)
    assert world.demanded(HOME, 1.9, 2)
    assert world.demanded(HOME, 500, 501)


def test_it_is_not_demanded_where_another_region_took_it() -> None:
    world = World()
    world.acknowledge(1)
    assert not world.demanded(OTHER, 500, 501)


def test_a_late_change_is_demanded_once_a_later_compactor_is_done() -> None:
    world = World()
    world.acknowledge(2.0)
    assert not world.demanded(HOME, 5, 6)
    world.known.settled(HOME, began_s=1.9)
    assert not world.demanded(HOME, 7, 8)
    world.known.settled(HOME, began_s=2.1)
    assert world.demanded(HOME, 9, 10)


def test_a_fail_over_is_demanded_until_its_home_may_have_got_it_late() -> None:
    world = World()
    world.acknowledge(1, OTHER)
    assert world.demanded(OTHER, 1.1, 1.9)
    assert not world.demanded(OTHER, 1.1, 2.1)
    assert not world.demanded(HOME, 1.1, 1.9)


def test_a_fail_over_while_the_link_is_cut_is_demanded_until_it_is_healed() -> None:
    world = World()
    world.known.cut()
    world.acknowledge(1, OTHER)
    assert world.demanded(OTHER, 20, 30)
    world.now_s = 40
    world.known.healing()
    assert world.demanded(OTHER, 38, 39)
    assert not world.demanded(OTHER, 38, 41)


def test_a_link_that_heals_at_once_leaves_a_fail_over_its_lateness() -> None:
    world = World()
    world.known.cut()
    world.acknowledge(1, OTHER)
    world.now_s = 1.1
    world.known.healing()
    assert world.demanded(OTHER, 1.2, 1.9)
    assert not world.demanded(OTHER, 1.2, 2.1)


def test_a_late_fail_over_is_not_demanded_where_it_was_taken() -> None:
    world = World()
    world.known.cut()
    world.acknowledge(2.5, OTHER)
    world.known.settled(OTHER, began_s=3)
    assert not world.demanded(OTHER, 4, 5)


def test_the_first_acknowledgement_counts() -> None:
    world = World()
    world.acknowledge(1)
    world.acknowledge(9)
    assert world.demanded(HOME, 10, 11)
