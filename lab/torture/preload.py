"""Imported by the server that processes are forked from: what costs a second to load is loaded once.

Rule 1: Nothing is connected and no thread is started here, because both do not survive a fork.
"""

from lab.engines import proxy
from lab.torture import compacts
from lab.torture import readers as reads
from lab.torture import writers as writes
from ledger.dynamo.client import make_client

make_client("eu-west-1", "http://127.0.0.1:1")  # reads boto3's models of the service

__all__ = ["compacts", "proxy", "reads", "writes"]
