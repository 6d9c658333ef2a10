"""`make preflight`: checks whether an account can take a deployment, before anything is made."""
