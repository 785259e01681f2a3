"""The graph's steps without prefect: each finds its place in the store, does what is missing, commits.

`place(run)` answers where a stage's result lies without doing anything; `do(run)` makes sure it is there.
"""
