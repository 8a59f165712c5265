"""The papers' tables run again: commands, ledgers, listings, template search."""
