"""GradBench's evals by combdiff: `python -m benchmarks.gradbench` is a tool that answers GradBench's messages."""
