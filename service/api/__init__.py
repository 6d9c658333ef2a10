"""The HTTP API. documented.py lists the routes, routes.py has them; first come admission.py, paths.py, keys.py."""
