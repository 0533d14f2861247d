"""`ffilab scale`: what holds threads back? Children run and watch the statement, rules of this process answer."""
