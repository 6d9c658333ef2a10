"""The Lambda functions around the library, one folder each: `main.py` reads the environment, `handler.py` does the work.

Rules: Powertools and pydantic are imported here and nowhere else; the library never imports this package.
"""
