"""Finds lanes whose mark was lost, and picks lanes to verify, in a slow scan."""
