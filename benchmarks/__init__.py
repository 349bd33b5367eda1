"""Speed, correctness beside peers, and scale. Run by hand: `python -m benchmarks --corpus DIR`."""
