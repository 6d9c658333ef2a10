"""`make preflight`: whether an account can take a deployment, asked before anything is made."""
