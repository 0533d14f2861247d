"""The figures and tables of the chapter "Calls from outside"."""

# ---- states ----

# ---- who waits for whom ----

# ---- what may cross ----
