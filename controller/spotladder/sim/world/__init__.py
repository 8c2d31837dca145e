"""A world of zones that replay traces, and jobs that run in it, moved by discrete events on a stepped clock."""
