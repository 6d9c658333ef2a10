"""The Lambda functions around the library: in each folder `main.py` reads the environment, the rest does the work.

add_from_queue/  changes from SQS          mark/     the table's stream -> marks
api/             the HTTP API              plan/     every minute: marks -> work queue
compact/         work queue -> a visit     find/     slow scan -> lanes without marks

Rule 1: Powertools and pydantic are imported here and nowhere else.
Rule 2: The library never imports this package.
"""
