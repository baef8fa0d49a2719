"""Thin adapters to the tools people generate text with."""
