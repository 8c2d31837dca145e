"""Kubernetes objects from the pools of a fleet. Pure: no client, no clock, no file."""
