"""Executes the chapters with papermill and renders the book."""
