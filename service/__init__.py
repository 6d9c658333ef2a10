"""The Lambda functions around the library: in each folder `main.py` reads the environment, the rest does the work.

Rules: Powertools and pydantic are imported here and nowhere else; the library never imports this package.
"""
