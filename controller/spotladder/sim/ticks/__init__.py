"""The tick world of the published benchmarks: a decision per tick, with that tick's availability known.

Rules
 1. At the start of a tick every tier either has all nodes of the gang or none.
 2. Each start on a tier, also the second one on the same tier, spends `overhead` seconds without progress.
 3. A tick on a tier is billed in full; the tick in which the job finishes is billed pro rata.
 4. Everything is committed at all times: an interruption loses no work but the overhead.
"""
