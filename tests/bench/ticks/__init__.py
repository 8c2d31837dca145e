"""The tick world of the published benchmarks: a decision per tick, with that tick's availability known.

Rules
 1. At the start of a tick every tier has either all nodes of the gang or none.
 2. Each start on a tier, including a second one on the same tier, takes `overhead` seconds without progress.
 3. A tick on a tier is billed in full; the tick in which the job finishes is billed pro rata.
 4. All work is committed at once: an interruption loses only the overhead.
"""
