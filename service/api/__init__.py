"""The HTTP API. documented.py lists the routes, routes.py has them; before them come admission.py, paths.py, keys.py."""
