"""The HTTP API. documented.py lists the routes, routes.py has them; admission.py, paths.py and keys.py come before."""
