"""From a bare machine to interpreters with their environments."""
