"""What the tests with sanitizers run beside the cells of the chapter on sharing."""

import array
import threading

from notebooks.sharing.experiment import module_of


def written_while_read(keep, folder):
    """C writes to the first number of an array while C reads it, in another thread: both are instrumented."""
    native, numbers = module_of(folder, "sharing_waiting"), array.array("q", bytes(1 << 10))
    reader = threading.Thread(target=native.read_twice, args=([numbers], keep, 30))
    reader.start()
    while reader.is_alive():
        native.add(numbers, 10, 0)
    reader.join()
    return {"first": numbers[0]}
