"""Embedded DynamoDBs, the replication that makes Regions of them, and a proxy that spoils requests
on the way.

ministack       MiniStack, which has every Region        dynamodb_local  Amazon's, got from Maven
                Central
replicator      joins replicas (which write wins) and streams, so that Regions behave as those of a
                global table
proxy           does to requests what faults decides     children        the processes of a run,
                killed and stopped
"""
