"""All benchmarks by one command: `python -m benchmarks --corpus DIR`."""

from benchmarks import chunkers, growth, job, startup
from benchmarks.report import main

if __name__ == "__main__":
    main({"chunkers": chunkers.run, "job": job.run, "growth": growth.run, "startup": startup.run})
