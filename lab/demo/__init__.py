"""The demo: two Regions on this computer count real events, and two designs that go wrong count beside ours."""
