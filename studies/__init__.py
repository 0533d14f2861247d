"""Studies that take hours: what the instrument is worth. They may import everything, and nothing imports them."""
