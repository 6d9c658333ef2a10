"""The HTTP API. app.py has the routes; what comes before them is in admission.py, paths.py and keys.py."""
