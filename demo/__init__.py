"""The demo: an embedded DynamoDB of several Regions, for one machine and no account.

- `engine`: starts and stops the DynamoDB (MiniStack).
- `replicas`: which write wins, and what is due in which Region (pure).
- `streams`: reads one Region's stream.
- `replicator`: joins the three, so that the Regions behave as a global table.
"""
