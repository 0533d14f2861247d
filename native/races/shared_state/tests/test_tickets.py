"""For pytest-run-parallel, which runs each test in many threads at once. notebooks/races/detection.py does it."""

import shared_state

TICKETS = 20_000


def draw(ticket):
    """Whoever draws many tickets gets higher and higher numbers, whatever the others do."""
    last = 0
    for _ in range(TICKETS):
        number = ticket()
        assert number > last, f"{number} after {last}: another thread's tickets were lost"
        last = number


def test_ticket():
    draw(shared_state.ticket)


def test_unsafe_ticket():
    draw(shared_state.unsafe_ticket)
