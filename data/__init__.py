"""Bundled pools, read through importlib.resources; see README.md beside this file."""
