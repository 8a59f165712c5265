"""Reproduction of the papers' tables: commands, ledgers, listings and template search."""
