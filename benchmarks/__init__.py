"""Speed, correctness beside peers, and scale: `python -m benchmarks --corpus DIR`. The laws over a whole corpus:
`python -m benchmarks.laws --corpus DIR`. Both are run by hand.
"""
