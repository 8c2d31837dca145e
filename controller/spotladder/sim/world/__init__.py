"""A world of zones that replay traces, and jobs in it, driven by discrete events on a stepped clock."""
