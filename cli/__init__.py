"""The `priorkit` command."""
