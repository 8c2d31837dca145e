"""The one stream of records of what happened to a job: written by the local runner and by the controller, read by
everything that shows a job or learns from it."""
