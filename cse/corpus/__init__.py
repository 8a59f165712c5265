"""A corpus: sentences, tables and labelled texts of any source."""
