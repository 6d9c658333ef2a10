"""The Lambda functions around the library: in each folder `main.py` reads the environment, the rest does the work.

add_from_queue/  changes from SQS          ring/        the table's stream -> work queue, directory
api/             the HTTP API              sweep/       daily: the directory -> work queue
compact/         work queue -> visits      canary/      changes of its own, watched
                                           thresholds/  crossings, kept and published; a job of compact

Rule 1: Powertools and pydantic are imported here and nowhere else.
Rule 2: The library never imports this package.
"""
