"""The protocol in TLA+ (`make model`)."""
