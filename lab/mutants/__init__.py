"""The lines of the protocol and the codec changed one by one; the tests must notice each (`make mutants`)."""
