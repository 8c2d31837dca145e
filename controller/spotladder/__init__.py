"""spotladder keeps Ray training jobs alive on spot capacity."""
