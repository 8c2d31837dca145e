"""Converts the job manifests of other systems into TieredJobs. `registry` has the kinds, one module each.

A converter is pure: it takes a parsed document and returns a draft, a TieredJob with its comments. `accepted` then
removes the fields that `spotladder validate` does not accept, with the reviewer's reasons, so that no rule about a
field of a TieredJob is written twice.
"""
