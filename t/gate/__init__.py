"""How `make test` and `make soak` run the tests, and what they make of the
results: run.py beside this folder opens it."""
