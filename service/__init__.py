"""The Lambda functions around the library: in each folder `main.py` reads the environment, and the
rest does the work.

add_from_queue/  changes from SQS          ring/        the table's stream -> work queue, directory
api/             the HTTP API              sweep/       daily: the directory -> work queue
compact/         work queue -> visits      canary/      changes of its own, watched
                                           thresholds/  crossings, kept and published; a job of
                                                        compact

Rule 1: Of the product only this package imports Powertools.
Rule 2: The library never imports this package.
"""
